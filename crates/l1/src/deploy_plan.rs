//! What a deployment sends, decided before anything is paid for.

use std::time::Duration;

use alloy_eips::BlockId;
use alloy_primitives::{Address, B256, Bytes, Keccak256, TxKind, U256, Uint};
use alloy_provider::Provider;
use alloy_sol_types::SolConstructor;
use blindfold_protocol::SigningKey;

use crate::{
    config::{DEFAULT_CONFIRMATION_TIMEOUT_MS, DEFAULT_MAX_TRANSACTION_FEE_WEI, DeployedWith, L1Config},
    contracts::{
        BlindedInbox, CommitteeRegistry, DepositPortal, EncryptionKeyVerifier, FeeVault, ForcedQueue,
        HintRegistry, HintVerifier, MemberStakes, OutputRegistry,
    },
    deploy::{Addresses, DeployConfig, timing},
    error::L1Error,
    reader::{client::L1Client, state_at::StateAt},
    submitter::{account::Call, fees::Fees, sender::Sender},
    transport::{Rpc, failed},
};

/// Calls during a deployment may take this long.
const REQUEST_TIMEOUT_MS: u64 = 30_000;
/// How often one contract is sent, each time with a higher fee, before the deployment is broken off.
const CREATE_ATTEMPTS: usize = 8;
/// Pause before another look at a nonce that was used meanwhile: not all of an endpoint's servers may know it yet.
const USED_NONCE_PAUSE_MS: u64 = 200;

// Places in the order of creation of what only the registry names.
const KEY_VERIFIER: u64 = 8;
const STAKES: u64 = 9;

// Gas of a creation (EIP-2028, EIP-3860, and the deposit for each byte of code that stays).
const CREATION_GAS: u64 = 21_000 + 32_000;
const ZERO_BYTE_GAS: u64 = 4;
const BYTE_GAS: u64 = 16;
const CODE_WORD_GAS: u64 = 2;
const CODE_BYTE_GAS: u64 = 200;
/// What a constructor does beside leaving code.
const CONSTRUCTOR_GAS: u64 = 200_000;

/// A deployment that is decided on. Where each contract will be follows from the account and its nonce, so everything is
/// known before the first transaction, and a deployment that was broken off is continued by the same plan.
#[derive(Clone, Debug)]
pub struct DeployPlan {
    deployer: Address,
    nonce: u64,
    addresses: Addresses,
    config: DeployConfig,
    creations: Vec<Creation>,
    /// How long to wait for a transaction before another one takes its place.
    pub confirmation_timeout_ms: u64,
}

#[derive(Clone, Debug)]
struct Creation {
    name: &'static str,
    address: Address,
    /// Creation code with the constructor's arguments.
    code: Bytes,
}

impl Creation {
    /// Gas that it takes at most.
    fn gas(&self) -> u64 {
        let bytes: u64 = self.code.iter().map(|byte| if *byte == 0 { ZERO_BYTE_GAS } else { BYTE_GAS }).sum();
        let length = self.code.len() as u64;
        CREATION_GAS + bytes + length.div_ceil(32) * CODE_WORD_GAS + length * CODE_BYTE_GAS + CONSTRUCTOR_GAS
    }
}

/// A deployment that is not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct BrokenOff {
    /// What went wrong.
    pub error: L1Error,
    /// Whether L1 was given a transaction meanwhile: it may get into a block whatever L1 answered.
    pub has_sent: bool,
    /// Whether the error is about final blocks: what stands where there should be something else stands there for good.
    pub is_final: bool,
}

impl From<L1Error> for BrokenOff {
    fn from(error: L1Error) -> Self {
        Self { error, has_sent: false, is_final: false }
    }
}

/// What a deployment may cost from here on, and what there is; in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployFunds {
    /// At twice L1's present base fee, which every transaction offers.
    pub needed: U256,
    /// What the account has, in wei.
    pub balance: U256,
}

impl DeployPlan {
    /// A new deployment by this account, which must send nothing else until it is complete: some contracts are told the
    /// address of another before that one exists.
    ///
    /// # Errors
    /// [`L1Error::WrongChain`]; [`L1Error::TransactionsWait`]; [`L1Error::Behind`]; as [`DeployPlan::again`]; the errors of
    /// a call.
    pub async fn new(url: &str, deployer: Address, config: &DeployConfig) -> Result<Self, L1Error> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        let given = rpc.chain_id().await?;
        if given != config.l1_chain_id {
            return Err(L1Error::WrongChain { expected: config.l1_chain_id, given });
        }
        let newest = rpc.newest().await?;
        let nonce = rpc.nonce(deployer, BlockId::latest()).await?;
        // What waits may yet take the nonces that the addresses follow from.
        let pending = rpc.nonce(deployer, BlockId::pending()).await?;
        if pending < nonce {
            return Err(L1Error::Behind { account: deployer, expected: nonce, given: pending });
        }
        if pending > nonce {
            return Err(L1Error::TransactionsWait { account: deployer, waiting: pending - nonce });
        }
        Self::again(deployer, nonce, newest.saturating_add(1), config)
    }

    /// The plan that was made for this account, nonce and first block.
    ///
    /// # Errors
    /// [`L1Error::StakeTooLarge`].
    pub fn again(deployer: Address, nonce: u64, block: u64, config: &DeployConfig) -> Result<Self, L1Error> {
        let at = |later: u64| deployer.create(nonce.saturating_add(later));
        let addresses = Addresses {
            l1_chain_id: config.l1_chain_id,
            registry: at(0),
            forced_queue: at(1),
            inbox: at(2),
            fee_vault: at(3),
            hint_verifier: at(4),
            hint_registry: at(5),
            deposit_portal: at(6),
            output_registry: at(7),
            block,
        };
        let creations = (0..).zip(codes(config, &addresses, at(KEY_VERIFIER), at(STAKES))?);
        let creations = creations.map(|(later, (name, code))| Creation { name, address: at(later), code });
        Ok(Self {
            deployer,
            nonce,
            addresses,
            config: *config,
            creations: creations.collect(),
            confirmation_timeout_ms: DEFAULT_CONFIRMATION_TIMEOUT_MS,
        })
    }

    /// The nonce of the account's first transaction.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Where the contracts will be.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The hash of all that is sent: of the same contracts with the same settings.
    pub fn code_hash(&self) -> B256 {
        let mut hash = Keccak256::new();
        for creation in &self.creations {
            hash.update(creation.address);
            hash.update(&creation.code);
        }
        hash.finalize()
    }

    /// Gas that all contracts take at most.
    pub fn gas(&self) -> u64 {
        self.creations.iter().map(Creation::gas).sum()
    }

    /// What the contracts that do not stand yet may cost, and what the account has.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn funds(&self, url: &str) -> Result<DeployFunds, L1Error> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        let (mut gas, state) = (0, StateAt::newest(&rpc).await?);
        for creation in &self.creations {
            if !state.has_code(creation.address).await? {
                gas += creation.gas();
            }
        }
        let price = Fees::fresh(&rpc, self.nonce, false).await?.max_fee;
        let balance = rpc.provider.get_balance(self.deployer).await.map_err(failed("eth_getBalance"))?;
        Ok(DeployFunds { needed: U256::from(gas).saturating_mul(U256::from(price)), balance })
    }

    /// Whether the account sent nothing since the plan was made, as far as the endpoint knows.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn is_untouched(&self, url: &str) -> Result<bool, L1Error> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        Ok(rpc.nonce(self.deployer, BlockId::pending()).await? == self.nonce)
    }

    /// Brings up every contract that does not stand yet, then checks that each is where it should be and names the others.
    /// Gives whether that is final: until it is, L1 may drop a contract again, which the same plan brings up once more.
    ///
    /// # Errors
    /// [`L1Error::WrongChain`]; [`L1Error::NonceUsed`] when the account sent something else; [`L1Error::Reverted`] for
    /// settings that a contract refuses; [`L1Error::OtherDeployed`] and those of [`L1Client::connect`] when other contracts
    /// stand at the addresses; the errors of a call. After a transient one, and after one that is not about final blocks,
    /// the same plan may be carried out again.
    pub async fn carry_out(&self, url: &str, key: &SigningKey) -> Result<bool, BrokenOff> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        let (chain_id, timeout_ms) = (self.addresses.l1_chain_id, self.confirmation_timeout_ms);
        let max_fee = DEFAULT_MAX_TRANSACTION_FEE_WEI;
        let sender = Sender::new(rpc.clone(), chain_id, key.clone(), timeout_ms, max_fee);
        let done = async {
            let seen = self.bring_up(&rpc, &sender).await?;
            self.check_what_stands(&rpc, url, seen).await
        };
        done.await.map_err(|broken_off| BrokenOff { has_sent: sender.has_sent(), ..broken_off })
    }

    /// Gives a block after which all contracts stand.
    async fn bring_up(&self, rpc: &Rpc, sender: &Sender) -> Result<u64, BrokenOff> {
        let (expected, given) = (self.addresses.l1_chain_id, rpc.chain_id().await?);
        if given != expected {
            return Err(L1Error::WrongChain { expected, given }.into());
        }
        let mut seen = 0;
        for (nonce, creation) in (self.nonce..).zip(&self.creations) {
            seen = seen.max(create(rpc, sender, creation, nonce).await?);
        }
        Ok(seen)
    }

    /// Checks after the newest final block where that has all contracts, else after block `seen`. Gives whether it was final.
    async fn check_what_stands(&self, rpc: &Rpc, url: &str, seen: u64) -> Result<bool, BrokenOff> {
        let finalized = match StateAt::finalized(rpc).await {
            Ok(Some(state)) if self.all_stand(&state).await.unwrap_or(false) => Some(state.number),
            _ => None,
        };
        let is_final = finalized.is_some();
        let checked = self.check(rpc, url, finalized.unwrap_or(seen)).await;
        checked.map_err(|error| BrokenOff { error, has_sent: false, is_final })?;
        Ok(is_final)
    }

    async fn all_stand(&self, state: &StateAt<'_>) -> Result<bool, L1Error> {
        for creation in &self.creations {
            if !state.has_code(creation.address).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all that stands after a block is of this deployment: what an earlier run left at an address is taken for its
    /// contract because there is code.
    async fn check(&self, rpc: &Rpc, url: &str, block: u64) -> Result<(), L1Error> {
        let (config, committees) = (&self.config, &self.config.committees);
        let Addresses { registry, forced_queue, fee_vault, hint_verifier, hint_registry, .. } =
            self.addresses;
        let portal = self.addresses.deposit_portal;
        let client = L1Client::connect(L1Config {
            deployed_with: Some(DeployedWith { timing: config.timing, sequencer: config.sequencer }),
            checked_at: Some(block),
            start_block: self.addresses.block.saturating_sub(1),
            ..self.addresses.client_config(url)
        });
        client.await?;
        let state = &StateAt::new(rpc, block);

        let name = "CommitteeRegistry";
        let call = CommitteeRegistry::governorCall {};
        state.expect((name, registry), "governor", call, config.governor).await?;
        let call = CommitteeRegistry::epochNoticeCall {};
        state.expect((name, registry), "epochNotice", call, committees.epoch_notice).await?;
        let call = CommitteeRegistry::switchLeadCall {};
        state.expect((name, registry), "switchLead", call, committees.switch_lead).await?;
        let call = CommitteeRegistry::minMembersCall {};
        state.expect((name, registry), "minMembers", call, committees.min_members).await?;
        let call = CommitteeRegistry::minThresholdCall {};
        state.expect((name, registry), "minThreshold", call, committees.min_threshold).await?;
        let key_verifier = self.at(KEY_VERIFIER);
        let call = CommitteeRegistry::keyVerifierCall {};
        state.expect((name, registry), "keyVerifier", call, key_verifier).await?;
        let stakes = if config.member_stake_wei == 0 { Address::ZERO } else { self.at(STAKES) };
        let call = CommitteeRegistry::stakesCall {};
        state.expect((name, registry), "stakes", call, stakes).await?;

        let queue = ("ForcedQueue", forced_queue);
        let call = ForcedQueue::feePerByteWeiCall {};
        state.expect(queue, "feePerByteWei", call, config.forced_fee_per_byte_wei).await?;
        let call = ForcedQueue::minGasPriceWeiCall {};
        state.expect(queue, "minGasPriceWei", call, config.forced_gas_price_wei).await?;
        let call = FeeVault::claimDelayCall {};
        state.expect(("FeeVault", fee_vault), "claimDelay", call, config.claim_delay).await?;
        let hints = ("HintRegistry", hint_registry);
        let call = HintRegistry::publisherBondCall {};
        state.expect(hints, "publisherBond", call, config.publisher_bond_wei).await?;
        let call = HintRegistry::challengeStakeCall {};
        state.expect(hints, "challengeStake", call, config.challenge_stake_wei).await?;
        let (portal, field) = (("DepositPortal", portal), "takesDepositsWithoutOutlet");
        let call = DepositPortal::takesDepositsWithoutOutletCall {};
        state.expect(portal, field, call, config.deposits_without_outlet).await?;

        // Without settings: only its kind answers.
        let call = HintVerifier::MAX_MESSAGE_BYTESCall {};
        state.ask("HintVerifier", hint_verifier, "MAX_MESSAGE_BYTES", call).await?;
        if config.member_stake_wei != 0 {
            let stakes = ("MemberStakes", stakes);
            state.expect(stakes, "registry", MemberStakes::registryCall {}, registry).await?;
            let call = MemberStakes::inboxCall {};
            state.expect(stakes, "inbox", call, self.addresses.inbox).await?;
            let wei = stake(config.member_stake_wei)?;
            state.expect(stakes, "stakeWei", MemberStakes::stakeWeiCall {}, wei).await?;
        }
        Ok(())
    }

    /// Where the account's contract is that comes so many after the first.
    fn at(&self, later: u64) -> Address {
        self.deployer.create(self.nonce.saturating_add(later))
    }
}

/// What a member has at stake, as the contract counts it.
fn stake(wei: u128) -> Result<Uint<96, 2>, L1Error> {
    Uint::try_from(wei).map_err(|_| L1Error::StakeTooLarge { wei })
}

/// Sends the contract until it stands: one that gets into no block is replaced by one with a higher fee. Gives a block
/// after which it stands.
async fn create(rpc: &Rpc, sender: &Sender, creation: &Creation, nonce: u64) -> Result<u64, BrokenOff> {
    let Creation { name, address, ref code } = *creation;
    let account = sender.address();
    let mut attempts = 1..=CREATE_ATTEMPTS;
    loop {
        // An earlier try's may be in a block by now.
        let state = StateAt::newest(rpc).await?;
        if state.has_code(address).await? {
            return Ok(state.number);
        }
        let next = state.nonce(account).await?;
        if next > nonce {
            let error = L1Error::NonceUsed { name, address, account, nonce };
            let is_final = is_used_for_good(rpc, address, account, nonce).await.unwrap_or(false);
            return Err(BrokenOff { error, has_sent: false, is_final });
        }
        if next < nonce {
            return Err(L1Error::Behind { account, expected: nonce, given: next }.into());
        }
        let (to, value, blobs, input) = (TxKind::Create, U256::ZERO, Vec::new(), code.clone());
        // With another nonce it would take another contract's place.
        let call =
            Call { name, to, value, input, blobs, size_limit_bytes: None, nonce: Some(nonce), data: None };
        match (sender.send(call).await, attempts.next()) {
            (Ok(sent), _) => return Ok(sent.block),
            (Err(error), Some(_)) if is_in_the_way(&error) => {}
            // An earlier one got into a block meanwhile: it should be this very contract.
            (Err(error), Some(_)) if is_used_nonce(&error) => {
                tokio::time::sleep(Duration::from_millis(USED_NONCE_PAUSE_MS)).await;
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
}

/// Whether something else has the contract's nonce in a final block.
async fn is_used_for_good(
    rpc: &Rpc,
    address: Address,
    account: Address,
    nonce: u64,
) -> Result<bool, L1Error> {
    let Some(state) = StateAt::finalized(rpc).await? else { return Ok(false) };
    Ok(state.nonce(account).await? > nonce && !state.has_code(address).await?)
}

/// Whether an earlier transaction of the same nonce, or this one itself, waits for a block.
fn is_in_the_way(error: &L1Error) -> bool {
    match error {
        L1Error::Unconfirmed { .. } => true,
        L1Error::Rpc { message, .. } => message.contains("underpriced"),
        _ => false,
    }
}

/// Whether L1 has a transaction of the same nonce in a block.
fn is_used_nonce(error: &L1Error) -> bool {
    matches!(error, L1Error::Rpc { message, .. } if message.to_lowercase().contains("nonce too low"))
}

/// Every contract's code with its constructor's arguments, in the order of the addresses.
fn codes(
    config: &DeployConfig,
    addresses: &Addresses,
    key_verifier: Address,
    stakes: Address,
) -> Result<Vec<(&'static str, Bytes)>, L1Error> {
    let Addresses { registry, forced_queue: queue, inbox, hint_verifier: verifier, .. } = *addresses;
    let with = |code: &Bytes, arguments: Vec<u8>| Bytes::from([code.as_ref(), &arguments].concat());
    let committees = config.committees;
    let settings = CommitteeRegistry::RegistrySettings {
        epochNotice: committees.epoch_notice,
        switchLead: committees.switch_lead,
        minMembers: committees.min_members,
        minThreshold: committees.min_threshold,
    };
    let arguments = CommitteeRegistry::constructorCall {
        governor_: config.governor,
        inbox_: inbox,
        sequencer_: config.sequencer,
        keyVerifier_: key_verifier,
        stakes_: if config.member_stake_wei == 0 { Address::ZERO } else { stakes },
        settings,
    };
    let mut codes = vec![("CommitteeRegistry", with(&CommitteeRegistry::BYTECODE, arguments.abi_encode()))];
    let arguments = ForcedQueue::constructorCall {
        inbox_: inbox,
        registry_: registry,
        feePerByteWei_: config.forced_fee_per_byte_wei,
        minGasPriceWei_: config.forced_gas_price_wei,
    };
    codes.push(("ForcedQueue", with(&ForcedQueue::BYTECODE, arguments.abi_encode())));
    let arguments =
        BlindedInbox::constructorCall { registry_: registry, queue_: queue, timing_: timing(&config.timing) };
    codes.push(("BlindedInbox", with(&BlindedInbox::BYTECODE, arguments.abi_encode())));
    let arguments =
        FeeVault::constructorCall { inbox_: inbox, registry_: registry, claimDelay_: config.claim_delay };
    codes.push(("FeeVault", with(&FeeVault::BYTECODE, arguments.abi_encode())));
    codes.push(("HintVerifier", HintVerifier::BYTECODE.clone()));
    let arguments = HintRegistry::constructorCall {
        inbox_: inbox,
        registry_: registry,
        verifier_: verifier,
        publisherBond_: config.publisher_bond_wei,
        challengeStake_: config.challenge_stake_wei,
    };
    codes.push(("HintRegistry", with(&HintRegistry::BYTECODE, arguments.abi_encode())));
    let arguments = DepositPortal::constructorCall {
        governor_: config.governor,
        takesDepositsWithoutOutlet_: config.deposits_without_outlet,
    };
    codes.push(("DepositPortal", with(&DepositPortal::BYTECODE, arguments.abi_encode())));
    let arguments = OutputRegistry::constructorCall { inbox_: inbox };
    codes.push(("OutputRegistry", with(&OutputRegistry::BYTECODE, arguments.abi_encode())));
    codes.push(("EncryptionKeyVerifier", EncryptionKeyVerifier::BYTECODE.clone()));
    if config.member_stake_wei != 0 {
        let wei = stake(config.member_stake_wei)?;
        let arguments = MemberStakes::constructorCall { registry_: registry, inbox_: inbox, stakeWei_: wei };
        codes.push(("MemberStakes", with(&MemberStakes::BYTECODE, arguments.abi_encode())));
    }
    Ok(codes)
}

/// Deploys the contracts from the account of `key`, which must send nothing else meanwhile. Whoever cannot afford to lose a
/// deployment that breaks off keeps the [`DeployPlan`].
///
/// # Errors
/// As [`DeployPlan::new`] and [`DeployPlan::carry_out`].
pub async fn deploy(url: &str, key: &SigningKey, config: DeployConfig) -> Result<Addresses, L1Error> {
    let plan = DeployPlan::new(url, key.address(), &config).await?;
    plan.carry_out(url, key).await.map_err(|broken_off| broken_off.error)?;
    Ok(*plan.addresses())
}

#[cfg(test)]
#[path = "deploy_plan_tests.rs"]
mod tests;
