//! The coprocessor's methods and their JSON objects.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes};
use jsonrpsee::proc_macros::rpc;
use serde::{Deserialize, Serialize};

use crate::RpcError;

/// What the coprocessor serves.
#[rpc(server, client, namespace = "confidential")]
pub trait ConfidentialApi {
    /// Where the server stands.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<ConfidentialStatus, RpcError>;

    /// What every party of the deployment must agree on.
    #[method(name = "getParameters")]
    async fn get_parameters(&self) -> Result<ConfidentialParameters, RpcError>;

    /// A confidential account with its proof, at the newest version or at one that ends a batch; null for an owner
    /// without one.
    #[method(name = "getAccount")]
    async fn get_account(
        &self,
        owner: Address,
        version: Option<u64>,
    ) -> Result<Option<ConfidentialAccount>, RpcError>;

    /// An owner's public balance; zeros for one that never had any.
    #[method(name = "getPublicBalance")]
    async fn get_public_balance(&self, owner: Address) -> Result<PublicBalance, RpcError>;

    /// What became of a transaction; null while it is in no executed batch.
    #[method(name = "getTransaction")]
    async fn get_transaction(&self, id: B256) -> Result<Option<ConfidentialTransactionInfo>, RpcError>;

    /// The transactions that an owner takes part in, by sequence from `from` on.
    #[method(name = "getTransfers")]
    async fn get_transfers(
        &self,
        owner: Address,
        from: u64,
        limit: Option<u64>,
    ) -> Result<Vec<ConfidentialTransactionInfo>, RpcError>;

    /// The state root of a version; null for one that is not reached.
    #[method(name = "getStateRoot")]
    async fn get_state_root(&self, version: u64) -> Result<Option<B256>, RpcError>;

    /// The masked total of an invoice, from key, quantities and prices as their encodings have them and the supplier's
    /// seed of the mask. Nothing of it is kept.
    #[method(name = "getInvoiceTotal")]
    async fn get_invoice_total(
        &self,
        key: Bytes,
        quantities: Bytes,
        prices: Bytes,
        mask_seed: B256,
    ) -> Result<Bytes, RpcError>;
}

/// Where the coprocessor stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialStatus {
    /// The program's version.
    pub release: String,
    /// The newest batch that is certified here.
    pub certified: u64,
    /// The newest executed batch up to which everything can be derived from L1 alone.
    pub safe: u64,
    /// The newest executed batch up to which nothing on L1 can change any more what it holds.
    pub finalized: u64,
    /// The newest batch that is executed.
    pub batch: u64,
    /// Its header hash.
    pub batch_hash: B256,
    /// Confidential transactions up to now.
    pub sequence: u64,
    /// Those of them that were applied.
    pub version: u64,
    /// Confidential accounts.
    pub accounts: u32,
    /// What all accounts hold together, in base units.
    pub confidential: u64,
    /// The state root.
    pub state_root: B256,
    /// What execution is doing: `waiting`, `waiting_for_hints`, `executing`, `retrying`, `halted`, `stopped`.
    pub state: String,
    /// Why it is retrying or halted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Counts by stable name.
    pub counters: BTreeMap<String, u64>,
}

/// What every party of a deployment must agree on. A wallet takes it from a file, and compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialParameters {
    /// Chain id of L1.
    pub l1_chain_id: u64,
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// The contract of the deployment.
    pub contract: Address,
    /// The seed of the public polynomial a.
    pub seed: B256,
    /// The auditor's public key, packed.
    pub auditor_key: Bytes,
    /// Who earns the fees.
    pub operator: Address,
    /// The least fee of a transfer, in base units.
    pub minimum_fee: u64,
    /// Additions that the ciphertexts of one account may hold together.
    pub counter_limit: u32,
    /// Hashes of the verifying keys, by circuit.
    pub verifying_keys: BTreeMap<String, B256>,
    /// Whether they come from a development set-up: whoever made it can forge proofs.
    pub development_setup: bool,
}

/// A ciphertext of an account's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialCiphertext {
    /// c1, packed.
    pub c1: Bytes,
    /// c0 at the limbs, packed.
    pub c0: Bytes,
    /// Additions that it holds.
    pub counter: u32,
}

/// A confidential account at a version, with its proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialAccount {
    /// Whose it is.
    pub owner: Address,
    /// Its place in the tree.
    pub index: u32,
    /// Its nonce.
    pub nonce: u64,
    /// Its public key, packed.
    pub public_key: Bytes,
    /// The commitment to its secret.
    pub secret_commitment: B256,
    /// What its owner can spend.
    pub available: ConfidentialCiphertext,
    /// What it has been given since the last rollover.
    pub pending: ConfidentialCiphertext,
    /// Siblings of its leaf, from the leaves upwards.
    pub siblings: Vec<B256>,
    /// The version.
    pub version: u64,
    /// Confidential accounts at that version.
    pub accounts: u32,
    /// Root of the tree of accounts.
    pub accounts_root: B256,
    /// Public balances at that version.
    pub public_accounts: u32,
    /// Root of the tree of public balances.
    pub public_root: B256,
    /// The state root.
    pub state_root: B256,
}

/// A public balance of the coprocessor's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicBalance {
    /// Whose it is.
    pub owner: Address,
    /// Base units.
    pub balance: u64,
    /// The nonce of its next deposit.
    pub nonce: u64,
}

/// How far a batch stands on L1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Certified and executed; it may still give way to a header that L1 makes.
    Latest,
    /// Everything up to it can be derived from L1 alone.
    Safe,
    /// Nothing on L1 can change it any more.
    Finalized,
}

/// What became of a confidential transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialTransactionInfo {
    /// Its id.
    pub id: B256,
    /// Its place in the order of all confidential transactions, from 1.
    pub sequence: u64,
    /// The version after it.
    pub version: u64,
    /// The batch.
    pub number: u64,
    /// How far that batch stands on L1.
    pub standing: Standing,
    /// The item of the batch.
    pub item: u32,
    /// The place in that item's bundle.
    pub position: u16,
    /// `register`, `deposit`, `transfer`, `rollover`, `refresh` or `withdraw`; none where it is no transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether it was applied.
    pub applied: bool,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The transaction as it was committed.
    pub transaction: Bytes,
    /// The state root after it.
    pub state_root: B256,
}
