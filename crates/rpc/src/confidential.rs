//! The coprocessor's methods and their JSON objects.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes};
use jsonrpsee::proc_macros::rpc;
use serde::{Deserialize, Serialize};

use crate::RpcError;

/// The methods `confidential_*`, which a coprocessor serves.
#[rpc(server, client, namespace = "confidential")]
pub trait ConfidentialApi {
    /// Where the coprocessor stands: how far execution is, and counters.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<ConfidentialStatus, RpcError>;

    /// What every party of the deployment must agree on.
    #[method(name = "getParameters")]
    async fn get_parameters(&self) -> Result<ConfidentialParameters, RpcError>;

    /// A confidential account with its proof; null for an owner without one. It is that at the newest version, or at one
    /// that ends a batch.
    ///
    /// # Parameters
    /// - `owner`: whose.
    /// - `version`: at the end of which batch; the newest version by default.
    ///
    /// # Errors
    /// - `version_not_reached`: the version is not reached yet.
    /// - `version_not_kept`: accounts of this version are not kept: they are at the ends of batches. The message names
    ///   the next version that is.
    #[method(name = "getAccount")]
    async fn get_account(
        &self,
        owner: Address,
        version: Option<u64>,
    ) -> Result<Option<ConfidentialAccount>, RpcError>;

    /// An owner's public balance; zeros for one that never had any.
    ///
    /// # Parameters
    /// - `owner`: whose.
    #[method(name = "getPublicBalance")]
    async fn get_public_balance(&self, owner: Address) -> Result<PublicBalance, RpcError>;

    /// What became of a transaction; null while it is in no executed batch.
    ///
    /// # Parameters
    /// - `id`: the transaction's id.
    #[method(name = "getTransaction")]
    async fn get_transaction(&self, id: B256) -> Result<Option<ConfidentialTransactionInfo>, RpcError>;

    /// The applied transactions that an owner takes part in, by sequence.
    ///
    /// # Parameters
    /// - `owner`: whose.
    /// - `from`: the first sequence.
    /// - `limit`: how many at most; 64 by default and at most.
    #[method(name = "getTransfers")]
    async fn get_transfers(
        &self,
        owner: Address,
        from: u64,
        limit: Option<u64>,
    ) -> Result<Vec<ConfidentialTransactionInfo>, RpcError>;

    /// The state root of a version; null for one that is not reached.
    ///
    /// # Parameters
    /// - `version`: the version.
    #[method(name = "getStateRoot")]
    async fn get_state_root(&self, version: u64) -> Result<Option<B256>, RpcError>;

    /// The masked total of an invoice, for the payer to open: 165,984 bytes. Stateless: nothing of it is kept, and the
    /// same parameters give the same bytes at every coprocessor of the deployment. The caller is the supplier: the payer
    /// must see neither `prices` nor `maskSeed`, as his secret opens them (coprocessor.md#invoices). Requests have up to
    /// 3 MiB here.
    ///
    /// # Parameters
    /// - `key`: the payer's key for this order: for each of three plaintext moduli public key and relinearization key,
    ///   829,440 bytes.
    /// - `quantities`: the encrypted quantities, 331,830 bytes.
    /// - `prices`: the encrypted prices, 331,830 bytes.
    /// - `mask_seed`: the supplier's random seed of the mask.
    ///
    /// # Errors
    /// - `invalid_key`, `invalid_quantities`, `invalid_prices`: key, quantities or prices are no such encoding, or not of
    ///   this deployment's parameters.
    /// - `invoices_busy`: as many totals as the server computes at once are being computed.
    #[method(name = "getInvoiceTotal")]
    async fn get_invoice_total(
        &self,
        key: Bytes,
        quantities: Bytes,
        prices: Bytes,
        mask_seed: B256,
    ) -> Result<Bytes, RpcError>;
}

/// How far the coprocessor is: result of `confidential_getStatus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialStatus {
    /// Version of the program that answers.
    pub release: String,
    /// The newest batch that is certified here.
    pub certified: u64,
    /// The newest executed batch up to which everything can be derived from L1 alone.
    pub safe: u64,
    /// The newest executed batch up to which nothing on L1 can change any more what it holds.
    pub finalized: u64,
    /// The newest batch that is executed.
    pub batch: u64,
    /// Header hash of that batch.
    pub batch_hash: B256,
    /// How many confidential transactions stand in the order up to that batch, refused ones included.
    pub sequence: u64,
    /// How many of those were applied: the state's version.
    pub version: u64,
    /// How many confidential accounts there are.
    pub accounts: u32,
    /// What all accounts hold together, in base units.
    pub confidential: u64,
    /// Root of the whole state at that version.
    pub state_root: B256,
    /// What execution is doing: one of `waiting`, `waiting_for_hints`, `executing`, `retrying`, `halted`, `stopped`.
    pub state: String,
    /// Why it is retrying or halted, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Counts since the start of the process, by stable names.
    pub counters: BTreeMap<String, u64>,
}

/// What every party of a deployment must agree on. A wallet takes it from its `confidential.json`, and compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialParameters {
    /// Chain id of L1.
    pub l1_chain_id: u64,
    /// Chain id of the rollup, which confidential transactions name.
    pub chain_id: u64,
    /// The contract of the deployment.
    pub contract: Address,
    /// The seed of the public polynomial a.
    pub seed: B256,
    /// The auditor's public key, packed: 13,824 bytes.
    pub auditor_key: Bytes,
    /// The account that earns the fees.
    pub operator: Address,
    /// The least fee of a transfer and the least deposit, in base units.
    pub minimum_fee: u64,
    /// Additions that a ciphertext may hold.
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
    /// The component c1, packed: 13,824 bytes.
    pub c1: Bytes,
    /// The component c0 at the limbs, packed: 54 bytes.
    pub c0: Bytes,
    /// Additions that it holds.
    pub counter: u32,
}

/// A confidential account at a version, with its proof. Leaf and roots: coprocessor.md.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialAccount {
    /// Address of the owner.
    pub owner: Address,
    /// Its place in the tree of confidential accounts.
    pub index: u32,
    /// How many transactions it has made, registration aside.
    pub nonce: u64,
    /// The account's public key, packed: 13,824 bytes.
    pub public_key: Bytes,
    /// The commitment to its secret key.
    pub secret_commitment: B256,
    /// What its owner can spend.
    pub available: ConfidentialCiphertext,
    /// What it has been given since the last rollover.
    pub pending: ConfidentialCiphertext,
    /// Siblings of its leaf, from the leaves upwards: 32.
    pub siblings: Vec<B256>,
    /// The version that all of it is of.
    pub version: u64,
    /// Confidential accounts at that version.
    pub accounts: u32,
    /// Root of the tree of accounts.
    pub accounts_root: B256,
    /// Public balances at that version.
    pub public_accounts: u32,
    /// Root of the tree of public balances.
    pub public_root: B256,
    /// Root of the whole state at that version.
    pub state_root: B256,
}

/// A public balance of the coprocessor's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicBalance {
    /// Address of the owner.
    pub owner: Address,
    /// The balance, in base units.
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
    /// Its id, by which it is asked for.
    pub id: B256,
    /// Its place in the order of all confidential transactions, from 1.
    pub sequence: u64,
    /// The state's version after it.
    pub version: u64,
    /// Number of the batch that holds it.
    pub number: u64,
    /// How far that batch stands on L1.
    pub standing: Standing,
    /// The item of the batch.
    pub item: u32,
    /// The place in that item's bundle.
    pub position: u16,
    /// One of `register`, `deposit`, `transfer`, `rollover`, `refresh`, `withdraw`; none where it is no transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether it was applied to the state.
    pub applied: bool,
    /// Why it was not applied: a reason of coprocessor.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The transaction as it was committed.
    pub transaction: Bytes,
    /// The state root after it.
    pub state_root: B256,
}
