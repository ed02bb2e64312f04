//! What owners sign: EIP-712 structs in the domain "Blindfold Confidential".
//!
//! Transfers, refreshes and withdrawals carry no signature: whoever knows the account's secret may spend, and the proof
//! binds everything that a signature would.

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_sol_types::{Eip712Domain, SolStruct, sol};
use blindfold_protocol::signature::{Signature65, SigningKey, recover};

use super::codec::element_bytes;
use super::{ConfidentialTransaction, VERSION};
use crate::statement::Domain;
use crate::tags;

sol! {
    /// What an owner signs to open an account.
    #[derive(Debug, PartialEq, Eq)]
    struct Registration {
        uint8 version;
        uint64 chainId;
        address owner;
        bytes32 keyHash;
        bytes32 secretCommitment;
    }

    /// Moves a public amount into an account.
    #[derive(Debug, PartialEq, Eq)]
    struct Deposit {
        uint8 version;
        uint64 chainId;
        address from;
        address account;
        uint64 amount;
        uint64 nonce;
    }

    /// Adds an account's pending balance to the available one.
    #[derive(Debug, PartialEq, Eq)]
    struct Rollover {
        uint8 version;
        uint64 chainId;
        address account;
        uint64 nonce;
    }
}

impl Domain {
    /// The EIP-712 domain of everything signed for the deployment. The rollup's chain id stands in the structs.
    #[must_use]
    pub fn eip712(&self) -> Eip712Domain {
        Eip712Domain::new(
            Some(tags::EIP712_NAME.into()),
            Some(tags::EIP712_VERSION.into()),
            Some(U256::from(self.l1_chain_id)),
            Some(self.contract),
            None,
        )
    }

    fn digest(&self, signed: &impl SolStruct) -> B256 {
        signed.eip712_signing_hash(&self.eip712())
    }
}

impl ConfidentialTransaction {
    /// What is signed, and by whom; `None` for kinds without a signature.
    #[must_use]
    pub fn signing(&self, domain: &Domain) -> Option<(B256, Address)> {
        let (version, chain) = (VERSION, domain.chain_id);
        match self {
            Self::Register(register) => {
                let signed = Registration {
                    version,
                    chainId: chain,
                    owner: register.owner,
                    keyHash: keccak256(register.key.encode()),
                    secretCommitment: B256::from_slice(&element_bytes(&register.secret_commitment)),
                };
                Some((domain.digest(&signed), register.owner))
            }
            Self::Deposit(deposit) => {
                let signed = Deposit {
                    version,
                    chainId: chain,
                    from: deposit.from,
                    account: deposit.account,
                    amount: deposit.amount,
                    nonce: deposit.nonce,
                };
                Some((domain.digest(&signed), deposit.from))
            }
            Self::Rollover(rollover) => {
                let signed =
                    Rollover { version, chainId: chain, account: rollover.account, nonce: rollover.nonce };
                Some((domain.digest(&signed), rollover.account))
            }
            Self::Transfer(_) | Self::Refresh(_) | Self::Withdraw(_) => None,
        }
    }

    /// Signs in place, where the kind has a signature.
    pub fn sign(&mut self, domain: &Domain, key: &SigningKey) {
        let Some((digest, _)) = self.signing(domain) else { return };
        let signed = key.sign(&digest);
        match self {
            Self::Register(register) => register.signature = signed,
            Self::Deposit(deposit) => deposit.signature = signed,
            Self::Rollover(rollover) => rollover.signature = signed,
            Self::Transfer(_) | Self::Refresh(_) | Self::Withdraw(_) => {}
        }
    }

    /// Whether the signature, where the kind has one, is that of whom it must be. One recovery on secp256k1.
    #[must_use]
    pub fn is_signed(&self, domain: &Domain) -> bool {
        match (self.signing(domain), self.signature()) {
            (Some((digest, signer)), Some(signature)) => recover(&digest, signature) == Ok(signer),
            _ => true,
        }
    }

    fn signature(&self) -> Option<&Signature65> {
        match self {
            Self::Register(register) => Some(&register.signature),
            Self::Deposit(deposit) => Some(&deposit.signature),
            Self::Rollover(rollover) => Some(&rollover.signature),
            Self::Transfer(_) | Self::Refresh(_) | Self::Withdraw(_) => None,
        }
    }
}
