//! Writing what users and operators do: fee accounts, forced items, deposits for L2, epochs, claims of L2 state.

use alloy_primitives::{Address, Bytes, U256};
use blindfold_protocol::B256;

use crate::{
    contracts::{CommitteeRegistry, DepositPortal, FeeVault, ForcedQueue, OutputRegistry},
    error::L1Error,
    posting::evidence::AccountProof,
    reader::{
        committee::NewEpoch,
        faults::Output,
        queue::{KIND_ENVELOPE, KIND_TRANSACTION},
    },
    submitter::{pending::Sent, writer::L1Writer},
};

/// A call for L2 that is made on L1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L2Call {
    /// Whom to call; `None` to create a contract.
    pub to: Option<Address>,
    /// Ether minted on L2 for the sender, in wei; it leaves the account on L1.
    pub mint: U256,
    /// What the call carries, out of the sender's L2 balance, in wei.
    pub value: U256,
    /// Gas limit of the call on L2.
    pub gas: u64,
    /// Its input, or the creation code.
    pub data: Bytes,
}

/// By which part a forced item offers more than it costs now.
const FORCED_FEE_MARGIN: u64 = 4;

impl L1Writer {
    /// Pays `amount` wei into a fee account.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; [`L1Error::Unconfirmed`] and [`L1Error::Unanswered`], after which the deposit may still happen:
    /// look at L1 before paying again; the errors of a call.
    pub async fn deposit(&self, payer: Address, amount: u128) -> Result<Sent, L1Error> {
        let vault = self.client().config().contracts.fee_vault;
        self.send("deposit", vault, U256::from(amount), &FeeVault::depositCall { payer }).await
    }

    /// Asks the rollup to move `amount` wei, or what there is, out of the account's fee account.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn request_withdrawal(&self, amount: u128) -> Result<Sent, L1Error> {
        let vault = self.client().config().contracts.fee_vault;
        let call = FeeVault::requestWithdrawalCall { amount };
        self.send("requestWithdrawal", vault, U256::ZERO, &call).await
    }

    /// Has the vault pay an account what a posted header's ledger shows as withdrawn.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when all of it was paid, or the proof does not hold; the errors of a call.
    pub async fn claim_withdrawal(&self, proof: &AccountProof) -> Result<Sent, L1Error> {
        let vault = self.client().config().contracts.fee_vault;
        let call = FeeVault::claimCall { proof: account(proof)? };
        self.send("claim", vault, U256::ZERO, &call).await
    }

    /// Has the vault pay an account whose request the rollup left unprocessed for the withdrawal delay, by a proof
    /// against the last posted header.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] before that; the errors of a call.
    pub async fn exit(&self, proof: &AccountProof) -> Result<Sent, L1Error> {
        let vault = self.client().config().contracts.fee_vault;
        let call = FeeVault::exitCall { proof: account(proof)? };
        self.send("exit", vault, U256::ZERO, &call).await
    }

    /// Forces an encrypted envelope into the rollup, for the queue's fee.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when the epoch could end before it is due; the errors of a call.
    pub async fn force_envelope(&self, envelope: &[u8]) -> Result<Sent, L1Error> {
        self.force(KIND_ENVELOPE, 0, envelope).await
    }

    /// Forces a raw signed transaction, in the clear, into the rollup, for the queue's fee.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] for a gas limit or a length out of range; the errors of a call.
    pub async fn force_transaction(&self, gas_limit: u64, raw: &[u8]) -> Result<Sent, L1Error> {
        self.force(KIND_TRANSACTION, gas_limit, raw).await
    }

    async fn force(&self, kind: u8, gas_limit: u64, item: &[u8]) -> Result<Sent, L1Error> {
        let queue = self.client().config().contracts.forced_queue;
        // Others may come first and raise the price; what is above it comes back.
        let fee = self.client().forced_fee(kind, gas_limit, item).await?;
        let value = fee.saturating_add(fee / U256::from(FORCED_FEE_MARGIN));
        let call = ForcedQueue::forceCall { kind, gasLimit: gas_limit, item: Bytes::copy_from_slice(item) };
        self.send("force", queue, value, &call).await
    }

    /// Sends what the bytes of forced items cost to the sequencer; what their gas costs is burnt.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when there are none; the errors of a call.
    pub async fn collect_forced_fees(&self) -> Result<Sent, L1Error> {
        let queue = self.client().config().contracts.forced_queue;
        self.send("collect", queue, U256::ZERO, &ForcedQueue::collectCall {}).await
    }

    /// Deposits ether for L2 and makes a call there.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when the L1 block's deposit gas is used up, or a limit is out of range; the errors of a
    /// call.
    pub async fn deposit_transaction(&self, l2: &L2Call) -> Result<Sent, L1Error> {
        let portal = self.client().config().contracts.deposit_portal;
        let call = DepositPortal::depositTransactionCall {
            to: l2.to.unwrap_or_default(),
            value: l2.value,
            gasLimit: l2.gas,
            isCreation: l2.to.is_none(),
            data: l2.data.clone(),
        };
        self.send("depositTransaction", portal, l2.mint, &call).await
    }

    /// Claims, as the sequencer, the hashes and state roots of the L2 blocks after the last one claimed.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] for a gap, a repetition, or blocks whose batches are not posted long enough; the errors
    /// of a call.
    pub async fn propose_outputs(&self, outputs: &[Output]) -> Result<Sent, L1Error> {
        let registry = self.client().config().contracts.output_registry;
        let proposed = outputs.iter().map(|output| OutputRegistry::Output {
            l2Block: output.l2_block,
            batch: output.batch,
            timestamp: output.timestamp,
            blockHash: output.block_hash,
            stateRoot: output.state_root,
        });
        let call = OutputRegistry::proposeCall { proposed: proposed.collect() };
        self.send("propose", registry, U256::ZERO, &call).await
    }

    /// Appends an epoch; the account is the registry's governor.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn register_epoch(&self, epoch: &NewEpoch) -> Result<Sent, L1Error> {
        let continued = epoch.continues != 0;
        let unless_continued = |bytes: &[u8]| Bytes::copy_from_slice(if continued { &[] } else { bytes });
        let call = CommitteeRegistry::registerEpochCall {
            parameters: CommitteeRegistry::EpochParameters {
                lastNumber: epoch.last,
                maxBatch: epoch.max_batch,
                threshold: epoch.threshold,
                parametersHash: epoch.parameters_hash,
                continues: epoch.continues,
                encryptionKey: unless_continued(&epoch.encryption_key.to_bytes()),
                h1: unless_continued(&epoch.h1.to_eip2537()),
                parametersLocation: epoch.parameters_location.clone(),
            },
            members: epoch
                .members
                .iter()
                .map(|member| CommitteeRegistry::Member {
                    key: Bytes::copy_from_slice(&member.key.to_eip2537()),
                    possession: Bytes::copy_from_slice(&member.possession.to_eip2537()),
                })
                .collect(),
        };
        let registry = self.client().config().contracts.registry;
        self.send("registerEpoch", registry, U256::ZERO, &call).await
    }

    /// Names the key of headers to come; the account is the registry's governor. The event gives the L1 block from which on
    /// it counts, [`L1Client::epochs`](crate::reader::client::L1Client::epochs) tells it as soon as that is final.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn name_sequencer(&self, sequencer: Address) -> Result<Sent, L1Error> {
        let registry = self.client().config().contracts.registry;
        let call = CommitteeRegistry::nameSequencerCall { sequencer };
        self.send("nameSequencer", registry, U256::ZERO, &call).await
    }

    /// Ends an epoch earlier than it is registered, at a number far ahead; the account is the registry's governor.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn end_epoch(&self, epoch: u64, last: u64) -> Result<Sent, L1Error> {
        let call = CommitteeRegistry::endEpochCall { epoch, lastNumber: last };
        let registry = self.client().config().contracts.registry;
        self.send("endEpoch", registry, U256::ZERO, &call).await
    }

    /// Says, as the registry's governor, that L1 hears nothing certified any more: the epoch can end after the answer
    /// window, with the next header that L1 makes.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn announce_silence(&self) -> Result<Sent, L1Error> {
        let call = CommitteeRegistry::announceSilenceCall {};
        let registry = self.client().config().contracts.registry;
        self.send("announceSilence", registry, U256::ZERO, &call).await
    }

    /// Announces, as the registry's governor, the end of the next number's epoch after the notice that a new one has,
    /// whatever its committee does; or takes such an announcement back.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn announce_end(&self, take_back: bool) -> Result<Sent, L1Error> {
        let registry = self.client().config().contracts.registry;
        if take_back {
            let call = CommitteeRegistry::takeBackEndCall {};
            return self.send("takeBackEnd", registry, U256::ZERO, &call).await;
        }
        self.send("announceEnd", registry, U256::ZERO, &CommitteeRegistry::announceEndCall {}).await
    }

    /// Ends the first epoch, whose end is due, before anything was certified. Any account may; later the next header that
    /// L1 makes ends an epoch ([`L1Writer::post_l1_header`]).
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn end_first_epoch(&self) -> Result<Sent, L1Error> {
        let call = CommitteeRegistry::endFirstEpochCall {};
        let registry = self.client().config().contracts.registry;
        self.send("endFirstEpoch", registry, U256::ZERO, &call).await
    }

    /// Schedules a rule set from a number far ahead on; the account is the registry's governor.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn schedule_rules(&self, first: u64, rules: u16) -> Result<Sent, L1Error> {
        let call = CommitteeRegistry::scheduleRulesCall { firstNumber: first, rules };
        let registry = self.client().config().contracts.registry;
        self.send("scheduleRules", registry, U256::ZERO, &call).await
    }
}

/// The proof in the vault's form.
fn account(proof: &AccountProof) -> Result<FeeVault::AccountProof, L1Error> {
    let missing = crate::error::RunError::NotARun(proof.number);
    let header = proof.run.header(proof.number).ok_or(missing)?;
    let header_proof: Vec<B256> = proof.run.header_proof(proof.number).ok_or(missing)?;
    Ok(FeeVault::AccountProof {
        payer: proof.payer,
        balance: proof.balance,
        withdrawn: proof.withdrawn,
        siblings: proof.siblings.clone(),
        header: header.into(),
        run: (&proof.run.run).into(),
        headerProof: header_proof,
    })
}
