//! Writing to the contracts of one deployment.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use blindfold_bte::bls::Signature as BlsSignature;
use blindfold_protocol::{BatchHeader, Canonical, Certificate, SignedHeader, SigningKey};

use crate::{
    L1Client, L1Error, NewEpoch, RunFault,
    contracts::{BlindedInbox, CommitteeRegistry, FeeVault},
    run_data::{CodedBatch, RunData, split_run_data},
    sender::{Call, Sender, Sent},
};

/// The longest transaction that nodes relay from one to another.
pub const MAX_TRANSACTION_BYTES: usize = 128 * 1024;
/// What a transaction of `postData` has beside its data, with room to spare.
const POST_DATA_OVERHEAD_BYTES: usize = 512;

/// Sends transactions from one account. Clones share it.
#[derive(Clone, Debug)]
pub struct L1Writer {
    client: L1Client,
    sender: Arc<Sender>,
}

impl L1Writer {
    /// A writer for the client's deployment with an account's key.
    pub fn new(client: L1Client, key: SigningKey) -> Self {
        let config = client.config();
        let (chain_id, timeout_ms) = (config.deployment.l1_chain_id, config.confirmation_timeout_ms);
        let sender = Arc::new(Sender::new(client.inner.rpc.clone(), chain_id, key, timeout_ms));
        Self { client, sender }
    }

    /// The account that pays for the transactions.
    pub fn address(&self) -> Address {
        self.sender.address()
    }

    /// The reader of the same deployment.
    pub fn client(&self) -> &L1Client {
        &self.client
    }

    /// Posts a run with its data and the certificate of its last header, and waits until it is in a block. Data that
    /// does not fit one transaction follows in parts.
    ///
    /// # Errors
    /// [`L1Error::Run`] for what cannot be a run; [`L1Error::Reverted`] when the inbox refuses, for instance because
    /// the run is there already; [`L1Error::TransactionTooLarge`] when the headers alone are too long; the errors
    /// of a call.
    pub async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.sealed.header).collect();
        let data = RunData::of(batches).encode();
        match self.post_headers(&headers, &data, certificate).await {
            Err(L1Error::TransactionTooLarge { .. } | L1Error::GasAboveLimit { .. }) => {}
            outcome => return outcome,
        }
        let sent = self.post_headers(&headers, &[], certificate).await?;
        self.post_data(batches).await?;
        Ok(sent)
    }

    /// Posts a run of headers with these bytes as data, which may be empty.
    ///
    /// # Errors
    /// As [`L1Writer::post`].
    pub async fn post_headers(
        &self,
        headers: &[BatchHeader],
        data: &[u8],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        check_run(headers, certificate)?;
        let signature = BlsSignature::from_bytes(&certificate.signature).map_err(|_| RunFault::Signature)?;
        let call = BlindedInbox::postCall {
            headers: headers.iter().map(to_contract).collect(),
            data: Bytes::copy_from_slice(data),
            certificate: BlindedInbox::Certificate {
                signers: certificate.signers,
                signature: Bytes::copy_from_slice(&signature.to_eip2537()),
            },
        };
        let inbox = self.client.config().deployment.inbox;
        self.send("post", inbox, U256::ZERO, &call, Some(MAX_TRANSACTION_BYTES)).await
    }

    /// Posts the data of posted batches again, in as many parts as it takes. Gives the last transaction.
    ///
    /// # Errors
    /// [`RunFault::Empty`]; [`L1Error::Reverted`] for batches that are not posted; the errors of a call.
    pub async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else {
            return Err(RunFault::Empty.into());
        };
        let (first, last) = (first.sealed.header.number, last.sealed.header.number);
        let data = RunData::of(batches).encode();
        let room = MAX_TRANSACTION_BYTES - POST_DATA_OVERHEAD_BYTES;
        let parts = split_run_data(first, last, &data, room).ok_or(L1Error::TransactionTooLarge {
            call: "postData",
            bytes: data.len(),
            limit: room * usize::from(crate::run_data::MAX_PARTS),
        })?;
        let inbox = self.client.config().deployment.inbox;
        let mut sent = None;
        for part in parts {
            let call = BlindedInbox::postDataCall { firstNumber: first, data: part.encode().into() };
            sent = Some(self.send("postData", inbox, U256::ZERO, &call, Some(MAX_TRANSACTION_BYTES)).await?);
        }
        // Encoded data is never empty, so there was a part.
        sent.ok_or(L1Error::Run(RunFault::Empty))
    }

    /// Pays `amount` wei into a fee account.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; [`L1Error::Unconfirmed`], after which the deposit may still happen: look at L1 before
    /// paying again; the errors of a call.
    pub async fn deposit(&self, payer: Address, amount: u128) -> Result<Sent, L1Error> {
        let call = FeeVault::depositCall { payer };
        self.send("deposit", self.client.config().fee_vault, U256::from(amount), &call, None).await
    }

    /// Adds `amount` wei to the sequencer's bond.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn deposit_bond(&self, amount: u128) -> Result<Sent, L1Error> {
        let inbox = self.client.config().deployment.inbox;
        let call = BlindedInbox::depositBondCall {};
        self.send("depositBond", inbox, U256::from(amount), &call, None).await
    }

    /// Reports two different headers of one number, both signed by the sequencer. The reward waits for
    /// [`L1Writer::claim_reward`].
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when it is no such thing, or was reported already; the errors of a call.
    pub async fn slash_equivocation(
        &self,
        first: &SignedHeader,
        second: &SignedHeader,
    ) -> Result<Sent, L1Error> {
        let call = BlindedInbox::slashEquivocationCall {
            first: to_contract(&first.header),
            firstSignature: Bytes::copy_from_slice(&first.signature.0),
            second: to_contract(&second.header),
            secondSignature: Bytes::copy_from_slice(&second.signature.0),
        };
        self.send("slashEquivocation", self.client.config().deployment.inbox, U256::ZERO, &call, None).await
    }

    /// Takes out the account's rewards.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when there is none; the errors of a call.
    pub async fn claim_reward(&self) -> Result<Sent, L1Error> {
        let call = BlindedInbox::claimRewardCall {};
        self.send("claimReward", self.client.config().deployment.inbox, U256::ZERO, &call, None).await
    }

    /// Appends an epoch; the account is the registry's governor.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn register_epoch(&self, epoch: &NewEpoch) -> Result<Sent, L1Error> {
        let call = CommitteeRegistry::registerEpochCall {
            parameters: CommitteeRegistry::EpochParameters {
                lastNumber: epoch.last,
                maxBatch: epoch.max_batch,
                threshold: epoch.threshold,
                parametersHash: epoch.parameters_hash,
                encryptionKey: Bytes::copy_from_slice(&epoch.encryption_key.to_bytes()),
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
        self.send("registerEpoch", self.client.config().registry, U256::ZERO, &call, None).await
    }

    async fn send<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        value: U256,
        call: &C,
        size_limit_bytes: Option<usize>,
    ) -> Result<Sent, L1Error> {
        let call = Call { name, to: TxKind::Call(to), value, input: call.abi_encode().into() };
        self.sender.send(call, size_limit_bytes).await
    }
}

/// What the inbox would refuse anyway, named before anything is sent.
fn check_run(headers: &[BatchHeader], certificate: &Certificate) -> Result<(), RunFault> {
    let last = headers.last().ok_or(RunFault::Empty)?;
    let hash = last.hash();
    if (certificate.header_hash, certificate.number, certificate.epoch) != (hash, last.number, last.epoch) {
        return Err(RunFault::OtherHeader { certified: certificate.header_hash, last: hash });
    }
    for (parent, header) in headers.iter().zip(headers.iter().skip(1)) {
        let follows = parent.number.checked_add(1) == Some(header.number)
            && header.parent_hash == parent.hash()
            && header.epoch == parent.epoch;
        if !follows {
            return Err(RunFault::NotARun(header.number));
        }
    }
    Ok(())
}

pub(crate) fn to_contract(header: &BatchHeader) -> BlindedInbox::BatchHeader {
    BlindedInbox::BatchHeader {
        version: blindfold_protocol::limits::VERSION,
        number: header.number,
        parentHash: header.parent_hash,
        timestampMs: header.timestamp_ms,
        l1OriginNumber: header.l1_origin_number,
        l1OriginHash: header.l1_origin_hash,
        envelopeRoot: header.envelope_root,
        envelopeCount: header.envelope_count,
        envelopeBytes: header.envelope_bytes,
        gas: header.gas,
        baseFee: header.base_fee,
        feeLedgerRoot: header.fee_ledger_root,
        forcedCursor: header.forced_cursor,
        epoch: header.epoch,
    }
}

pub(crate) fn from_contract(header: &BlindedInbox::BatchHeader) -> BatchHeader {
    BatchHeader {
        number: header.number,
        parent_hash: header.parentHash,
        timestamp_ms: header.timestampMs,
        l1_origin_number: header.l1OriginNumber,
        l1_origin_hash: header.l1OriginHash,
        envelope_root: header.envelopeRoot,
        envelope_count: header.envelopeCount,
        envelope_bytes: header.envelopeBytes,
        gas: header.gas,
        base_fee: header.baseFee,
        fee_ledger_root: header.feeLedgerRoot,
        forced_cursor: header.forcedCursor,
        epoch: header.epoch,
    }
}
