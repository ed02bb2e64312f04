//! A real node and signed transactions for it. Each test binary uses its own part of this.
#![allow(dead_code)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{BufMut, Encodable, Header};
use blindfold_engine::{BlockInputs, Genesis, L1Origin, ManagedNode, ManagedNodeConfig};
use k256::ecdsa::SigningKey;

pub const CHAIN_ID: u64 = 77_001;
pub const GAS_LIMIT: u64 = 200_000_000;
pub const TRANSFER_GAS: u64 = 21_000;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The node's binary: `$BLINDFOLD_NODE`, else built by the script (which is quick when nothing changed).
pub fn node_binary() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    if std::env::var_os("BLINDFOLD_NODE").is_none() {
        BUILT.get_or_init(|| {
            let status = Command::new(repository().join("scripts/build-node")).status();
            assert!(status.expect("scripts/build-node runs").success(), "scripts/build-node failed");
        });
    }
    ManagedNodeConfig::default_binary(&repository())
}

/// Starts a fresh node in `folder`.
pub async fn start(folder: &Path, genesis: serde_json::Value) -> ManagedNode {
    ManagedNode::start(ManagedNodeConfig::new(node_binary(), folder, genesis)).await.unwrap()
}

pub fn inputs(timestamp: u64) -> BlockInputs {
    BlockInputs {
        timestamp,
        prev_randao: keccak256(timestamp.to_be_bytes()),
        fee_recipient: Address::repeat_byte(0xfe),
        gas_limit: GAS_LIMIT,
        l1_origin: L1Origin {
            number: 1,
            hash: B256::repeat_byte(0x11),
            timestamp: 5,
            base_fee: 1_000_000_000,
            blob_base_fee: 1,
            parent_beacon_block_root: B256::repeat_byte(0xbe),
        },
        sequence_number: timestamp,
        l1_deposits: Vec::new(),
    }
}

/// An account that signs.
pub struct Wallet {
    key: SigningKey,
    pub address: Address,
}

impl Wallet {
    pub fn new(seed: u8) -> Self {
        let key = SigningKey::from_slice(keccak256([seed]).as_slice()).unwrap();
        let point = key.verifying_key().to_sec1_point(false);
        let address = Address::from_slice(&keccak256(&point.as_bytes()[1..])[12..]);
        Self { key, address }
    }

    /// A transfer of type 2 at 1 gwei per gas, 1 wei of it for the fee recipient.
    pub fn transfer(&self, nonce: u64, to: Address, wei: u64) -> Bytes {
        self.send(nonce, to, wei, TRANSFER_GAS, &[])
    }

    pub fn send(&self, nonce: u64, to: Address, wei: u64, gas: u64, data: &[u8]) -> Bytes {
        let mut fields = Vec::new();
        for number in [CHAIN_ID, nonce, 1, 1_000_000_000, gas] {
            number.encode(&mut fields);
        }
        to.encode(&mut fields);
        wei.encode(&mut fields);
        data.encode(&mut fields);
        fields.put_u8(0xc0); // no access list
        let unsigned = envelope(&fields);
        let (signature, recovery) = self.key.sign_prehash_recoverable(keccak256(&unsigned).as_slice());
        u64::from(recovery.to_byte()).encode(&mut fields);
        for half in signature.to_bytes().chunks(32) {
            let start = half.iter().position(|&byte| byte != 0).unwrap_or(32);
            half[start..].encode(&mut fields);
        }
        envelope(&fields).into()
    }
}

fn envelope(fields: &[u8]) -> Vec<u8> {
    let mut raw = vec![0x02];
    Header { list: true, payload_length: fields.len() }.encode(&mut raw);
    raw.extend_from_slice(fields);
    raw
}

/// A genesis in which these wallets hold one ether each.
pub fn genesis(wallets: &[&Wallet]) -> serde_json::Value {
    let ether = U256::from(10).pow(U256::from(18));
    Genesis::new(CHAIN_ID, GAS_LIMIT, wallets.iter().map(|wallet| (wallet.address, ether)).collect())
}
