//! The proxy's held transactions in memory, by sender and nonce. No I/O: the journal and the servers are the caller's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::{Address, B256, Bytes};
use blindfold_protocol::{
    Expiry,
    limits::{MAX_BUNDLE_ITEMS, MAX_MESSAGE_BYTES},
};
use blindfold_runtime::Instant;

use super::journal::EnvelopeRow;
use crate::transaction::SignedTransaction;

/// Bytes a bundle spends beside its items, and per item (docs/protocol.md, `Bundle`).
const BUNDLE_FIXED_BYTES: usize = 3;
const BUNDLE_ITEM_BYTES: usize = 5;

/// All transactions the proxy answered for and has not seen finished.
#[derive(Default)]
pub struct Pool {
    senders: BTreeMap<Address, Sender>,
    by_hash: HashMap<B256, (Address, u64)>,
    envelopes: BTreeMap<B256, UnderWay>,
    /// What is on its way to the disk: it has its place already, and counts among what is held.
    arriving: BTreeMap<Address, Vec<Arriving>>,
}

/// A transaction that is not durable yet.
struct Arriving {
    nonce: u64,
    hash: B256,
    /// How often it came. Each time the journal answers whether it is known.
    times: usize,
}

#[derive(Default)]
struct Sender {
    transactions: BTreeMap<u64, Held>,
    /// The envelopes that the user's node must have in a batch before the next one is made, so that nonces are ordered as
    /// they were sent.
    unsealed: BTreeSet<B256>,
    /// No envelope is made before: a wallet may be about to send the next transaction, or the last envelope failed.
    not_before: Option<Instant>,
}

struct Held {
    transaction: SignedTransaction,
    attempts: u32,
    envelope: Option<B256>,
}

/// An envelope that was sent.
#[derive(Clone, Debug)]
pub struct UnderWay {
    /// The sender of the transactions that it carries.
    pub sender: Address,
    /// Its encoding, to send it again.
    pub bytes: Bytes,
    /// The last batch that may hold it, and the generation that batch has to be of.
    pub expiry: Expiry,
    /// Whether the sequencer says that it has a place in a batch: the user's node is asked from then on.
    pub sealed: bool,
    /// The nonces of those transactions.
    pub nonces: Vec<u64>,
    /// The envelopes in whose place it was made, the oldest first. A batch may hold one of them all the same.
    pub earlier: Vec<B256>,
    /// It is not to be sent again: refused, or left out of a batch.
    pub left_out: Option<LeftOut>,
}

/// What comes after an envelope that was left out, before it is certain that no batch will ever hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Why the envelope was left out.
    pub reason: String,
    /// From when on another one may take its place; never where that does not mend what was wrong.
    pub replace_from: Option<Instant>,
}

/// Why the pool takes no transaction, in the words wallets know from geth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The very same transaction is held already.
    #[error("already known")]
    AlreadyKnown,
    /// Another transaction of this sender with this nonce is held; it may be encrypted and sent already.
    #[error("replacement transaction underpriced")]
    NonceTaken,
    /// Too many of all senders.
    #[error("txpool is full")]
    Full,
    /// Too many of this sender.
    #[error("account limit exceeded: {0} transactions are held for this sender")]
    SenderFull(usize),
}

impl PoolError {
    /// The reason in one stable word.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::AlreadyKnown => "already_known",
            Self::NonceTaken => "replacement_underpriced",
            Self::Full => "pool_full",
            Self::SenderFull(_) => "sender_limit",
        }
    }

    /// Whether the same transaction may be taken later.
    #[must_use]
    pub const fn retry(&self) -> bool {
        matches!(self, Self::Full | Self::SenderFull(_))
    }
}

/// What to do with a transaction whose envelope ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is finished: in a block, or given up for a reason.
    Finish(String),
    /// It goes into another envelope.
    Again,
}

impl Pool {
    /// How many transactions are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Whether a transaction may be taken. The same one that is on its way to the disk is no reason against it: whether that
    /// one arrives is not known yet.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn check(
        &self,
        transaction: &SignedTransaction,
        max: usize,
        max_per_sender: usize,
    ) -> Result<(), PoolError> {
        let SignedTransaction { hash, sender, nonce, .. } = transaction;
        if self.by_hash.contains_key(hash) {
            return Err(PoolError::AlreadyKnown);
        }
        let held = self.senders.get(sender).map(|sender| &sender.transactions);
        let arriving = self.arriving.get(sender).map_or(&[][..], Vec::as_slice);
        if arriving.iter().any(|arriving| arriving.hash == *hash) {
            return Ok(());
        }
        let taken = held.is_some_and(|held| held.contains_key(nonce));
        if taken || arriving.iter().any(|arriving| arriving.nonce == *nonce) {
            return Err(PoolError::NonceTaken);
        }
        let of_sender = held.map_or(0, BTreeMap::len) + arriving.len();
        if of_sender >= max_per_sender {
            return Err(PoolError::SenderFull(of_sender));
        }
        let of_all = self.by_hash.len() + self.arriving.values().map(Vec::len).sum::<usize>();
        if of_all >= max { Err(PoolError::Full) } else { Ok(()) }
    }

    /// Gives a transaction its place while it is on its way to the disk, if it [may be taken](Self::check); until
    /// [`arrived`](Self::arrived).
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn reserve(
        &mut self,
        transaction: &SignedTransaction,
        max: usize,
        max_per_sender: usize,
    ) -> Result<(), PoolError> {
        self.check(transaction, max, max_per_sender)?;
        let SignedTransaction { hash, nonce, .. } = transaction;
        let arriving = self.arriving.entry(transaction.sender).or_default();
        match arriving.iter_mut().find(|arriving| arriving.hash == *hash) {
            Some(same) => same.times += 1,
            None => arriving.push(Arriving { nonce: *nonce, hash: *hash, times: 1 }),
        }
        Ok(())
    }

    /// A transaction is on its way no more: it is durable and [taken](Self::take), or refused.
    pub fn arrived(&mut self, sender: &Address, hash: &B256) {
        let Some(arriving) = self.arriving.get_mut(sender) else { return };
        if let Some(same) = arriving.iter_mut().find(|arriving| arriving.hash == *hash) {
            same.times -= 1;
        }
        arriving.retain(|arriving| arriving.times > 0);
        if arriving.is_empty() {
            self.arriving.remove(sender);
        }
    }

    /// Takes a new transaction. The first one that waits keeps its sender's envelope open until `window_end`.
    pub fn take(&mut self, transaction: SignedTransaction, window_end: Instant) {
        let sender = transaction.sender;
        self.insert(transaction, 0, None);
        if let Some(sender) = self.senders.get_mut(&sender) {
            sender.not_before.get_or_insert(window_end);
        }
    }

    /// Puts a transaction where the journal has it.
    pub fn insert(&mut self, transaction: SignedTransaction, attempts: u32, envelope: Option<B256>) {
        self.by_hash.insert(transaction.hash, (transaction.sender, transaction.nonce));
        let sender = self.senders.entry(transaction.sender).or_default();
        sender.transactions.insert(transaction.nonce, Held { transaction, attempts, envelope });
    }

    /// A held transaction by its hash.
    #[must_use]
    pub fn by_hash(&self, hash: &B256) -> Option<&SignedTransaction> {
        let (sender, nonce) = self.by_hash.get(hash)?;
        self.senders.get(sender)?.transactions.get(nonce).map(|held| &held.transaction)
    }

    /// The next nonce of a sender when `node` is the next one on chain: past all consecutive held ones.
    #[must_use]
    pub fn pending_nonce(&self, sender: &Address, node: u64) -> u64 {
        let mut next = node;
        if let Some(sender) = self.senders.get(sender) {
            while sender.transactions.contains_key(&next) {
                next += 1;
            }
        }
        next
    }

    /// Senders with a transaction that is in no envelope, none waiting to be sealed, and no reason to wait.
    #[must_use]
    pub fn ready_senders(&self, now: Instant) -> Vec<Address> {
        self.senders
            .iter()
            .filter(|(_, sender)| {
                sender.unsealed.is_empty()
                    && sender.not_before.is_none_or(|not_before| not_before <= now)
                    && sender.transactions.values().any(|held| held.envelope.is_none())
            })
            .map(|(address, _)| *address)
            .collect()
    }

    /// What the next envelope of a sender carries: its consecutive transactions in no envelope, the first of which
    /// follows `node` (the next nonce on chain) and what is under way. Bounded by bundle size and `max_gas`.
    #[must_use]
    pub fn next_bundle(&self, sender: &Address, node: u64, max_gas: u64) -> Vec<SignedTransaction> {
        let Some(sender) = self.senders.get(sender).filter(|sender| sender.unsealed.is_empty()) else {
            return Vec::new();
        };
        let mut next = node;
        let (mut bytes, mut gas) = (BUNDLE_FIXED_BYTES, 0u64);
        let mut bundle: Vec<SignedTransaction> = Vec::new();
        while let Some(held) = sender.transactions.get(&next) {
            next += 1;
            if held.envelope.is_some() {
                if bundle.is_empty() {
                    // Under way and sealed: what comes after it may follow.
                    continue;
                }
                // One that came back from a skip goes first, alone.
                break;
            }
            bytes += BUNDLE_ITEM_BYTES + held.transaction.raw.len();
            gas = gas.saturating_add(held.transaction.gas_limit);
            let fits = bytes <= MAX_MESSAGE_BYTES && gas <= max_gas && bundle.len() < MAX_BUNDLE_ITEMS;
            if !fits && !bundle.is_empty() {
                break;
            }
            bundle.push(held.transaction.clone());
        }
        bundle
    }

    /// Held transactions of a sender, in no envelope, whose nonce is already used on chain.
    #[must_use]
    pub fn outdated(&self, sender: &Address, node: u64) -> Vec<B256> {
        self.senders.get(sender).map_or_else(Vec::new, |sender| {
            sender
                .transactions
                .range(..node)
                .filter(|(_, held)| held.envelope.is_none())
                .map(|(_, held)| held.transaction.hash)
                .collect()
        })
    }

    /// Notes that nothing of a sender can be sent yet: what comes next opens a window of its own.
    pub fn nothing_to_send(&mut self, sender: &Address) {
        if let Some(sender) = self.senders.get_mut(sender) {
            sender.not_before = None;
        }
    }

    /// Notes that an envelope carries these transactions of one sender.
    pub fn carried(&mut self, row: EnvelopeRow, expiry: Expiry, nonces: Vec<u64>) {
        let EnvelopeRow { id, sender, bytes, earlier } = row;
        for replaced in &earlier {
            self.sealed(replaced);
            self.envelopes.remove(replaced);
        }
        let entry = self.senders.entry(sender).or_default();
        for nonce in &nonces {
            if let Some(held) = entry.transactions.get_mut(nonce) {
                held.envelope = Some(id);
                held.attempts += 1;
            }
        }
        entry.unsealed.insert(id);
        entry.not_before = None;
        let under_way = UnderWay { sender, bytes, expiry, sealed: false, nonces, earlier, left_out: None };
        self.envelopes.insert(id, under_way);
    }

    /// Takes an envelope from the journal back, after a restart; its transactions are inserted with its id.
    pub fn restore_envelope(&mut self, row: EnvelopeRow, expiry: Expiry) {
        let EnvelopeRow { id, sender, bytes, earlier } = row;
        let entry = self.senders.entry(sender).or_default();
        let nonces = entry
            .transactions
            .iter()
            .filter(|(_, held)| held.envelope == Some(id))
            .map(|(nonce, _)| *nonce)
            .collect();
        entry.unsealed.insert(id);
        let under_way = UnderWay { sender, bytes, expiry, sealed: false, nonces, earlier, left_out: None };
        self.envelopes.insert(id, under_way);
    }

    /// All envelopes that are under way.
    #[must_use]
    pub fn envelopes(&self) -> Vec<B256> {
        self.envelopes.keys().copied().collect()
    }

    /// One of the envelopes that are under way.
    #[must_use]
    pub fn envelope(&self, id: &B256) -> Option<&UnderWay> {
        self.envelopes.get(id)
    }

    /// Notes that the sequencer says that an envelope has a place in a batch. It orders the next one where it likes, so its
    /// sender still waits.
    pub fn said_sealed(&mut self, id: &B256) {
        if let Some(envelope) = self.envelopes.get_mut(id) {
            envelope.sealed = true;
        }
    }

    /// Notes that the user's node has an envelope in a batch: its sender's next one may be made.
    pub fn sealed(&mut self, id: &B256) {
        if let Some(envelope) = self.envelopes.get_mut(id) {
            envelope.sealed = true;
            if let Some(sender) = self.senders.get_mut(&envelope.sender) {
                sender.unsealed.remove(id);
            }
        }
    }

    /// Notes that an envelope was left out; the first word stands.
    pub fn left_out(&mut self, id: &B256, left_out: LeftOut) {
        if let Some(envelope) = self.envelopes.get_mut(id) {
            envelope.left_out.get_or_insert(left_out);
        }
    }

    /// The transactions that an envelope carries, by nonce.
    #[must_use]
    pub fn transactions_of(&self, id: &B256) -> Vec<SignedTransaction> {
        let Some(envelope) = self.envelopes.get(id) else { return Vec::new() };
        let Some(sender) = self.senders.get(&envelope.sender) else { return Vec::new() };
        let held = envelope.nonces.iter().filter_map(|nonce| sender.transactions.get(nonce));
        held.map(|held| held.transaction.clone()).collect()
    }

    /// The transactions of an envelope with the number of envelopes that have carried each.
    #[must_use]
    pub fn carried_by(&self, id: &B256) -> Vec<(B256, u32)> {
        let Some(envelope) = self.envelopes.get(id) else { return Vec::new() };
        let Some(sender) = self.senders.get(&envelope.sender) else { return Vec::new() };
        envelope
            .nonces
            .iter()
            .filter_map(|nonce| sender.transactions.get(nonce))
            .map(|held| (held.transaction.hash, held.attempts))
            .collect()
    }

    /// Ends an envelope. What goes again waits until `not_before`.
    pub fn settle(&mut self, id: &B256, outcomes: &[(B256, Next)], not_before: Instant) {
        self.sealed(id);
        let ended = self.envelopes.remove(id);
        for (hash, next) in outcomes {
            match next {
                Next::Finish(_) => self.remove(hash),
                Next::Again => {
                    if let Some((sender, nonce)) = self.by_hash.get(hash)
                        && let Some(sender) = self.senders.get_mut(sender)
                        && let Some(held) = sender.transactions.get_mut(nonce)
                    {
                        held.envelope = None;
                        sender.not_before = Some(not_before);
                    }
                }
            }
        }
        if let Some(ended) = ended {
            self.forget_idle(&ended.sender);
        }
    }

    fn forget_idle(&mut self, address: &Address) {
        let idle = |sender: &Sender| sender.transactions.is_empty() && sender.unsealed.is_empty();
        if self.senders.get(address).is_some_and(idle) {
            self.senders.remove(address);
        }
    }

    /// Forgets a transaction.
    pub fn remove(&mut self, hash: &B256) {
        let Some((address, nonce)) = self.by_hash.remove(hash) else { return };
        if let Some(sender) = self.senders.get_mut(&address) {
            sender.transactions.remove(&nonce);
        }
        self.forget_idle(&address);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alloy_primitives::U256;
    use blindfold_protocol::SigningKey;
    use blindfold_runtime::now;

    use super::*;
    use crate::transaction::{TransactionFields, sign};

    const GAS: u64 = 21_000;
    const LONG: Duration = Duration::from_secs(3_600);
    const EXPIRY: Expiry = Expiry::new(0, 9);

    fn transaction(key: u8, nonce: u64, input: usize) -> SignedTransaction {
        let fields = TransactionFields {
            chain_id: 1,
            nonce,
            to: Address::ZERO,
            value: U256::ZERO,
            input: vec![1; input].into(),
            gas_limit: GAS,
            max_fee_per_gas: 1,
            max_priority_fee_per_gas: 0,
        };
        let (raw, _) = sign(&fields, &SigningKey::from_bytes(&[key; 32]).unwrap());
        SignedTransaction::decode(raw, 1).unwrap()
    }

    fn row(id: B256, sender: Address) -> EnvelopeRow {
        EnvelopeRow { id, sender, bytes: Bytes::new(), earlier: vec![] }
    }

    fn pool(nonces: &[u64]) -> (Pool, Address) {
        let mut pool = Pool::default();
        for nonce in nonces {
            pool.insert(transaction(1, *nonce, 0), 0, None);
        }
        (pool, transaction(1, 0, 0).sender)
    }

    fn nonces(bundle: &[SignedTransaction]) -> Vec<u64> {
        bundle.iter().map(|transaction| transaction.nonce).collect()
    }

    #[test]
    fn consecutive_nonces_share_an_envelope_and_a_gap_waits() {
        let (pool, sender) = pool(&[5, 6, 8]);
        assert_eq!(nonces(&pool.next_bundle(&sender, 5, u64::MAX)), [5, 6]);
        assert_eq!(pool.pending_nonce(&sender, 5), 7);
        assert!(pool.next_bundle(&sender, 4, u64::MAX).is_empty(), "nonce 4 is missing");
        assert_eq!(pool.outdated(&sender, 6), [transaction(1, 5, 0).hash]);
    }

    #[test]
    fn the_next_envelope_waits_until_the_users_node_has_the_last() {
        let (mut pool, sender) = pool(&[0, 1]);
        pool.carried(row(B256::repeat_byte(1), sender), EXPIRY, vec![0]);
        assert!(pool.ready_senders(now()).is_empty());
        assert!(pool.next_bundle(&sender, 0, u64::MAX).is_empty());
        pool.said_sealed(&B256::repeat_byte(1));
        assert!(pool.ready_senders(now()).is_empty(), "by the sequencer's word");
        pool.sealed(&B256::repeat_byte(1));
        assert_eq!(pool.ready_senders(now()), [sender]);
        assert_eq!(nonces(&pool.next_bundle(&sender, 0, u64::MAX)), [1]);
    }

    #[test]
    fn an_ended_envelope_frees_or_finishes_its_transactions() {
        let (mut pool, sender) = pool(&[0, 1]);
        let id = B256::repeat_byte(1);
        pool.carried(row(id, sender), EXPIRY, vec![0, 1]);
        let carried = pool.carried_by(&id);
        assert_eq!(carried.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [1, 1]);
        let outcomes = [(carried[0].0, Next::Finish("included".into())), (carried[1].0, Next::Again)];
        pool.settle(&id, &outcomes, now() + LONG);
        assert!(pool.ready_senders(now()).is_empty(), "not at once");
        assert_eq!(pool.ready_senders(now() + LONG), [sender]);
        assert_eq!((pool.len(), pool.envelopes().len()), (1, 0));
        assert_eq!(nonces(&pool.next_bundle(&sender, 1, u64::MAX)), [1]);
        pool.carried(row(B256::repeat_byte(2), sender), EXPIRY, vec![1]);
        pool.sealed(&B256::repeat_byte(2));
        pool.insert(transaction(1, 0, 9), 0, None);
        assert_eq!(nonces(&pool.next_bundle(&sender, 0, u64::MAX)), [0], "not past one that is under way");
        pool.remove(&transaction(1, 0, 9).hash);
        pool.settle(&B256::repeat_byte(2), &[], now());
        pool.remove(&carried[1].0);
        assert!(pool.len() == 0 && pool.senders.is_empty());
    }

    #[test]
    fn bundles_are_bounded_by_gas_and_bytes() {
        let (pool, sender) = pool(&[0, 1, 2]);
        assert_eq!(nonces(&pool.next_bundle(&sender, 0, 2 * GAS)), [0, 1]);
        assert_eq!(
            nonces(&pool.next_bundle(&sender, 0, 1)),
            [0],
            "a lone transaction is for the rules to judge"
        );
        let mut large = Pool::default();
        large.insert(transaction(1, 0, 20_000), 0, None);
        large.insert(transaction(1, 1, 20_000), 0, None);
        assert_eq!(nonces(&large.next_bundle(&sender, 0, u64::MAX)), [0]);
    }

    #[test]
    fn limits_and_doubles_are_refused() {
        let (pool, _) = pool(&[0, 1]);
        let check =
            |transaction: &SignedTransaction, max, per_sender| pool.check(transaction, max, per_sender);
        assert_eq!(check(&transaction(1, 0, 0), 9, 9), Err(PoolError::AlreadyKnown));
        assert_eq!(check(&transaction(1, 0, 1), 9, 9), Err(PoolError::NonceTaken));
        assert_eq!(check(&transaction(1, 2, 0), 9, 2), Err(PoolError::SenderFull(2)));
        assert_eq!(check(&transaction(2, 0, 0), 2, 9), Err(PoolError::Full));
        assert_eq!(check(&transaction(2, 0, 0), 3, 1), Ok(()));
    }

    #[test]
    fn what_is_on_its_way_to_the_disk_has_its_place() {
        let mut pool = Pool::default();
        let first = transaction(1, 0, 0);
        pool.reserve(&first, 3, 2).unwrap();
        pool.reserve(&first, 3, 2).expect("whether the first of the two arrives is not known yet");
        assert_eq!(pool.reserve(&transaction(1, 0, 1), 3, 2), Err(PoolError::NonceTaken));
        pool.reserve(&transaction(1, 1, 0), 3, 2).unwrap();
        assert_eq!(pool.reserve(&transaction(1, 2, 0), 3, 2), Err(PoolError::SenderFull(2)));
        pool.reserve(&transaction(2, 0, 0), 3, 2).unwrap();
        assert_eq!(pool.reserve(&transaction(3, 0, 0), 3, 2), Err(PoolError::Full));
        assert!(pool.len() == 0 && pool.by_hash(&first.hash).is_none(), "nothing of it is held yet");
        pool.arrived(&first.sender, &first.hash);
        assert_eq!(pool.check(&transaction(1, 0, 1), 9, 9), Err(PoolError::NonceTaken), "it came twice");
        pool.take(first.clone(), now());
        pool.arrived(&first.sender, &first.hash);
        assert_eq!(pool.check(&first, 9, 9), Err(PoolError::AlreadyKnown));
        for other in [transaction(1, 1, 0), transaction(2, 0, 0)] {
            pool.arrived(&other.sender, &other.hash);
        }
        assert!(pool.arriving.is_empty() && pool.check(&transaction(1, 1, 1), 9, 9).is_ok());
    }

    #[test]
    fn a_restart_restores_what_was_under_way() {
        let (mut pool, sender) = (Pool::default(), transaction(1, 0, 0).sender);
        let id = B256::repeat_byte(3);
        pool.insert(transaction(1, 0, 0), 1, Some(id));
        pool.insert(transaction(1, 1, 0), 0, None);
        pool.restore_envelope(EnvelopeRow { bytes: Bytes::from_static(b"e"), ..row(id, sender) }, EXPIRY);
        assert!(pool.ready_senders(now()).is_empty());
        assert_eq!(pool.envelope(&id).unwrap().nonces, [0]);
    }

    #[test]
    fn after_a_restart_every_restored_envelope_must_be_sealed_first() {
        for first_sealed in [1, 2] {
            let (mut pool, sender) = (Pool::default(), transaction(1, 0, 0).sender);
            for byte in [1, 2] {
                let id = B256::repeat_byte(byte);
                pool.insert(transaction(1, u64::from(byte), 0), 1, Some(id));
                pool.restore_envelope(row(id, sender), EXPIRY);
            }
            pool.insert(transaction(1, 3, 0), 0, None);
            pool.sealed(&B256::repeat_byte(first_sealed));
            assert!(pool.ready_senders(now()).is_empty(), "the other one is not sealed");
            assert!(pool.next_bundle(&sender, 1, u64::MAX).is_empty());
            pool.sealed(&B256::repeat_byte(3 - first_sealed));
            assert_eq!(pool.ready_senders(now()), [sender]);
        }
    }

    #[test]
    fn the_first_to_wait_opens_a_window_that_later_ones_do_not_stretch() {
        let mut pool = Pool::default();
        let (end, sender) = (now() + LONG, transaction(1, 0, 0).sender);
        pool.take(transaction(1, 0, 0), end);
        pool.take(transaction(1, 1, 0), end + LONG);
        assert!(pool.ready_senders(now()).is_empty());
        assert_eq!(pool.ready_senders(end), [sender]);
        pool.nothing_to_send(&sender);
        pool.take(transaction(1, 2, 0), end + LONG);
        assert!(pool.ready_senders(end).is_empty());
    }

    #[test]
    fn an_envelope_without_transactions_leaves_nothing_behind() {
        let mut pool = Pool::default();
        pool.restore_envelope(row(B256::repeat_byte(1), Address::repeat_byte(1)), EXPIRY);
        pool.settle(&B256::repeat_byte(1), &[], now());
        assert!(pool.senders.is_empty() && pool.envelopes().is_empty());
    }
}
