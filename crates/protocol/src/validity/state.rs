//! The half of the validity rule that looks at the chain: one computation, used to seal and to check.

use super::base_fee::{BaseFees, Load};
use super::check::{
    CheckedEnvelope, CheckedItem, check_expiry, check_fields, check_forced_expiry, item_facts, item_leaf,
};
use super::facts::{AppliedBatch, L1Facts, LastBatchError, LedgerEvent, OriginFacts, Verdict};
use super::faults::{HeaderError, InputError, SealError};
use super::head::Head;
use crate::block::block_second;
use crate::config::ChainConfig;
use crate::epoch::Epoch;
use crate::fault::{CODE_FORCED_TRANSACTION, EnvelopeError};
use crate::forced::ForcedEntry;
use crate::header::BatchHeader;
use crate::ledger::{FeeLedger, LedgerBefore, LedgerChanges, LedgerDelta, LedgerDeltaError};
use crate::limits::{
    EXPIRY_WINDOW, MAX_BATCH_ITEMS, MAX_ENVELOPE_BYTES, MAX_FORCED_ITEMS, MAX_SECOND_BYTES, RULES,
};
use crate::{data, merkle};
use alloy_primitives::{Address, B256};
use std::collections::HashSet;

/// The chain up to a header: its head, and the fee ledger after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainState {
    pub(super) config: ChainConfig,
    pub(super) head: Head,
    pub(super) ledger: FeeLedger,
}

/// What the computation found, before anything is changed.
struct Computed {
    verdicts: Vec<Verdict>,
    delta: LedgerDelta,
    envelope_root: B256,
    envelope_bytes: u32,
    gas: u64,
    fees: BaseFees,
    totals: SecondTotals,
}

/// Sums over the batches of one whole second.
#[derive(Clone, Copy, Default)]
pub(super) struct SecondTotals {
    pub(super) gas: u64,
    pub(super) bytes: u64,
    /// Of the bytes those of accepted envelopes and forced transactions.
    pub(super) load_bytes: u64,
}

/// What an envelope pays, in wei.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// To the chain's base fee recipient.
    base: u128,
    /// What goes to the sequencer, in wei.
    priority: u128,
    /// Held until it is known to be well-formed.
    surcharge: u128,
}

impl ChainState {
    /// The state before the first header.
    pub fn genesis(config: ChainConfig) -> Self {
        let head = Head::genesis(&config);
        Self { config, head, ledger: FeeLedger::default() }
    }

    /// The state as it was stored.
    pub fn from_parts(config: ChainConfig, head: Head, ledger: FeeLedger) -> Self {
        Self { config, head, ledger }
    }

    /// The settings of the chain, the same for every party.
    pub fn config(&self) -> &ChainConfig {
        &self.config
    }

    /// The last header, as far as the next one depends on it.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The fee ledger after the last header.
    pub fn ledger(&self) -> &FeeLedger {
        &self.ledger
    }

    /// Base fees of a next header in this second. The first header of all has the chain's initial ones (F-3, F-4).
    pub fn base_fees_at(&self, second: u64) -> BaseFees {
        let Head { base_fee, gas_base_fee, .. } = self.head;
        let fees = BaseFees { base_fee, gas_base_fee };
        if self.head.number == 0 {
            return fees;
        }
        let load = Load { bytes: self.head.second_load_bytes, gas: self.head.second_gas };
        let seconds = second.saturating_sub(block_second(self.head.timestamp_ms));
        fees.after(load, seconds, &self.config)
    }

    /// Base fees of a header in the second after the head's; they fall with each second that passes without load.
    pub fn next_base_fees(&self) -> BaseFees {
        self.base_fees_at(block_second(self.head.timestamp_ms).saturating_add(1))
    }

    /// Gas and item bytes that the given second still has room for.
    pub fn room(&self, second: u64) -> (u64, u64) {
        let totals = self.second_totals(second);
        // The totals obey the limits; a restored head that does not has no room.
        (
            self.config.second_gas_limit().saturating_sub(totals.gas),
            MAX_SECOND_BYTES.saturating_sub(totals.bytes),
        )
    }

    pub(super) fn second_totals(&self, second: u64) -> SecondTotals {
        if second != block_second(self.head.timestamp_ms) {
            return SecondTotals::default();
        }
        let Head { second_gas, second_bytes, second_load_bytes, .. } = self.head;
        SecondTotals { gas: second_gas, bytes: second_bytes, load_bytes: second_load_bytes }
    }

    /// What an item by itself costs its payer, whose maximal fees cover the base fees. `None` is more than 128 bits.
    /// Rules F-1, F-8.
    fn cost(&self, item: &CheckedEnvelope, fees: BaseFees) -> Option<Cost> {
        let header = &item.envelope.header;
        // What the payer gives above the base fee per byte: maxFee is not below that.
        let tip = header.priority_fee.min(header.max_fee.checked_sub(fees.base_fee)?);
        Some(Cost {
            base: fees.base_part(item.item_bytes, header.gas_limit)?,
            priority: u128::from(item.item_bytes).checked_mul(tip)?,
            surcharge: self.config.malformed_surcharge,
        })
    }

    /// The three faults that depend on the ledger; gives what it costs (F-1).
    fn check_fees(
        &self,
        item: &CheckedEnvelope,
        fees: BaseFees,
        balance: u128,
        nonce_used: bool,
    ) -> Result<Cost, EnvelopeError> {
        let header = &item.envelope.header;
        if nonce_used {
            return Err(EnvelopeError::FeeNonceUsed);
        }
        let covered = header.max_fee >= fees.base_fee
            && header.max_fee >= header.priority_fee
            && header.max_gas_fee >= fees.gas_base_fee;
        if !covered {
            return Err(EnvelopeError::FeeTooLow);
        }
        match self.cost(item, fees) {
            Some(cost) if cost.sum().is_some_and(|sum| sum <= balance) => Ok(cost),
            _ => Err(EnvelopeError::InsufficientFunds),
        }
    }

    /// The last fault, of forced envelopes as of others: what L1 made headers in the place of may have been opened.
    /// Rule G-1.
    fn check_generation(&self, item: &CheckedEnvelope) -> Result<(), EnvelopeError> {
        let fits = item.envelope.header.expiry.generation() == self.head.generation;
        if fits { Ok(()) } else { Err(EnvelopeError::WrongGeneration) }
    }

    /// Whether the next batch, of this second, would accept the envelope, as far as the head shows: expiry, fee nonce,
    /// fee, funds, generation. For an envelope of the next number's epoch, checked against that epoch.
    pub fn admissible(&self, item: &CheckedEnvelope, second: u64) -> Result<(), EnvelopeError> {
        let header = &item.envelope.header;
        // Saturating: there is no number after the last.
        let number = self.head.number.saturating_add(1);
        let expiry = header.expiry.number();
        if expiry < number {
            return Err(EnvelopeError::Expired);
        }
        if expiry > number.saturating_add(EXPIRY_WINDOW) {
            return Err(EnvelopeError::ExpiryTooFar);
        }
        let balance = self.ledger.account(&header.payer).map_or(0, |account| account.balance);
        // A nonce whose expiry has passed is free again.
        let used = self.ledger.nonce(&header.payer, header.fee_nonce).is_some_and(|expiry| expiry >= number);
        self.check_fees(item, self.base_fees_at(second), balance, used)?;
        self.check_generation(item)
    }

    /// What would become of the items, without changing anything.
    pub fn preview(
        &self,
        timestamp_ms: u64,
        items: &[CheckedItem],
        forced: usize,
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<Vec<Verdict>, SealError> {
        self.compute(timestamp_ms, items, forced, epoch, facts).map(|computed| computed.verdicts)
    }

    /// Makes and applies the next header. Items must have been checked against `epoch`, `raw` are their bytes; the first
    /// `forced` of them are the next entries of the forced queue, and enough of them that nothing due is left out. All or
    /// nothing.
    pub fn seal<T: AsRef<[u8]>>(
        &mut self,
        timestamp_ms: u64,
        items: &[CheckedItem],
        raw: &[T],
        forced: usize,
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<(BatchHeader, AppliedBatch), SealError> {
        let origin = &facts.origin;
        check_raw(items, raw)?;
        let Computed { verdicts, delta, envelope_root, envelope_bytes, gas, fees, totals } =
            self.compute(timestamp_ms, items, forced, epoch, facts)?;
        self.ledger.apply(&delta).map_err(InputError::Ledger)?;
        let codes: Vec<u8> = verdicts.iter().map(Verdict::code).collect();
        let header = BatchHeader {
            // `compute` has found that a number follows.
            number: self.head.number + 1,
            parent_hash: self.head.hash,
            timestamp_ms,
            l1_origin_number: origin.number,
            l1_origin_hash: origin.hash,
            l1_origin_time: origin.timestamp,
            envelope_root,
            data_hash: data::hash_items(&codes, raw),
            // `compute` has bounded the count.
            envelope_count: items.len() as u32,
            envelope_bytes,
            gas,
            base_fee: fees.base_fee,
            gas_base_fee: fees.gas_base_fee,
            fee_ledger_root: self.ledger.root(),
            // `compute` has found that these entries exist.
            forced_cursor: self.head.forced_cursor + forced as u64,
            epoch: epoch.epoch,
            rules: RULES,
        };
        let head = Head {
            number: header.number,
            hash: header.hash(),
            timestamp_ms,
            l1_origin: origin.number,
            l1_origin_hash: origin.hash,
            l1_origin_time: origin.timestamp,
            base_fee: fees.base_fee,
            gas_base_fee: fees.gas_base_fee,
            second_gas: totals.gas,
            second_bytes: totals.bytes,
            second_load_bytes: totals.load_bytes,
            forced_cursor: header.forced_cursor,
            made_at: 0,
            generation: self.head.generation,
        };
        let previous_head = std::mem::replace(&mut self.head, head);
        let applied = AppliedBatch {
            number: header.number,
            header_hash: head.hash,
            verdicts,
            ledger_delta: delta,
            previous_head,
            head,
        };
        Ok((header, applied))
    }

    /// Checks a header against its recomputation and applies it; inputs as for [`ChainState::seal`]. All or nothing.
    /// The signature is for [`check_signature`](super::check_signature).
    pub fn apply<T: AsRef<[u8]>>(
        &mut self,
        header: &BatchHeader,
        items: &[CheckedItem],
        raw: &[T],
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<AppliedBatch, HeaderError> {
        let origin = &facts.origin;
        let expected = self.head.number.checked_add(1).ok_or(HeaderError::Input(InputError::Exhausted))?;
        if header.number != expected {
            return Err(HeaderError::Number { got: header.number, expected });
        }
        if header.parent_hash != self.head.hash {
            return Err(HeaderError::Parent { got: header.parent_hash, expected: self.head.hash });
        }
        if (header.l1_origin_number, header.l1_origin_hash) != (origin.number, origin.hash) {
            return Err(HeaderError::Origin { number: header.l1_origin_number, hash: header.l1_origin_hash });
        }
        if header.l1_origin_time != origin.timestamp {
            let (got, expected) = (header.l1_origin_time, origin.timestamp);
            return Err(HeaderError::OriginTime { got, expected });
        }
        if header.epoch != epoch.epoch {
            return Err(HeaderError::Epoch { got: header.epoch, expected: epoch.epoch });
        }
        check_rules(header.rules)?;
        let before = self.head.forced_cursor;
        let forced = header
            .forced_cursor
            .checked_sub(before)
            .ok_or(HeaderError::ForcedCursor { got: header.forced_cursor, expected: before })?;
        if forced > MAX_FORCED_ITEMS as u64 {
            return Err(SealError::ForcedCap(forced).into());
        }
        // At most `MAX_FORCED_ITEMS`.
        let forced = forced as usize;
        let (recomputed, applied) = self.seal(header.timestamp_ms, items, raw, forced, epoch, facts)?;
        if let Err(fault) = compare(header, &recomputed) {
            let undone = self.revert(applied);
            assert!(undone.is_ok(), "what was just applied can be undone");
            return Err(fault);
        }
        Ok(applied)
    }

    /// Undoes the last header applied or sealed, exactly.
    pub fn revert(&mut self, applied: AppliedBatch) -> Result<(), LastBatchError> {
        if self.head != applied.head {
            return Err(LastBatchError::NotLast { number: applied.number, head: self.head.number });
        }
        self.ledger.revert(&applied.ledger_delta)?;
        self.head = applied.previous_head;
        Ok(())
    }

    /// Goes back to an earlier header of this chain, whose head this was and whose `feeLedgerRoot` this is, over all that
    /// changed since. False, and nothing has changed, where that does not lead to the root.
    #[must_use]
    pub fn go_back(&mut self, head: Head, fee_ledger_root: B256, before: LedgerBefore) -> bool {
        let back = self.ledger.go_back(before, fee_ledger_root);
        if back {
            self.head = head;
        }
        back
    }

    /// The one computation behind sealing and checking (V-5, V-6, V-10, V-13).
    fn compute(
        &self,
        timestamp_ms: u64,
        items: &[CheckedItem],
        forced: usize,
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<Computed, SealError> {
        let number = self.head.number.checked_add(1).ok_or(InputError::Exhausted)?;
        self.check_frame(number, timestamp_ms, items, epoch, &facts.origin)?;
        let entries = self.check_forced(items, forced, facts)?;

        let mut ledger = self.ledger.changes();
        self.take_events(&mut ledger, facts)?;
        ledger.prune(number);

        let fees = self.base_fees_at(block_second(timestamp_ms));
        let mut verdicts = Vec::with_capacity(items.len());
        let mut leaves = Vec::with_capacity(items.len());
        let mut accepted = HashSet::with_capacity(items.len());
        let (mut position, mut gas, mut bytes, mut load_bytes) = (0u32, 0u64, 0u64, 0u64);
        for (index, item) in (0u32..).zip(items) {
            let (id, item_bytes, item_hash) = item_facts(item);
            bytes += u64::from(item_bytes);
            let entry = entries.get(index as usize);
            if let Some(gas_limit) = entry.and_then(ForcedEntry::transaction_gas) {
                gas = gas.saturating_add(gas_limit);
                load_bytes += u64::from(item_bytes);
                verdicts.push(Verdict::ForcedTransaction);
                leaves.push(item_leaf(&B256::ZERO, &item_hash, CODE_FORCED_TRANSACTION));
                continue;
            }
            // What was skipped does not count: a mangled copy has the id of the genuine one, and must not keep it out.
            let first = !accepted.contains(&id);
            let sequencer = facts.sequencer;
            let forced = entry.is_some();
            let place = Place { number, index, first, forced, epoch, sequencer, fees };
            let verdict = match self.take(&mut ledger, item, &place).map_err(InputError::Ledger)? {
                Ok(gas_limit) => {
                    // Each limit is below 2^64 / 4096 in any sane chain; a sum beyond is refused as too much gas.
                    gas = gas.saturating_add(gas_limit);
                    load_bytes += u64::from(item_bytes);
                    accepted.insert(id);
                    position += 1;
                    Verdict::Accepted { position: position - 1 }
                }
                Err(fault) => Verdict::Skipped(fault),
            };
            verdicts.push(verdict);
            leaves.push(item_leaf(&id, &item_hash, verdict.code()));
        }

        let before = self.second_totals(block_second(timestamp_ms));
        let totals = SecondTotals {
            gas: before.gas.saturating_add(gas),
            bytes: before.bytes.saturating_add(bytes),
            load_bytes: before.load_bytes.saturating_add(load_bytes),
        };
        if totals.gas > self.config.second_gas_limit() {
            return Err(SealError::SecondGas { gas: totals.gas, limit: self.config.second_gas_limit() });
        }
        if totals.bytes > MAX_SECOND_BYTES {
            return Err(SealError::SecondBytes { bytes: totals.bytes });
        }
        Ok(Computed {
            verdicts,
            delta: ledger.finish(),
            envelope_root: merkle::root(&leaves),
            // At most `MAX_SECOND_BYTES`.
            envelope_bytes: bytes as u32,
            gas,
            fees,
            totals,
        })
    }

    /// The rules of time, origin, epoch and size, before any item is looked at (V-2, V-3, V-4, V-7, O-6).
    fn check_frame(
        &self,
        number: u64,
        timestamp_ms: u64,
        items: &[CheckedItem],
        epoch: &Epoch,
        origin: &OriginFacts,
    ) -> Result<(), SealError> {
        if timestamp_ms <= self.head.timestamp_ms {
            return Err(SealError::Time { timestamp_ms, parent_ms: self.head.timestamp_ms });
        }
        let second = block_second(timestamp_ms);
        if second < origin.timestamp {
            return Err(SealError::TimeBeforeOrigin { second, origin: origin.timestamp });
        }
        let limit = self.config.timing.max_origin_age_seconds;
        if second > origin.timestamp.saturating_add(limit.into()) {
            return Err(SealError::OriginTooOld { second, origin: origin.timestamp, limit });
        }
        if origin.number < self.head.l1_origin {
            return Err(SealError::OriginBack { origin: origin.number, parent: self.head.l1_origin });
        }
        if origin.number < self.head.made_at {
            return Err(SealError::OriginBeforeL1Header {
                origin: origin.number,
                made_at: self.head.made_at,
            });
        }
        if !epoch.contains(number) {
            return Err(SealError::Epoch { number, epoch: epoch.epoch });
        }
        if items.len() > MAX_BATCH_ITEMS {
            return Err(SealError::TooManyItems(items.len()));
        }
        for (index, item) in items.iter().enumerate() {
            let (_, bytes, _) = item_facts(item);
            if bytes as usize > MAX_ENVELOPE_BYTES {
                return Err(SealError::ItemTooLong { index, bytes });
            }
        }
        Ok(())
    }

    /// The entries of the forced queue that the first items must be, after checking that they are and that nothing due
    /// is left out (FI-1, V-8).
    fn check_forced<'a>(
        &self,
        items: &[CheckedItem],
        forced: usize,
        facts: &'a L1Facts,
    ) -> Result<&'a [ForcedEntry], SealError> {
        let mut enqueued_at = 0;
        for (entry, index) in facts.forced.iter().zip(self.head.forced_cursor..) {
            let in_order = (enqueued_at..=facts.origin.number).contains(&entry.enqueued_at);
            if entry.index != index || !in_order {
                return Err(InputError::Forced { index: entry.index }.into());
            }
            enqueued_at = entry.enqueued_at;
        }
        if forced > MAX_FORCED_ITEMS {
            return Err(SealError::ForcedCap(forced as u64));
        }
        let Some((taken, left)) = facts.forced.split_at_checked(forced) else {
            // Saturating: there are not 2^64 entries.
            let index = self.head.forced_cursor.saturating_add(facts.forced.len() as u64);
            return Err(SealError::ForcedAhead { index });
        };
        for (item, entry) in (0u32..).zip(taken) {
            let hash = items.get(item as usize).map(|item| item_facts(item).2);
            if hash != Some(entry.item_hash()) {
                return Err(SealError::ForcedItem { item, index: entry.index });
            }
        }
        if forced < MAX_FORCED_ITEMS
            && let Some(entry) = left.first()
        {
            let due = entry.due_at(self.config.timing.forced_delay);
            if due <= facts.origin.number {
                return Err(SealError::ForcedIgnored { index: entry.index, due });
            }
        }
        Ok(taken)
    }

    /// What L1 said to the fee ledger since the parent's origin: deposits and withdrawals in L1 order, then what is
    /// released of the surcharges (F-9).
    fn take_events(&self, ledger: &mut LedgerChanges<'_>, facts: &L1Facts) -> Result<(), InputError> {
        let (after, up_to) = (self.head.l1_origin, facts.origin.number);
        for event in &facts.ledger {
            let l1_block = event.l1_block();
            if l1_block <= after || l1_block > up_to {
                return Err(InputError::Event { l1_block, after, up_to });
            }
            match event {
                LedgerEvent::Deposit(deposit) => ledger.credit(deposit.payer, deposit.amount)?,
                LedgerEvent::Withdrawal(withdrawal) => {
                    ledger.withdraw(withdrawal.payer, withdrawal.amount)?;
                }
                LedgerEvent::Settled(_) => {}
            }
        }
        for event in &facts.ledger {
            if let LedgerEvent::Settled(settled) = event {
                let malformed = if settled.void { &[][..] } else { &settled.malformed };
                ledger.settle(settled.first, settled.last, malformed, facts.sequencer)?;
            }
        }
        Ok(())
    }

    /// Takes one item: the inner result is its gas limit or why it is skipped, the outer one our own fault.
    fn take(
        &self,
        ledger: &mut LedgerChanges<'_>,
        item: &CheckedItem,
        place: &Place<'_>,
    ) -> Result<Result<u64, EnvelopeError>, LedgerDeltaError> {
        let checked = match item {
            Ok(checked) => checked,
            Err(rejected) => {
                // Faults found later in the rule's order give way to those that depend on the batch.
                let earlier = rejected.expiry.map_or(Ok(()), |expiry| {
                    self.check_forced_gas(place, rejected.gas_limit)?;
                    place.check(expiry)
                });
                return Ok(Err(earlier.err().unwrap_or(rejected.fault)));
            }
        };
        let header = &checked.envelope.header;
        let cost = check_fields(&self.config, place.epoch, header, checked.envelope.ciphertext.e.len())
            .and_then(|()| self.check_forced_gas(place, header.gas_limit))
            .and_then(|()| place.check(header.expiry.number()))
            .and_then(|()| match ledger.nonce_used(&header.payer, header.fee_nonce, place.number) {
                // Paid for on L1.
                used if place.forced => {
                    if used {
                        Err(EnvelopeError::FeeNonceUsed)
                    } else {
                        Ok(Cost::default())
                    }
                }
                used => self.check_fees(checked, place.fees, ledger.balance(&header.payer), used),
            })
            .and_then(|cost| self.check_generation(checked).map(|()| cost));
        let cost = match cost {
            Ok(cost) => cost,
            Err(fault) => return Ok(Err(fault)),
        };
        // The base parts are nobody's whose choice of items could raise them (F-2).
        for (to, amount) in [(self.config.base_fee_recipient, cost.base), (place.sequencer, cost.priority)] {
            if amount > 0 {
                ledger.debit(header.payer, amount)?;
                ledger.credit(to, amount)?;
            }
        }
        if cost.surcharge > 0 {
            ledger.hold(place.number, place.index, header.payer, cost.surcharge)?;
        }
        ledger.use_nonce(header.payer, header.fee_nonce, header.expiry.number());
        Ok(Ok(header.gas_limit))
    }
}

impl ChainState {
    /// `gas_limit_too_high` of a forced envelope (FI-5).
    fn check_forced_gas(&self, place: &Place<'_>, gas_limit: u64) -> Result<(), EnvelopeError> {
        let too_high = place.forced && gas_limit > self.config.forced_envelope_gas_limit();
        if too_high { Err(EnvelopeError::GasLimitTooHigh) } else { Ok(()) }
    }
}

/// Where in which batch an item stands.
struct Place<'a> {
    number: u64,
    index: u32,
    first: bool,
    /// Whether it comes from the forced queue.
    forced: bool,
    epoch: &'a Epoch,
    /// Who gets the priority fee.
    sequencer: Address,
    fees: BaseFees,
}

impl Cost {
    /// All of it; `None` above 128 bits.
    fn sum(&self) -> Option<u128> {
        self.base.checked_add(self.priority)?.checked_add(self.surcharge)
    }
}

impl Place<'_> {
    /// The faults that depend on the batch: expiry, and being accepted in it already.
    fn check(&self, expiry: u64) -> Result<(), EnvelopeError> {
        if self.forced {
            check_forced_expiry(expiry, self.number, self.epoch)?;
        } else {
            check_expiry(expiry, self.number, self.epoch)?;
        }
        if self.first { Ok(()) } else { Err(EnvelopeError::Duplicate) }
    }
}

/// The bytes must be those that were checked: the header commits to them.
fn check_raw<T: AsRef<[u8]>>(items: &[CheckedItem], raw: &[T]) -> Result<(), InputError> {
    let differs = |(item, raw): (&CheckedItem, &T)| item_facts(item).1 as usize != raw.as_ref().len();
    match items.iter().zip(raw).position(differs) {
        None if items.len() == raw.len() => Ok(()),
        None => Err(InputError::Bytes { index: items.len().min(raw.len()) }),
        Some(index) => Err(InputError::Bytes { index }),
    }
}

/// The header must name the one rule set there is.
pub(super) fn check_rules(got: u16) -> Result<(), HeaderError> {
    if got == RULES { Ok(()) } else { Err(HeaderError::Rules { got, expected: RULES }) }
}

/// Field by field, so that the fault says which one is wrong.
pub(super) fn compare(header: &BatchHeader, recomputed: &BatchHeader) -> Result<(), HeaderError> {
    let fault = if header.envelope_count != recomputed.envelope_count {
        HeaderError::Count { got: header.envelope_count, expected: recomputed.envelope_count }
    } else if header.envelope_bytes != recomputed.envelope_bytes {
        HeaderError::Bytes { got: header.envelope_bytes, expected: recomputed.envelope_bytes }
    } else if header.gas != recomputed.gas {
        HeaderError::Gas { got: header.gas, expected: recomputed.gas }
    } else if header.base_fee != recomputed.base_fee {
        HeaderError::BaseFee { got: header.base_fee, expected: recomputed.base_fee }
    } else if header.gas_base_fee != recomputed.gas_base_fee {
        HeaderError::GasBaseFee { got: header.gas_base_fee, expected: recomputed.gas_base_fee }
    } else if header.envelope_root != recomputed.envelope_root {
        HeaderError::EnvelopeRoot { got: header.envelope_root, expected: recomputed.envelope_root }
    } else if header.data_hash != recomputed.data_hash {
        HeaderError::DataHash { got: header.data_hash, expected: recomputed.data_hash }
    } else if header.forced_cursor != recomputed.forced_cursor {
        HeaderError::ForcedCursor { got: header.forced_cursor, expected: recomputed.forced_cursor }
    } else if header.fee_ledger_root != recomputed.fee_ledger_root {
        HeaderError::FeeLedgerRoot { got: header.fee_ledger_root, expected: recomputed.fee_ledger_root }
    } else {
        assert_eq!(header, recomputed, "every field has been compared");
        return Ok(());
    };
    Err(fault)
}
