//! What a deployment sends, decided before anything is paid for.

use alloy_primitives::{Address, B256, Bytes, Keccak256, TxKind, U64, U256, Uint};
use alloy_sol_types::SolConstructor;
use blindfold_protocol::SigningKey;
use serde_json::json;

use crate::{
    Addresses, DeployConfig, L1Client, L1Error,
    config::DEFAULT_CONFIRMATION_TIMEOUT_MS,
    contracts::{
        BlindedInbox, CommitteeRegistry, DepositPortal, EncryptionKeyVerifier, FeeVault, ForcedQueue,
        HintRegistry, HintVerifier, MemberStakes, OutputRegistry,
    },
    deploy::timing,
    fees::Fees,
    sender::{Call, Sender},
    transport::Rpc,
};

/// Calls during a deployment may take this long.
const REQUEST_TIMEOUT_MS: u64 = 30_000;
/// How often one contract is sent, each time with a higher fee, before the deployment is broken off.
const CREATE_ATTEMPTS: usize = 8;

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
    creations: Vec<Creation>,
    /// How long to wait for a transaction before another one takes its place.
    pub confirmation_timeout_ms: u64,
}

#[derive(Clone, Debug)]
struct Creation {
    name: &'static str,
    address: Address,
    /// With the constructor's arguments.
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

/// What a deployment may cost from here on, and what there is; in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployFunds {
    /// At twice L1's present base fee, which every transaction offers.
    pub needed: U256,
    /// What the account has.
    pub balance: U256,
}

impl DeployPlan {
    /// A new deployment by this account, which must send nothing else until it is complete: some contracts are told the
    /// address of another before that one exists.
    ///
    /// # Errors
    /// [`L1Error::WrongChain`]; as [`DeployPlan::again`]; the errors of a call.
    pub async fn new(url: &str, deployer: Address, config: &DeployConfig) -> Result<Self, L1Error> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        let given = rpc.chain_id().await?;
        if given != config.l1_chain_id {
            return Err(L1Error::WrongChain { expected: config.l1_chain_id, given });
        }
        let newest: U64 = rpc.call("eth_blockNumber", ()).await?;
        let nonce = crate::fees::nonce(&rpc, deployer).await?;
        Self::again(deployer, nonce, newest.to::<u64>().saturating_add(1), config)
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
        let creations = (0..).zip(codes(config, &addresses, at(8), at(9))?);
        let creations = creations.map(|(later, (name, code))| Creation { name, address: at(later), code });
        Ok(Self {
            deployer,
            nonce,
            addresses,
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
        let mut gas = 0;
        for creation in &self.creations {
            if !has_code(&rpc, creation.address).await? {
                gas += creation.gas();
            }
        }
        let price = Fees::fresh(&rpc, self.nonce, false).await?.max_fee;
        let balance: U256 = rpc.call("eth_getBalance", json!([self.deployer, "latest"])).await?;
        Ok(DeployFunds { needed: U256::from(gas).saturating_mul(U256::from(price)), balance })
    }

    /// Whether the account sent nothing since the plan was made, as far as the endpoint knows.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn is_untouched(&self, url: &str) -> Result<bool, L1Error> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        let pending: U64 = rpc.call("eth_getTransactionCount", json!([self.deployer, "pending"])).await?;
        Ok(pending.to::<u64>() == self.nonce)
    }

    /// Brings up every contract that does not stand yet, then checks that each is where it should be and names the others.
    ///
    /// # Errors
    /// [`L1Error::WrongChain`]; [`L1Error::NonceUsed`] when the account sent something else; [`L1Error::Reverted`] for
    /// settings that a contract refuses; the errors of a call. After a transient one the same plan may be carried out again.
    pub async fn carry_out(&self, url: &str, key: &SigningKey) -> Result<(), L1Error> {
        let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
        let (expected, given) = (self.addresses.l1_chain_id, rpc.chain_id().await?);
        if given != expected {
            return Err(L1Error::WrongChain { expected, given });
        }
        let sender = Sender::new(rpc.clone(), expected, key.clone(), self.confirmation_timeout_ms);
        for (nonce, creation) in (self.nonce..).zip(&self.creations) {
            create(&rpc, &sender, creation, nonce).await?;
        }
        L1Client::connect(self.addresses.client_config(url)).await.map(drop)
    }
}

async fn has_code(rpc: &Rpc, address: Address) -> Result<bool, L1Error> {
    let code: Bytes = rpc.call("eth_getCode", json!([address, "latest"])).await?;
    Ok(!code.is_empty())
}

/// Sends the contract until it stands: one that gets into no block is replaced by one with a higher fee.
async fn create(rpc: &Rpc, sender: &Sender, creation: &Creation, nonce: u64) -> Result<(), L1Error> {
    let Creation { name, address, ref code } = *creation;
    let mut attempts = 1..=CREATE_ATTEMPTS;
    loop {
        // An earlier try's may be in a block by now.
        if has_code(rpc, address).await? {
            return Ok(());
        }
        let next = sender.nonce().await?;
        if next > nonce {
            return Err(L1Error::NonceUsed { name, address, account: sender.address(), nonce });
        }
        if next < nonce {
            let reason = format!("{next} where {nonce} are in blocks: the endpoint is behind, try again");
            return Err(L1Error::Malformed { method: "eth_getTransactionCount".to_owned(), reason });
        }
        let (to, value, blobs, input) = (TxKind::Create, U256::ZERO, Vec::new(), code.clone());
        let call = Call { name, to, value, input, blobs, size_limit_bytes: None };
        match (sender.send(call).await, attempts.next()) {
            (Ok(_), _) => return Ok(()),
            (Err(error), Some(_)) if is_in_the_way(&error) => {}
            (Err(error), _) => return Err(error),
        }
    }
}

/// Whether an earlier transaction of the same nonce, or this one itself, waits for a block.
fn is_in_the_way(error: &L1Error) -> bool {
    match error {
        L1Error::Unconfirmed { .. } => true,
        L1Error::Rpc { message, .. } => message.contains("underpriced"),
        _ => false,
    }
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
        let wei = config.member_stake_wei;
        let stake = Uint::<96, 2>::try_from(wei).map_err(|_| L1Error::StakeTooLarge { wei })?;
        let arguments =
            MemberStakes::constructorCall { registry_: registry, inbox_: inbox, stakeWei_: stake };
        codes.push(("MemberStakes", with(&MemberStakes::BYTECODE, arguments.abi_encode())));
    }
    Ok(codes)
}
