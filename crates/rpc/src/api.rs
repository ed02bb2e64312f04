//! The method traits. `…Server` traits are implemented by the roles and turned into methods by `into_rpc()`; `…Client`
//! traits are implemented for every client of this crate.
//!
//! `docs/openrpc.json` is generated from these traits, their comments and the types that they name: `scripts/openrpc`.
//! Of a method's comment the first sentence becomes the summary, what follows the description. `# Parameters` has a line
//! for each parameter that its type does not explain; `# Errors` one for each group of reasons beyond those that every
//! method gives. Codes are those that the servers give with the reasons.

#![expect(clippy::disallowed_methods, reason = "tasks that the macro of the library spawns")]

use alloy_primitives::{Address, B256, Bytes};
use blindfold_protocol::{
    Acknowledgement, BatchHeader, BatchHints, Certificate, CertifiedBatch, DataAttestation, Promise, Release,
    ReleaseShare, SignedHeader, SingletonShare,
};
use jsonrpsee::{core::SubscriptionResult, proc_macros::rpc};
use serde_json::value::RawValue;

use crate::{
    Encoded, RawEnvelope, RpcError,
    types::{
        BatchInfo, CommitteeStatus, EncryptionKeyInfo, FeeAccount, FeeAccountProof, ForwardedAnswer,
        ForwardedEnvelope, HeldBatch, LedgerAt, Receipt, Refusal, SendOptions, SentEnvelope, SignerStatus,
        Status, SyncOptions, SyncedEnvelope, TracedTransaction,
    },
};

/// What sequencer and full node both serve.
#[rpc(server, client, namespace = "blind")]
pub trait BlindApi {
    /// The keys of this epoch and, where registered, of the next. Believe no key whose hash is not the one that L1
    /// registers for the epoch.
    #[method(name = "getEncryptionKey")]
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError>;

    /// Where an envelope stands; null if this server does not know it, or not any more. A full node knows what stands in a batch; only
    /// the sequencer knows what is pending or expired.
    ///
    /// # Parameters
    /// - `id`: the envelope's id.
    #[method(name = "getReceipt")]
    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError>;

    /// A batch with everything known about it; null if it is not here.
    ///
    /// # Parameters
    /// - `number`: the batch's number, from 1.
    ///
    /// # Errors
    /// - `pruned`: the server forgot the batch, which is final on L1; the message says from which number on it keeps them.
    #[method(name = "getBatch")]
    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError>;

    /// A batch's hints; null while they are not here.
    ///
    /// # Parameters
    /// - `number`: the batch's number, from 1.
    ///
    /// # Errors
    /// - `pruned`: the server forgot the batch, which is final on L1; the message says from which number on it keeps them.
    #[method(name = "getHints")]
    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError>;

    /// A payer's fee account; zeros for one that never had a deposit. The sequencer subtracts what the payer's pending
    /// envelopes will cost.
    ///
    /// # Parameters
    /// - `address`: the payer's.
    #[method(name = "getFeeAccount")]
    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError>;

    /// A payer's account in the fee ledger with its proof for `FeeVault`; null for one that is not in the ledger. The
    /// ledger is that after a header: by default the last one posted to L1 that the server knows. Ledgers are kept from
    /// 256 batches before the newest header on that `FeeVault` pays out. Nothing that waits is subtracted from the
    /// balance.
    ///
    /// # Parameters
    /// - `address`: the payer's.
    /// - `at`: after which header, `posted` by default.
    ///
    /// # Errors
    /// - `nothing_posted`, `unknown_batch`: no header is posted yet, or the server has none of this number yet.
    /// - `ledger_forgotten`: the ledger after this header is not kept any more.
    /// - `proofs_busy`: too many proofs wait that go about as far back.
    /// - `chain_changed`: a header came in while the ledger was read; ask again.
    #[method(name = "getFeeAccountProof")]
    async fn get_fee_account_proof(
        &self,
        address: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError>;

    /// Where the server stands: how far the chain is here, and counters.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<Status, RpcError>;

    /// Notifications of one topic; WebSocket only. Each notification is a `blind_subscription` message whose
    /// `params.result` is the topic's object (x-notifications). A subscriber that cannot keep up is dropped with an
    /// error; it asks `blind_getStatus` and fetches what it missed by `blind_getBatch`.
    ///
    /// # Errors
    /// - `unknown_topic`: no such topic.
    // [`crate::Hub::attach`] serves it, [`crate::FeedEvent::parse`] reads an item.
    #[subscription(name = "subscribe" => "subscription", unsubscribe = "unsubscribe", item = Box<RawValue>, with_extensions)]
    async fn subscribe_topic(&self, topic: String) -> SubscriptionResult;
}

/// Many receipts at once, and as they change; what sequencer, full node and gateway serve.
#[rpc(server, client, namespace = "blind")]
pub trait ReceiptApi {
    /// Where envelopes stand, in the order of their ids; null for each that this server does not know, as
    /// `blind_getReceipt`. One read of the server's store for all of them: who asks for many asks so.
    ///
    /// # Parameters
    /// - `ids`: the envelopes' ids, 1 to 256.
    ///
    /// # Errors
    /// - `too_many_ids`: none, or more than 256.
    #[method(name = "getReceipts")]
    async fn get_receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError>;

    /// Receipts as they change; WebSocket only. Each notification is a `blind_receipt` message whose `params.result` is a
    /// receipt: at once for each envelope that the server knows, then whenever it says something else. Nothing is told while
    /// the server does not know where an envelope stands. A subscriber that cannot keep up is dropped with an error; it asks
    /// `blind_getReceipts`. So is one of the address that follows most, where there is no room for another's (`gave_way`), and
    /// one with an id that nobody has known for a minute (`unknown_ids`).
    ///
    /// # Parameters
    /// - `ids`: the envelopes' ids, 1 to 256.
    ///
    /// # Errors
    /// - `too_many_ids`: none, or more than 256.
    /// - `overloaded`: as many receipts are followed at this server as may be, by this address or by all.
    /// - `shutting_down`: the server is stopping.
    // [`crate::ReceiptBoard::serve`] serves it.
    #[subscription(name = "subscribeReceipts" => "receipt", unsubscribe = "unsubscribeReceipts", item = Receipt, with_extensions)]
    async fn subscribe_receipts(&self, ids: Vec<B256>) -> SubscriptionResult;
}

/// What sequencer and gateway serve to who sends an envelope and waits.
#[rpc(server, client, namespace = "blind")]
pub trait SyncApi {
    /// Admits an envelope as `blind_sendEnvelope` does, and answers when it has come as far as is asked, or has ended, with
    /// its receipt. When the time is over, or where so many wait that the address with most calls has to give way, it answers
    /// with the receipt as it stands then; the envelope goes on. One that is in a batch already, or has expired, is no error
    /// here: its receipt is the answer. All other errors are those of `blind_sendEnvelope`.
    ///
    /// # Errors
    /// - `invalid_timeout`: more than 50,000 ms.
    /// - `overloaded`: the verification queue is full, or as many receipts are followed at this server as may be.
    /// - `shutting_down`: the server is stopping; an envelope that was admitted goes on.
    #[method(name = "sendEnvelopeSync", with_extensions)]
    async fn send_envelope_sync(
        &self,
        envelope: Encoded<RawEnvelope>,
        options: Option<SyncOptions>,
    ) -> Result<SyncedEnvelope, RpcError>;
}

/// What only the sequencer serves. [`crate::PeerAddress`] in the extensions says who calls.
#[rpc(server, client, namespace = "blind")]
pub trait SequencerApi {
    /// Admits an envelope; durable before it answers. The same envelope (same id) while it is pending gives the same
    /// answer. A promise names the last batch number that keeps it.
    ///
    /// # Errors
    /// - `too_large`: longer than any envelope.
    /// - `wrong_chain`, `wrong_deployment`, `wrong_epoch`, `wrong_encryption_key`, `unknown_flags`, `bad_size`,
    ///   `gas_limit_too_high`, `expired`, `expiry_too_far`, `duplicate`, `invalid_fee_signature`, `invalid_point`,
    ///   `invalid_proof`, `fee_nonce_used`, `wrong_generation`: the validity rule would skip the envelope, for good.
    /// - `fee_too_low`, `insufficient_funds`: the validity rule would skip the envelope now; the base fee may fall, a
    ///   deposit may come.
    /// - `promise_terms`: the envelope cannot be promised: it expires too soon, takes more than half of a batch, or its
    ///   fee does not cover the steepest rise up to the first number that may be promised. Without asking for a promise
    ///   it may be sent.
    /// - `already_known`: the envelope is in a batch already, or has expired: ask for its receipt.
    /// - `queue_too_long`, `pool_full`, `payer_limit`, `source_limit`, `overloaded`, `promise_capacity`, `backlogged`: it
    ///   would wait too long for its certificate, the mempool, this payer's part of it, this address's rate, the
    ///   verification queue or the room for promises is full, or posting, hints or execution are behind.
    /// - `no_epoch`, `epoch_ends`, `recovering`, `out_of_office`, `storage`, `signer`, `shutting_down`: no epoch is
    ///   registered for the next number or its epoch ends soon, the sequencer is finding out what was signed before,
    ///   another sequencer's key counts, the disk does not take it, the promise is kept and could not be signed, or the
    ///   sequencer is stopping.
    #[method(name = "sendEnvelope", with_extensions)]
    async fn send_envelope(
        &self,
        envelope: Encoded<RawEnvelope>,
        options: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError>;

    /// A member's acknowledgement; t of them make the certificate. The answer is always true; what is not taken is an
    /// error.
    ///
    /// # Errors
    /// - `wrong_epoch`, `unknown_member`, `invalid_signature`, `already_certified`: the acknowledgement does not count.
    /// - `wrong_header`, `duplicate_acknowledgement`: it contradicts what is held, or it is here and counted already.
    /// - `overloaded`: too many submissions wait for verification.
    /// - `unknown_batch`, `storage`, `shutting_down`: the batch is not here yet, the disk does not take it, or the
    ///   sequencer is stopping.
    #[method(name = "submitAcknowledgement", with_extensions)]
    async fn submit_acknowledgement(
        &self,
        acknowledgement: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError>;

    /// A member says why it does not acknowledge a header. Shown to the operator; it is not signed and decides nothing.
    /// The answer is always true.
    ///
    /// # Errors
    /// - `unknown_member`, `already_certified`: the refusal is of nothing that waits for acknowledgements.
    /// - `unknown_batch`: the batch is not here yet.
    #[method(name = "submitRefusal", with_extensions)]
    async fn submit_refusal(&self, refusal: Refusal) -> Result<bool, RpcError>;

    /// The hint publisher's release and hints for one certified batch, verified before they are taken. The same hints
    /// again are no error. The answer is always true.
    ///
    /// # Errors
    /// - `release_mismatch`, `invalid_release`, `other_header`, `wrong_count`, `wrong_sub_batches`, `not_skipped`,
    ///   `hint_for_skipped`, `wrong_key`, `wrong_singleton`, `wrong_blinding`, `false_malformed`, `no_parameters`,
    ///   `second_hints`: release or hints are not the truth about the batch, or the sequencer cannot judge them.
    /// - `overloaded`: too many submissions wait for verification.
    /// - `unknown_batch`, `not_certified`, `storage`, `shutting_down`: the batch is not here or not certified yet, the
    ///   disk does not take it, or the sequencer is stopping.
    #[method(name = "submitHints", with_extensions)]
    async fn submit_hints(
        &self,
        release: Encoded<Release>,
        hints: Encoded<BatchHints>,
    ) -> Result<bool, RpcError>;
}

/// What a sequencer serves to the gateways that its settings name.
#[rpc(server, client, namespace = "blind")]
pub trait ForwardApi {
    /// Admits envelopes that a gateway took, each as `blind_sendEnvelope` does: checked anew, and durable before it is
    /// answered. What one address may send is the gateway's to count. The answers come in the order of the envelopes.
    ///
    /// # Parameters
    /// - `envelopes`: at most 256, of 1 MiB together unless it is a single one.
    ///
    /// # Errors
    /// - `not_a_gateway`: the caller has not shown that it is one of the gateways that the sequencer's settings name.
    /// - `too_many_envelopes`: more than one call may have.
    /// - `overloaded`: as many envelopes of this gateway are under way as may be.
    #[method(name = "sendEnvelopes", with_extensions)]
    async fn send_envelopes(
        &self,
        envelopes: Vec<ForwardedEnvelope>,
    ) -> Result<Vec<ForwardedAnswer>, RpcError>;
}

/// What a committee member serves to anyone.
#[rpc(server, client, namespace = "committee")]
pub trait CommitteeApi {
    /// What this member holds certified under a number; null if nothing.
    ///
    /// # Parameters
    /// - `number`: the batch's number, from 1.
    ///
    /// # Errors
    /// - `busy`: too many calls wait.
    #[method(name = "getCertified", with_extensions)]
    async fn get_certified(&self, number: u64) -> Result<Option<Encoded<CertifiedBatch>>, RpcError>;

    /// What this member holds sealed under a number, with the certificate of that number if there is one; null if
    /// nothing. Certified or not: number by number it gives every run up to its certificate.
    ///
    /// # Parameters
    /// - `number`: the batch's number, from 1.
    ///
    /// # Errors
    /// - `busy`: too many calls wait.
    #[method(name = "getSealed", with_extensions)]
    async fn get_sealed(&self, number: u64) -> Result<Option<HeldBatch>, RpcError>;

    /// The member's share of a batch's release, against a certificate of it or of a descendant.
    ///
    /// # Parameters
    /// - `number`: the batch's number, from 1.
    ///
    /// # Errors
    /// - `certificate_does_not_cover`, `not_a_member`, `unreleased_too_long`, `replaced_by_l1`, `no_epoch`,
    ///   `wrong_epoch`, `wrong_number`, `too_few_signers`, `unknown_signers`, `bad_point`, `bad_signature`: the
    ///   certificate does not stand or does not cover the number, the member is not of its committee, or L1 may declare
    ///   the batch void soon.
    /// - `not_validated_here`, `not_certified`, `unposted_too_long`, `epoch_ends`, `overruled_by_l1`: the header is not
    ///   validated, or the number not certified, at this member yet; it could have been posted long ago and is not, its
    ///   epoch ends, or L1 made a header in its place.
    /// - `l1_unavailable`, `unknown_rules`, `conflicting_certificates`, `storage`, `shutting_down`: the member cannot
    ///   judge now.
    /// - `busy`: too many calls wait for shares.
    #[method(name = "getShare", with_extensions)]
    async fn get_share(
        &self,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError>;

    /// The member's share for one envelope of a batch it holds certified.
    ///
    /// # Parameters
    /// - `number`: the batch's number, from 1.
    /// - `index`: index of the item in the batch, from 0.
    ///
    /// # Errors
    /// - `not_a_member`, `no_such_item`, `item_skipped`, `unreleased_too_long`: there is no such item, or it has no
    ///   position; the member is not of the committee; or L1 may declare the batch void soon.
    /// - `not_certified`, `unposted_too_long`, `epoch_ends`, `overruled_by_l1`: the number is not certified at this
    ///   member yet, it could have been posted long ago and is not, its epoch ends, or L1 made a header in its place.
    /// - `l1_unavailable`, `unknown_rules`, `storage`, `shutting_down`: the member cannot judge now.
    /// - `busy`: too many calls wait for shares.
    #[method(name = "getSingleton", with_extensions)]
    async fn get_singleton(&self, number: u64, index: u32) -> Result<Encoded<SingletonShare>, RpcError>;

    /// Reads data of kind 2 (opened batches) as any node that has L1 alone would, were they posted now, and signs their hash
    /// if they give these batches back. Asked by the sequencer in office alone, by its hello, before it posts them; one at a
    /// time, and for a quarter of the time. The same data again get the same answer at once.
    ///
    /// # Parameters
    /// - `first_number`: number of the first batch, from 1.
    /// - `last_number`: number of the last batch, of the same epoch.
    /// - `data`: the `RunData`, at most 2,031,616 bytes.
    ///
    /// # Errors
    /// - `data_undecodable`, `data_mismatch`, `data_unsigned`: it is no `RunData` of kind 2, does not give the batches back
    ///   that this member holds certified, or does not have the sequencer's signatures.
    /// - `no_such_hints`, `hints_unreadable`: the hints that it names are not in a final block here, or were slashed or
    ///   released; or no beacon node gives their blobs.
    /// - `not_the_sequencer`, `too_large`, `bad_range`, `no_epoch`, `wrong_epoch`, `not_a_member`: it is not read.
    /// - `not_certified`: a number is not certified at this member yet.
    /// - `l1_unavailable`, `unknown_rules`, `shutting_down`: the member cannot judge now.
    /// - `busy`: as much is read as may be.
    #[method(name = "attestData", with_extensions)]
    async fn attest_data(
        &self,
        first_number: u64,
        last_number: u64,
        data: Bytes,
    ) -> Result<Encoded<DataAttestation>, RpcError>;

    /// Where the member stands: what it acknowledged, knows and refused.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<CommitteeStatus, RpcError>;
}

/// What a proxy serves to its user, beside what a node serves.
#[rpc(server, client, namespace = "proxy")]
pub trait ProxyApi {
    /// What the proxy made of a transaction; null if it never took it.
    ///
    /// # Parameters
    /// - `transaction`: the transaction's hash.
    #[method(name = "getEnvelope")]
    async fn get_envelope(&self, transaction: B256) -> Result<Option<TracedTransaction>, RpcError>;
}

/// What the signer serves to sequencers, on a port that wants a certificate.
#[rpc(server, client, namespace = "signer")]
pub trait SignerApi {
    /// Whose key signs, for which deployment, and what it has signed.
    ///
    /// # Errors
    /// - `storage`: the disk does not give it.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<SignerStatus, RpcError>;

    /// Signs a header, once for each number: its number and hash are durable at the signer before. The same header gets the
    /// same signature again.
    ///
    /// # Parameters
    /// - `header`: the header, durable at the caller.
    /// - `term`: how often the caller's database had been taken when it took it; left out where
    ///   nobody counts.
    ///
    /// # Errors
    /// - `second_header`: another header was signed for the number, and L1 excuses no second one.
    /// - `not_begun`, `below_first`: the signer does not know what the key has signed for the number.
    /// - `wrong_number`, `does_not_follow`, `not_ours`: the header follows nothing that was signed here and nothing that L1
    ///   shows, or L1 has another key sign it.
    /// - `older_than_l1`: L1 holds the number or later ones, of which the signer's record has nothing: it is a copy.
    /// - `older_term`: another sequencer has taken the database since.
    /// - `l1_behind`, `l1_unavailable`, `storage`: L1 or the disk does not tell what the answer depends on.
    #[method(name = "signHeader")]
    async fn sign_header(
        &self,
        header: Encoded<BatchHeader>,
        term: Option<u64>,
    ) -> Result<Encoded<SignedHeader>, RpcError>;

    /// Signs a promise. Whether it can be kept the signer does not know.
    ///
    /// # Parameters
    /// - `envelope_id`: the envelope's id.
    /// - `item_hash`: hash of the item's bytes.
    /// - `seal_by`: the last number that keeps the promise.
    /// - `term`: as in `signer_signHeader`.
    ///
    /// # Errors
    /// - `not_begun`: the signer does not know what the key has signed.
    /// - `older_term`: another sequencer has taken the database since.
    /// - `storage`: the disk does not take the term.
    #[method(name = "signPromise")]
    async fn sign_promise(
        &self,
        envelope_id: B256,
        item_hash: B256,
        seal_by: u64,
        term: Option<u64>,
    ) -> Result<Encoded<Promise>, RpcError>;

    /// Signs the sequencer's hello to a member, with the signer's time (protocol.md, H-1). The answer is the text of the
    /// HTTP header.
    ///
    /// # Parameters
    /// - `server`: the member that it is for, as `member-1`.
    ///
    /// # Errors
    /// - `unknown_party`: no member is named.
    #[method(name = "signHello")]
    async fn sign_hello(&self, server: String) -> Result<String, RpcError>;
}
