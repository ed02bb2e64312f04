//! The JSON objects of `docs/protocol.md`. Field names are camelCase; what a caller sends refuses unknown fields.

use std::{collections::BTreeMap, time::Duration};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{BatchHints, Certificate, Deployment, Promise, Release, SealedBatch};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{Encoded, RawEnvelope, RpcError, encoded::quantity, limits::MAX_TEXT_BYTES};

/// One epoch's encryption key, as `blind_getEncryptionKey` tells it. A client believes only a hash that it has from L1 or
/// that its user pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionKeyInfo {
    /// Number of the epoch, from 1.
    pub epoch: u64,
    /// First batch number of the epoch.
    pub first_number: u64,
    /// Last batch number of the epoch, as far as it is known.
    pub last_number: u64,
    /// The key, 576 bytes: an element of GT.
    pub encryption_key: alloy_primitives::Bytes,
    /// SHA-256 of the key, as registered on L1.
    pub encryption_key_hash: B256,
    /// Hash of the public parameters, as registered on L1.
    pub parameters_hash: B256,
    /// Where the parameter file can be had (path or URL).
    pub parameters_location: String,
}

/// Second parameter of `blind_sendEnvelope`; all of it may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendOptions {
    /// Ask for a signed promise; false by default.
    #[serde(default)]
    pub promise: bool,
}

/// Result of `blind_sendEnvelope`, once the envelope is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentEnvelope {
    /// The id by which its receipt is asked for.
    pub id: B256,
    /// The promise, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Encoded<Promise>>,
}

/// Second parameter of `blind_sendEnvelopeSync`; all of it may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncOptions {
    /// Ask for a signed promise; false by default.
    #[serde(default)]
    pub promise: bool,
    /// How far it is to come before the answer.
    #[serde(default)]
    pub until: SyncUntil,
    /// How long to wait for that, in milliseconds: 20,000 by default, 50,000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// How far an envelope is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncUntil {
    /// Its header is signed: the order stands as far as the sequencer's bond goes.
    Sealed,
    /// Its header has a certificate: the order is final.
    Certified,
    /// Its block is executed.
    #[default]
    Executed,
}

impl From<SyncUntil> for EnvelopeState {
    fn from(until: SyncUntil) -> Self {
        match until {
            SyncUntil::Sealed => Self::Sealed,
            SyncUntil::Certified => Self::Certified,
            SyncUntil::Executed => Self::Executed,
        }
    }
}

/// Result of `blind_sendEnvelopeSync`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncedEnvelope {
    /// The id by which its receipt is asked for.
    pub id: B256,
    /// The promise, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Encoded<Promise>>,
    /// Its receipt: what was waited for, or how it ended, or where it stood when the time was over; null where the server
    /// had not heard of it then.
    pub receipt: Option<Receipt>,
}

/// One envelope of `blind_sendEnvelopes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForwardedEnvelope {
    /// The envelope as it came.
    pub envelope: Encoded<RawEnvelope>,
    /// Whether its sender asks for a signed promise.
    #[serde(default)]
    pub promise: bool,
}

/// What became of one envelope of `blind_sendEnvelopes`: it was taken, or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForwardedAnswer {
    /// The result of `blind_sendEnvelope`, once the envelope is durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentEnvelope>,
    /// The error of `blind_sendEnvelope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ForwardedRefusal>,
}

/// An error of `blind_sendEnvelope` for one of several envelopes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForwardedRefusal {
    /// The JSON-RPC error code.
    pub code: i32,
    /// What happened, for a program.
    pub reason: String,
    /// Whether the same envelope may be taken later.
    pub retry: bool,
    /// With `retry`: when, from now on in milliseconds, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What happened, for a person.
    pub message: String,
}

impl From<RpcError> for ForwardedRefusal {
    fn from(error: RpcError) -> Self {
        let RpcError { code, message, reason, retry, retry_after_ms, .. } = error;
        Self { code, reason: reason.into_owned(), retry, retry_after_ms, message }
    }
}

impl From<ForwardedRefusal> for RpcError {
    fn from(refusal: ForwardedRefusal) -> Self {
        let ForwardedRefusal { code, reason, retry, retry_after_ms, message } = refusal;
        Self::new(code, reason, retry, message).after_some(retry_after_ms.map(Duration::from_millis))
    }
}

impl From<Result<SentEnvelope, RpcError>> for ForwardedAnswer {
    fn from(answer: Result<SentEnvelope, RpcError>) -> Self {
        match answer {
            Ok(sent) => Self { sent: Some(sent), refused: None },
            Err(refusal) => Self { sent: None, refused: Some(refusal.into()) },
        }
    }
}

/// What has become of an envelope, as receipts tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeState {
    /// Admitted, not in a batch yet.
    Pending,
    /// It stands in a header that is signed and not certified yet.
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

impl EnvelopeState {
    /// Whether it goes no further, unless L1 takes something back.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Sealed | Self::Certified)
    }

    /// Whether an envelope in this state has come so far, or has ended before and will not.
    #[must_use]
    pub const fn has_reached(self, state: Self) -> bool {
        match self {
            Self::Pending => matches!(state, Self::Pending),
            Self::Sealed => matches!(state, Self::Pending | Self::Sealed),
            Self::Certified => matches!(state, Self::Pending | Self::Sealed | Self::Certified),
            Self::Executed | Self::Skipped | Self::Malformed | Self::Expired | Self::Void => true,
        }
    }
}

/// What has become of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// Signed and durable at the sequencer.
    Sealed,
    /// t members acknowledged it, or a later header.
    Certified,
    /// The second that it belongs to is executed.
    Executed,
    /// Its run was declared void on L1.
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
    /// Why it does not, in one stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of `blind_getReceipt`, which gives null for an id that the server does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Id of the envelope.
    pub id: B256,
    /// How far it has come.
    pub state: EnvelopeState,
    /// Why it was skipped or expired, in one stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of the batch that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its index in the batch, from 0, skipped items counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Header hash of that batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_hash: Option<B256>,
    /// The L2 block that holds its batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_number: Option<u64>,
    /// Hash of that block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_hash: Option<B256>,
    /// What became of the inner transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Vec<TransactionOutcome>>,
}

impl Receipt {
    /// One that says how far the envelope has come, and no more.
    #[must_use]
    pub const fn new(id: B256, state: EnvelopeState) -> Self {
        Self {
            id,
            state,
            reason: None,
            number: None,
            index: None,
            header_hash: None,
            block_number: None,
            block_hash: None,
            transactions: None,
        }
    }
}

/// Result of `blind_getBatch`, which gives null for a number that is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchInfo {
    /// Number of the batch.
    pub number: u64,
    /// Hash of its header.
    pub hash: B256,
    /// Its time, in Unix milliseconds.
    pub timestamp_ms: u64,
    /// How far it has come.
    pub state: BatchState,
    /// Header, sequencer's signature and items.
    pub sealed: Encoded<SealedBatch>,
    /// The certificate, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Encoded<Certificate>>,
    /// The combined release, once it is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Encoded<Release>>,
    /// The hints, once they are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Encoded<BatchHints>>,
    /// Per item: null for accepted, the reason why it was skipped, or `forced_transaction`. The header's envelope root
    /// binds every one of them.
    pub verdicts: Vec<Option<String>>,
}

/// Result of `blind_getFeeAccount`, zeros for an account that never had anything: after the last sealed batch that the
/// server knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeAccount {
    /// Address of the payer.
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
    /// The last header on L1, as far as the server knows.
    Posted,
    /// The last certified header.
    Certified,
    /// The newest, which may not be certified yet.
    Latest,
}

/// Result of `blind_getFeeAccountProof`; null for an account that is not in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeAccountProof {
    /// Address of the payer.
    pub address: Address,
    /// Wei that can be spent; nothing that waits is subtracted.
    #[serde(with = "quantity")]
    pub balance: u128,
    /// Wei that were withdrawn so far.
    #[serde(with = "quantity")]
    pub withdrawn: u128,
    /// Siblings from the ledger's root down to its leaf: 256 at most.
    pub siblings: Vec<B256>,
    /// The batch after which the ledger is so.
    pub number: u64,
    /// Hash of that batch's header.
    pub header_hash: B256,
}

/// The newest batch a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchHead {
    /// Number of the batch; 0 before the first.
    pub number: u64,
    /// Hash of its header.
    pub hash: B256,
    /// Its time, in Unix milliseconds.
    pub timestamp_ms: u64,
    /// The chain's generation, which an envelope's expiry has in its top 16 bits: the headers so far that L1 made, modulo
    /// 65,536.
    pub generation: u16,
}

/// The newest L2 block a server knows; zeros before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockHead {
    /// Number of the L2 block.
    pub number: u64,
    /// Hash of the L2 block.
    pub hash: B256,
    /// Its timestamp, in Unix seconds.
    pub timestamp: u64,
}

/// Result of `blind_getStatus`: how far the server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Who answers: one of `sequencer`, `full_node`.
    pub role: String,
    /// Version of the program that answers.
    pub version: String,
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// Chain id of its L1.
    pub l1_chain_id: u64,
    /// Address of the `BlindedInbox`.
    pub inbox: Address,
    /// The newest batch that the server knows.
    pub head: BatchHead,
    /// The newest number that is certified here.
    pub certified: u64,
    /// The newest number up to which every batch has hints, or is executed: what L1 made or voided gets none.
    pub hinted: u64,
    /// The newest number on L1, where the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<u64>,
    /// The newest L2 block that is executed here.
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
    /// Counts since the start of the process, by stable names.
    pub counters: BTreeMap<String, u64>,
}

/// A server of another chain, or of another deployment of it. Its word for what it serves, which protects nobody; it tells
/// a wrong URL or a wrong `rollup.json` from a fault of others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "serves another chain: its {field} is {given}, your rollup.json says {expected}; correct the URL or the file"
)]
pub struct OtherChain {
    /// Name of the field that differs.
    pub field: &'static str,
    /// What the server says.
    pub given: String,
    /// What the caller's settings say.
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
    /// Number of the batch.
    pub number: u64,
    /// Hash of the header that it refuses.
    pub header_hash: B256,
    /// The member's index, from 1.
    pub member: u16,
    /// Why: a stable snake_case word, perhaps with detail after it; at most [`MAX_TEXT_BYTES`] bytes, no control
    /// characters.
    #[serde(deserialize_with = "short_text")]
    pub reason: String,
}

/// One refused header in `committee_getStatus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedHeader {
    /// Number of the batch.
    pub number: u64,
    /// Hash of the refused header.
    pub header_hash: B256,
    /// Why it was refused, as [`Refusal::reason`].
    pub reason: String,
}

/// Result of `committee_getStatus`: what the member did and does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitteeStatus {
    /// The member's index, from 1.
    pub member: u16,
    /// Version of the program that answers; earlier builds leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Epoch of the number after the head; 0 where none is registered.
    pub epoch: u64,
    /// The newest number it acknowledged.
    pub acknowledged: u64,
    /// The newest certified number it holds.
    pub certified: u64,
    /// The last headers it refused, 64 at most, newest last.
    pub refusals: Vec<RefusedHeader>,
    /// How often it was shown a second header for a number, over all restarts.
    pub second_headers_refused: u64,
    /// The first number that it votes for: above 1 for a member whose disk was lost. Missing while it has to ask others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes_from: Option<u64>,
}

/// Result of `committee_getSealed`: a batch that the member holds, certified or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBatch {
    /// Header, sequencer's signature and items.
    pub sealed: Encoded<SealedBatch>,
    /// The certificate of this very number; without one it is certified by a later number's, or not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Encoded<Certificate>>,
}

/// What can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A header was sealed (sequencer) or verified (full node): [`HeaderNotification`].
    Headers,
    /// A header has its certificate: [`CertificateNotification`].
    Certificates,
    /// A batch's release was published: [`ReleaseNotification`].
    Releases,
    /// A batch's hints were verified and stored: [`HintsNotification`].
    Hints,
    /// An L2 block was executed and stored: [`BlockNotification`].
    Blocks,
}

impl Topic {
    /// All topics, in the order in which a batch passes them.
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

/// A sealed header: notification of the topic `headers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderNotification {
    /// Number of the batch.
    pub number: u64,
    /// Hash of its header.
    pub hash: B256,
    /// Header, sequencer's signature and items.
    pub sealed: Encoded<SealedBatch>,
    /// Per item: null for accepted, the reason why it was skipped, or `forced_transaction`. The header's envelope root
    /// binds every one of them.
    pub verdicts: Vec<Option<String>>,
}

/// A certificate: notification of the topic `certificates`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateNotification {
    /// Number of the certified batch.
    pub number: u64,
    /// Hash of its header.
    pub hash: B256,
    /// The certificate, at the number that it was made for.
    pub certificate: Encoded<Certificate>,
}

/// A combined release: notification of the topic `releases`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseNotification {
    /// Number of the opened batch.
    pub number: u64,
    /// Hash of its header.
    pub hash: B256,
    /// The release, one point for each sub-batch.
    pub release: Encoded<Release>,
}

/// The hints of a batch: notification of the topic `hints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HintsNotification {
    /// Number of the batch.
    pub number: u64,
    /// Hash of its header.
    pub hash: B256,
    /// The hints, verified by the server.
    pub hints: Encoded<BatchHints>,
}

/// One skipped transaction or envelope of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedItem {
    /// Id of the envelope.
    pub envelope: B256,
    /// The transaction's index in the bundle; null when the whole envelope was skipped.
    pub index: Option<u16>,
    /// Why it was skipped, in one stable word.
    pub reason: String,
}

/// An executed block: notification of the topic `blocks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockNotification {
    /// Number of the L2 block.
    pub number: u64,
    /// Hash of the L2 block.
    pub hash: B256,
    /// Hash of the block before it.
    pub parent_hash: B256,
    /// State root after the block.
    pub state_root: B256,
    /// Its timestamp, in Unix seconds.
    pub timestamp: u64,
    /// The first batch in it.
    pub first_batch: u64,
    /// The last batch in it.
    pub last_batch: u64,
    /// Hashes of its transactions, in order.
    pub transactions: Vec<B256>,
    /// Envelopes and transactions that the block leaves out.
    pub skipped: Vec<SkippedItem>,
}

/// Result of `proxy_getEnvelope`: what the proxy made of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TracedTransaction {
    /// The envelope that carries or carried it last.
    pub envelope: Option<B256>,
    /// `included`, or why it was given up; null while it is under way.
    pub outcome: Option<String>,
    /// Whether others may have read it: an envelope with it was opened, or may have been.
    pub revealed: bool,
}

/// Result of `signer_getStatus`: whose key signs, and what it has signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignerStatus {
    /// Address of the key.
    pub address: Address,
    /// Chain id of the L1 of the deployment that it signs for.
    pub l1_chain_id: u64,
    /// `BlindedInbox` on that L1.
    pub inbox: Address,
    /// Version of the program that answers.
    pub version: String,
    /// The first number that it signs; missing for a fresh signer, which signs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_number: Option<u64>,
    /// The newest number that a header was signed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<SignedNumber>,
    /// The highest term that it was asked in; 0 for none.
    pub term: u64,
}

/// What was signed for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedNumber {
    /// The header's number.
    pub number: u64,
    /// Its hash.
    pub header_hash: B256,
    /// Its L1 origin.
    pub l1_origin: u64,
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
