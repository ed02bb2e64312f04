//! The seam.

use std::pin::Pin;

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, Release, Signature65,
    ledger::{Account, FeeLedger, LedgerBefore, LedgerEntry},
};

use crate::{
    Acknowledged, BatchRecord, BlockRecord, Heads, ItemLocation, LedgerHead, PendingEnvelope, PostedRecord,
    Pruned, SealedRecord, StoreError,
};

/// Where an envelope was sealed, and why it was removed.
pub type EnvelopePast = (Option<ItemLocation>, Option<String>);

/// What [`Store::stopped`] gives.
pub type Stopped = Pin<Box<dyn Future<Output = String> + Send>>;

/// The durable record of one role.
///
/// A write is durable when its future returns `Ok`; when it returns an error nothing of it is stored. Dropping the
/// future of a write does not undo it. Writes take effect in the order in which they were first polled. Writing the
/// same record again is no error, so a caller may repeat after a crash.
#[async_trait]
pub trait Store: Send + Sync {
    /// Resolves, and says why, once the disk has failed under a write, or what writes has panicked: nothing is written any
    /// more until the store is opened anew ([`StoreError::Stopped`]), so the role has to end. Keeps nothing of the store
    /// open.
    fn stopped(&self) -> Stopped;

    /// Whether anybody may be shown, or keep, what is written before it is durable: readers of a replicated server see what
    /// its replicas may never get. Then nothing that binds is written but after what it binds to.
    fn shows_early(&self) -> bool {
        false
    }

    /// Counts its transactions in a role's registry from now on. One that counts nothing does nothing.
    fn count_in(&self, metrics: &blindfold_telemetry::Metrics) {
        let _ = metrics;
    }

    /// Binds a fresh store to a deployment and a role (`sequencer`, `member-2`, …), or checks that it is bound to
    /// them. Called once at start.
    async fn bind(&self, deployment: &Deployment, role: &str) -> Result<(), StoreError>;

    /// Stores an admitted envelope: it waits when this returns, and with the promise that it is given here, if any. One that
    /// a stored batch accepted does not, and the same bytes without a promise take none away.
    async fn put_envelope(&self, envelope: PendingEnvelope) -> Result<(), StoreError>;

    /// Takes envelopes out of the pending ones and remembers why (`expired`, …). `number` is the chain's at that time,
    /// see [`Store::prune_outcomes`].
    async fn remove_envelopes(&self, ids: &[B256], outcome: &str, number: u64) -> Result<(), StoreError>;

    /// All envelopes that wait, by arrival. Envelopes of a stored batch are not among them.
    async fn pending_envelopes(&self) -> Result<Vec<PendingEnvelope>, StoreError>;

    /// Why an envelope was removed, if it was and is not pruned.
    async fn envelope_outcome(&self, id: B256) -> Result<Option<String>, StoreError>;

    /// Forgets outcomes that were recorded below a number.
    async fn prune_outcomes(&self, below_number: u64) -> Result<(), StoreError>;

    /// Stores a batch, its items, the ledger's change and the head in one step; its envelopes are pending no more. One
    /// that L1 made is certified by the same step.
    ///
    /// Refuses a second hash for a number, a number that does not follow the newest, and a change that does not start
    /// from the stored accounts and nonces.
    async fn put_sealed(&self, record: SealedRecord) -> Result<(), StoreError>;

    /// Adds its signature to a stored batch that was not signed when it was stored; the same one again is no error. Refuses
    /// another, and one for a header that L1 made.
    async fn put_signature(&self, number: u64, signature: Signature65) -> Result<(), StoreError>;

    /// Takes back the newest batch, if it is not certified: ledger and pending envelopes are as before it. What was
    /// signed for its number stays recorded.
    async fn revert_sealed(&self, number: u64) -> Result<(), StoreError>;

    /// Takes back all batches above a number, certified or not, in one step, with their blocks, certificates, hints and
    /// posts: L1 holds others in their place. Ledger and head are as they were after that number. What was signed stays
    /// recorded, and so does what waits. Of the envelopes that the batches accepted, those that L1 did not force end with
    /// `outcome`, or wait again without one.
    ///
    /// Refuses with [`StoreError::Forgotten`] where what the ledger was is not kept
    /// ([`keep_ledgers_from`](Store::keep_ledgers_from)).
    async fn rewind(&self, through_number: u64, outcome: Option<&str>) -> Result<(), StoreError>;

    /// Records, before it signs, the one header hash this process signs for a number, forever, with that header's L1
    /// origin. Refuses another, with one exception: a hash recorded for a number above a header that L1 made, with an
    /// origin before L1 made it and before that header was stored, belongs to a branch that can never be posted, and
    /// gives way to one hash more. `BlindedInbox` excuses the same two.
    async fn put_acknowledged(&self, number: u64, hash: B256, origin: u64) -> Result<(), StoreError>;

    /// The header hash this process signed for a number.
    async fn acknowledged(&self, number: u64) -> Result<Option<B256>, StoreError>;

    /// The same with the header's L1 origin.
    async fn acknowledgement(&self, number: u64) -> Result<Option<Acknowledged>, StoreError>;

    /// Says that L1 made the header with this number in an L1 block: what was signed for a later number, with an origin
    /// before that block, gives way to one hash more ([`put_acknowledged`](Store::put_acknowledged)). For whoever signs
    /// without the batches; who stores them does it with [`put_sealed`](Store::put_sealed). The caller has it from L1.
    async fn displace_acknowledged(&self, made: u64, made_at: u64) -> Result<(), StoreError>;

    /// Whether this process signed this header hash for the number, whether or not it gave way to another since.
    async fn was_acknowledged(&self, number: u64, hash: B256) -> Result<bool, StoreError>;

    /// Stores the certificate of a stored batch. A first one stays, whoever signed the second.
    async fn put_certificate(&self, certificate: &Certificate) -> Result<(), StoreError>;

    /// Stores the release of a stored batch; refuses a second that differs.
    async fn put_release(&self, release: &Release) -> Result<(), StoreError>;

    /// Stores the (verified) hints of a stored batch; refuses second ones that differ.
    async fn put_hints(&self, hints: &BatchHints) -> Result<(), StoreError>;

    /// Stores an executed block; refuses a second hash for its number or its second.
    async fn put_block(&self, block: BlockRecord) -> Result<(), StoreError>;

    /// Forgets the blocks from a number on, which are then to be executed again.
    async fn revert_blocks(&self, from_number: u64) -> Result<(), StoreError>;

    /// Records a post on L1.
    async fn put_posted(&self, posted: PostedRecord) -> Result<(), StoreError>;

    /// The newest post on L1.
    async fn posted(&self) -> Result<Option<PostedRecord>, StoreError>;

    /// A batch with everything known about it. [`StoreError::Pruned`] for one that was [pruned](Store::prune).
    async fn batch(&self, number: u64) -> Result<Option<BatchRecord>, StoreError>;

    /// A batch's header hash alone, which costs no reading of its items.
    async fn header_hash(&self, number: u64) -> Result<Option<B256>, StoreError>;

    /// Batches by number from `from` on, which must not be pruned; at most `limit` and at most the implementation's page.
    async fn batches(&self, from: u64, limit: usize) -> Result<Vec<BatchRecord>, StoreError>;

    /// A block by its number.
    async fn block(&self, number: u64) -> Result<Option<BlockRecord>, StoreError>;

    /// A block by its second.
    async fn block_by_second(&self, second: u64) -> Result<Option<BlockRecord>, StoreError>;

    /// The block that holds a batch.
    async fn block_of_batch(&self, number: u64) -> Result<Option<BlockRecord>, StoreError>;

    /// Number and hash of the newest block of which every batch has at most this number.
    async fn block_through(&self, batch: u64) -> Result<Option<(u64, B256)>, StoreError>;

    /// Blocks by number from `from` on; at most `limit` and at most the implementation's page.
    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<BlockRecord>, StoreError>;

    /// The newest of everything that is stored, by number.
    async fn heads(&self) -> Result<Heads, StoreError>;

    /// Where an envelope was sealed: the batch that accepted it, else the newest that skipped it. Nowhere for zero, which is
    /// no id. Reads some rows, and no batch.
    async fn envelope_location(&self, id: B256) -> Result<Option<ItemLocation>, StoreError>;

    /// What is known of each of these envelopes that does not wait: where it was sealed ([`Store::envelope_location`]), and
    /// why it was removed ([`Store::envelope_outcome`]). One that implements it reads all at once.
    async fn envelope_pasts(&self, ids: Vec<B256>) -> Result<Vec<EnvelopePast>, StoreError> {
        let mut pasts = Vec::with_capacity(ids.len());
        for id in ids {
            pasts.push((self.envelope_location(id).await?, self.envelope_outcome(id).await?));
        }
        Ok(pasts)
    }

    /// One account of the fee ledger, after the newest batch; `None` where it has no leaf.
    async fn account(&self, payer: Address) -> Result<Option<Account>, StoreError>;

    /// The fee ledger after the newest batch, for a restart: all of it as at one moment. Read row by row, and a few hashes
    /// for each.
    async fn ledger(&self) -> Result<FeeLedger, StoreError>;

    /// What batches from `number` on changed in the ledger, as it was before them, where none of them is certified: the way
    /// back in memory that [`Store::revert_sealed`] goes on disk.
    async fn ledger_before(&self, number: u64) -> Result<LedgerBefore, StoreError>;

    /// The head that goes with [`Store::ledger`]; none before the first batch.
    async fn ledger_head(&self) -> Result<Option<LedgerHead>, StoreError>;

    /// From now on keeps what it takes to go back to ledgers, and to tell them, as they were after batches from
    /// this number on, certified or not. Nobody is told older ones any more, and [`forget_ledgers`](Store::forget_ledgers)
    /// makes room of them. Never goes back; what was forgotten before the first call stays so.
    async fn keep_ledgers_from(&self, number: u64) -> Result<(), StoreError>;

    /// Forgets a few of the ledgers that [`keep_ledgers_from`](Store::keep_ledgers_from) keeps no more, and says whether there
    /// are more. A step is one transaction over at most [`FORGET_STEP_ROWS`](crate::FORGET_STEP_ROWS) rows of each table, or
    /// the rows of one batch; it is called again while there are more, after a restart too. A store that keeps everything does
    /// nothing.
    async fn forget_ledgers(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The first number of [`Store::keep_ledgers_from`] that holds; `None` where it was never called.
    async fn ledger_floor(&self) -> Result<Option<u64>, StoreError>;

    /// Accounts and nonces that batches above `number` and up to `up_to` changed, as they were after batch `number`;
    /// `None` for a batch so old that this is forgotten.
    async fn entries_changed_after(
        &self,
        number: u64,
        up_to: u64,
    ) -> Result<Option<Vec<LedgerEntry>>, StoreError>;

    /// Forgets what nobody needs any more of a few old batches: of those up to the last block without a batch above
    /// `final_through`, which L1 can change no more, below the ledgers that are kept ([`Store::keep_ledgers_from`]), and not
    /// among the newest `keep`. Their hashes, their blocks and what was signed stay. A step is one transaction over at most
    /// [`PRUNE_STEP_BATCHES`](crate::PRUNE_STEP_BATCHES); it is called again while there is more. A store that keeps
    /// everything does nothing.
    ///
    /// Refuses with [`StoreError::NotPruned`] for any role but a full node.
    async fn prune(&self, final_through: u64, keep: u64) -> Result<Pruned, StoreError> {
        let _ = (final_through, keep);
        Ok(Pruned::default())
    }

    /// A small value under a name; `None` where there is none.
    async fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Stores a small named value in place of the previous.
    async fn put_meta(&self, key: &str, value: &[u8]) -> Result<(), StoreError>;
}
