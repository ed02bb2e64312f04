//! The JSON objects of `docs/protocol.md`. Field names are camelCase; what a caller sends refuses unknown fields.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256};
use blindfold_protocol::{BatchHints, Certificate, Deployment, Promise, Release, SealedBatch};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{Encoded, encoded::quantity, limits::MAX_TEXT_BYTES};

/// One epoch's encryption key, as `blind_getEncryptionKey` tells it. A client believes only hashes it has from L1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionKeyInfo {
    /// The epoch.
    pub epoch: u64,
    /// Its first batch number.
    pub first_number: u64,
    /// Its last batch number.
    pub last_number: u64,
    /// The key.
    pub encryption_key: alloy_primitives::Bytes,
    /// SHA-256 of the key, as registered on L1.
    pub encryption_key_hash: B256,
    /// Hash of the public parameters, as registered on L1.
    pub parameters_hash: B256,
    /// Where the parameter file can be had (path or URL).
    pub parameters_location: String,
}

/// Second parameter of `blind_sendEnvelope`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendOptions {
    /// Ask for a signed promise.
    #[serde(default)]
    pub promise: bool,
}

/// Result of `blind_sendEnvelope`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentEnvelope {
    /// The envelope id.
    pub id: B256,
    /// The promise, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Encoded<Promise>>,
}

/// States of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeState {
    /// Admitted, not in a batch yet.
    Pending,
    /// In a signed header.
    Sealed,
    /// Its header has a certificate.
    Certified,
    /// Its batch was executed and the envelope was a part of it.
    Executed,
    /// Skipped by rule, with a reason.
    Skipped,
    /// Proved malformed by a singleton release.
    Malformed,
    /// Its expiry passed before it was sealed.
    Expired,
    /// Its batch number was declared void.
    Void,
}

/// States of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// Signed and durable.
    Sealed,
    /// t members acknowledged.
    Certified,
    /// A part of an executed block.
    Executed,
    /// Declared void.
    Void,
}

/// What became of one inner transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionOutcome {
    /// The transaction's hash; null for an item that is no transaction.
    pub hash: Option<B256>,
    /// Whether it stands in the block.
    pub included: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of `blind_getReceipt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The envelope id.
    pub id: B256,
    /// Where it stands.
    pub state: EnvelopeState,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its batch number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its index in the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Its batch's header hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_hash: Option<B256>,
    /// The L2 block that holds its batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_number: Option<u64>,
    /// That block's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_hash: Option<B256>,
    /// What became of the inner transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Vec<TransactionOutcome>>,
}

/// Result of `blind_getBatch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchInfo {
    /// The batch number.
    pub number: u64,
    /// The header hash.
    pub hash: B256,
    /// The header's time.
    pub timestamp_ms: u64,
    /// Where it stands.
    pub state: BatchState,
    /// Header, signature and items.
    pub sealed: Encoded<SealedBatch>,
    /// The certificate, once there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Encoded<Certificate>>,
    /// The release, once there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Encoded<Release>>,
    /// The hints, once there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Encoded<BatchHints>>,
    /// Per item: null for accepted, or why it was skipped.
    pub verdicts: Vec<Option<String>>,
}

/// Result of `blind_getFeeAccount`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeAccount {
    /// The payer.
    pub address: Address,
    /// Wei that may be spent, after the last sealed batch the server knows.
    #[serde(with = "quantity")]
    pub balance: u128,
    /// Wei held as malformed surcharges.
    #[serde(with = "quantity")]
    pub held: u128,
    /// How many fee nonces are used and not expired.
    pub live_nonces: u64,
    /// Wei per byte of the next batch.
    #[serde(with = "quantity")]
    pub base_fee: u128,
    /// Wei per unit of gas that an envelope of the next batch reserves.
    #[serde(with = "quantity")]
    pub gas_base_fee: u128,
    /// Wei held per envelope until its hint is final.
    #[serde(with = "quantity")]
    pub malformed_surcharge: u128,
}

/// Second parameter of `blind_getFeeAccountProof`: after which header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LedgerAt {
    /// A header by its number.
    Number(u64),
    /// A header by where it stands.
    Tag(LedgerTag),
}

/// A header by where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerTag {
    /// The last one posted to L1, as far as the server knows.
    Posted,
    /// The last certified one.
    Certified,
    /// The newest, which may not be certified yet.
    Latest,
}

/// Result of `blind_getFeeAccountProof`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeAccountProof {
    /// The payer.
    pub address: Address,
    /// Wei that can be spent; nothing that waits is subtracted.
    #[serde(with = "quantity")]
    pub balance: u128,
    /// Wei that were withdrawn so far.
    #[serde(with = "quantity")]
    pub withdrawn: u128,
    /// Siblings from the ledger's root down to the account.
    pub siblings: Vec<B256>,
    /// The batch after which the ledger is so.
    pub number: u64,
    /// Its header hash.
    pub header_hash: B256,
}

/// The newest batch a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchHead {
    /// The batch number.
    pub number: u64,
    /// The header hash.
    pub hash: B256,
    /// The header's time.
    pub timestamp_ms: u64,
    /// The chain's generation, which an envelope's expiry names: the headers so far that L1 made, modulo 65,536.
    pub generation: u16,
}

/// The newest L2 block a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockHead {
    /// The block number.
    pub number: u64,
    /// The block hash.
    pub hash: B256,
    /// Its second.
    pub timestamp: u64,
}

/// Result of `blind_getStatus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `sequencer` or `full_node`.
    pub role: String,
    /// The program's version.
    pub version: String,
    /// The L2 chain id.
    pub chain_id: u64,
    /// The L1 chain id.
    pub l1_chain_id: u64,
    /// The BlindedInbox.
    pub inbox: Address,
    /// The newest batch.
    pub head: BatchHead,
    /// The newest certified number.
    pub certified: u64,
    /// The newest number up to which every batch has hints, or is executed: what L1 made or voided gets none.
    pub hinted: u64,
    /// The newest number on L1, where the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<u64>,
    /// The newest L2 block.
    pub block: BlockHead,
    /// Envelopes that wait to be sealed (sequencer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_envelopes: Option<u64>,
    /// Wei per byte of the next batch.
    #[serde(with = "quantity")]
    pub base_fee: u128,
    /// Wei per unit of gas that an envelope of the next batch reserves.
    #[serde(with = "quantity")]
    pub gas_base_fee: u128,
    /// Named counts since the start of the process.
    pub counters: BTreeMap<String, u64>,
}

/// A server of another chain, or of another deployment of it. Its word for what it serves, which protects nobody; it tells
/// a wrong URL or a wrong `rollup.json` from a fault of others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "serves another chain: its {field} is {given}, your rollup.json says {expected}; correct the URL or the file"
)]
pub struct OtherChain {
    /// What differs.
    pub field: &'static str,
    /// The server's word.
    pub given: String,
    /// The caller's settings.
    pub expected: String,
}

impl Status {
    /// Whether the server says that it serves this chain of this deployment.
    ///
    /// # Errors
    /// [`OtherChain`].
    pub fn check_chain(&self, chain_id: u64, deployment: &Deployment) -> Result<(), OtherChain> {
        let other = |field, given: String, expected: String| Err(OtherChain { field, given, expected });
        if self.chain_id != chain_id {
            return other("chainId", self.chain_id.to_string(), chain_id.to_string());
        }
        if self.l1_chain_id != deployment.l1_chain_id {
            return other("l1ChainId", self.l1_chain_id.to_string(), deployment.l1_chain_id.to_string());
        }
        if self.inbox != deployment.inbox {
            return other("inbox", self.inbox.to_string(), deployment.inbox.to_string());
        }
        Ok(())
    }
}

/// Parameter of `blind_submitRefusal`: a member says why it does not acknowledge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// The batch number.
    pub number: u64,
    /// The header it refuses.
    pub header_hash: B256,
    /// The member's index, from 1.
    pub member: u16,
    /// Why: a stable snake_case word, perhaps with detail after it; at most [`MAX_TEXT_BYTES`].
    #[serde(deserialize_with = "short_text")]
    pub reason: String,
}

/// One refused header in `committee_getStatus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedHeader {
    /// The batch number.
    pub number: u64,
    /// The header.
    pub header_hash: B256,
    /// Why.
    pub reason: String,
}

/// Result of `committee_getStatus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitteeStatus {
    /// The member's index, from 1.
    pub member: u16,
    /// Its epoch.
    pub epoch: u64,
    /// The newest number it acknowledged.
    pub acknowledged: u64,
    /// The newest certified number it holds.
    pub certified: u64,
    /// The last headers it refused, newest last, bounded.
    pub refusals: Vec<RefusedHeader>,
    /// How often it was shown a second header for a number it had acknowledged.
    pub second_headers_refused: u64,
    /// The first number that it votes for: above 1 for a member whose disk was lost. Missing while it has to ask others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes_from: Option<u64>,
}

/// Result of `committee_getSealed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBatch {
    /// Header, signature and items.
    pub sealed: Encoded<SealedBatch>,
    /// The certificate of this very number; without one it is certified by a later number's, or not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Encoded<Certificate>>,
}

/// What can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// [`HeaderNotification`].
    Headers,
    /// [`CertificateNotification`].
    Certificates,
    /// [`ReleaseNotification`].
    Releases,
    /// [`HintsNotification`].
    Hints,
    /// [`BlockNotification`].
    Blocks,
}

impl Topic {
    /// All topics.
    pub const ALL: [Self; 5] = [Self::Headers, Self::Certificates, Self::Releases, Self::Hints, Self::Blocks];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Certificates => "certificates",
            Self::Releases => "releases",
            Self::Hints => "hints",
            Self::Blocks => "blocks",
        }
    }
}

/// Topic `headers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderNotification {
    /// The batch number.
    pub number: u64,
    /// The header hash.
    pub hash: B256,
    /// Header, signature and items.
    pub sealed: Encoded<SealedBatch>,
    /// Per item: null for accepted, or why it was skipped.
    pub verdicts: Vec<Option<String>>,
}

/// Topic `certificates`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateNotification {
    /// The batch number.
    pub number: u64,
    /// The header hash.
    pub hash: B256,
    /// The certificate.
    pub certificate: Encoded<Certificate>,
}

/// Topic `releases`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseNotification {
    /// The batch number.
    pub number: u64,
    /// The header hash.
    pub hash: B256,
    /// The release.
    pub release: Encoded<Release>,
}

/// Topic `hints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HintsNotification {
    /// The batch number.
    pub number: u64,
    /// The header hash.
    pub hash: B256,
    /// The hints.
    pub hints: Encoded<BatchHints>,
}

/// One skipped transaction or envelope of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedItem {
    /// The envelope id.
    pub envelope: B256,
    /// The transaction's index in the bundle; null when the whole envelope was skipped.
    pub index: Option<u16>,
    /// Why.
    pub reason: String,
}

/// Topic `blocks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockNotification {
    /// The L2 block number.
    pub number: u64,
    /// The block hash.
    pub hash: B256,
    /// The parent's hash.
    pub parent_hash: B256,
    /// The state root.
    pub state_root: B256,
    /// The block's second.
    pub timestamp: u64,
    /// The first batch in it.
    pub first_batch: u64,
    /// The last batch in it.
    pub last_batch: u64,
    /// Hashes of its transactions, in order.
    pub transactions: Vec<B256>,
    /// What was skipped.
    pub skipped: Vec<SkippedItem>,
}

fn short_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(de::Error::custom(format!(
            "text of {} bytes, at most {MAX_TEXT_BYTES} allowed",
            text.len()
        )));
    }
    if text.chars().any(char::is_control) {
        return Err(de::Error::custom("control characters in text"));
    }
    Ok(text)
}
