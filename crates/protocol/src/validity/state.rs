//! The half of the validity rule that looks at the chain: one computation, used to seal and to check.

use super::base_fee::next_base_fee;
use super::check::{
    CheckedEnvelope, CheckedItem, check_expiry, check_fields, check_forced_expiry, item_facts, item_leaf,
};
use super::facts::{AppliedBatch, L1Facts, LastBatchFault, LedgerEvent, OriginFacts, Verdict};
use super::faults::{HeaderFault, InputFault, SealFault};
use super::head::Head;
use crate::block::block_second;
use crate::config::ChainConfig;
use crate::epoch::Epoch;
use crate::fault::{CODE_FORCED_TRANSACTION, EnvelopeFault};
use crate::forced::ForcedEntry;
use crate::header::BatchHeader;
use crate::ledger::{Account, FeeLedger, Held, LedgerChanges, LedgerDelta, LedgerFault};
use crate::limits::{EXPIRY_WINDOW, MAX_BATCH_ITEMS, MAX_ENVELOPE_BYTES, MAX_FORCED_ITEMS, MAX_SECOND_BYTES};
use crate::merkle;
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
    base_fee: u128,
    second_gas: u64,
    second_bytes: u64,
}

impl ChainState {
    /// The state before the first header.
    pub fn genesis(config: ChainConfig) -> Self {
        let head = Head::genesis(&config);
        Self { config, head, ledger: FeeLedger::default() }
    }

    /// The state as it was stored.
    pub fn from_parts(
        config: ChainConfig,
        head: Head,
        accounts: impl IntoIterator<Item = (Address, Account)>,
        held: impl IntoIterator<Item = (u64, Vec<Held>)>,
    ) -> Self {
        Self { config, head, ledger: FeeLedger::from_parts(accounts, held) }
    }

    /// The chain's settings.
    pub fn config(&self) -> &ChainConfig {
        &self.config
    }

    /// The last header.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The fee ledger after the last header.
    pub fn ledger(&self) -> &FeeLedger {
        &self.ledger
    }

    /// Base fee of the next header, in wei per item byte.
    pub fn next_base_fee(&self) -> u128 {
        next_base_fee(self.head.base_fee, self.head.bytes, self.config.min_base_fee)
    }

    /// Gas and item bytes that the given second still has room for.
    pub fn room(&self, second: u64) -> (u64, u64) {
        let (gas, bytes) = self.second_totals(second);
        // The totals obey the limits; a restored head that does not has no room.
        (self.config.second_gas_limit().saturating_sub(gas), MAX_SECOND_BYTES.saturating_sub(bytes))
    }

    pub(super) fn second_totals(&self, second: u64) -> (u64, u64) {
        if second == block_second(self.head.timestamp_ms) {
            (self.head.second_gas, self.head.second_bytes)
        } else {
            (0, 0)
        }
    }

    /// What an item by itself costs its payer at a base fee: fee and surcharge. `None` is more than 128 bits.
    fn cost(&self, item: &CheckedEnvelope, base_fee: u128) -> Option<(u128, u128)> {
        let header = &item.envelope.header;
        // Saturating: the price is the smaller of this sum and maxFee, which has 128 bits as well.
        let price = header.max_fee.min(base_fee.saturating_add(header.priority_fee));
        let fee = u128::from(item.item_bytes).checked_mul(price)?;
        let surcharge = self.config.malformed_surcharge;
        fee.checked_add(surcharge)?;
        Some((fee, surcharge))
    }

    /// The last three faults, which depend on the ledger; gives fee and surcharge.
    fn check_fees(
        &self,
        item: &CheckedEnvelope,
        base_fee: u128,
        balance: u128,
        nonce_used: bool,
    ) -> Result<(u128, u128), EnvelopeFault> {
        let header = &item.envelope.header;
        if nonce_used {
            return Err(EnvelopeFault::FeeNonceUsed);
        }
        if header.max_fee < base_fee || header.max_fee < header.priority_fee {
            return Err(EnvelopeFault::FeeTooLow);
        }
        match self.cost(item, base_fee) {
            // `cost` has added both without overflow.
            Some((fee, surcharge)) if fee + surcharge <= balance => Ok((fee, surcharge)),
            _ => Err(EnvelopeFault::InsufficientFunds),
        }
    }

    /// Whether the next batch would accept the envelope, as far as the head shows: expiry, fee nonce, fee, funds.
    /// For an envelope of the next number's epoch, checked against that epoch.
    pub fn admissible(&self, item: &CheckedEnvelope) -> Result<(), EnvelopeFault> {
        let header = &item.envelope.header;
        // Saturating: there is no number after the last.
        let number = self.head.number.saturating_add(1);
        if header.expiry < number {
            return Err(EnvelopeFault::Expired);
        }
        if header.expiry > number.saturating_add(EXPIRY_WINDOW) {
            return Err(EnvelopeFault::ExpiryTooFar);
        }
        let account = self.ledger.account(&header.payer);
        let balance = account.map_or(0, |account| account.balance);
        // A nonce whose expiry has passed is pruned before the next batch takes items.
        let used = account
            .and_then(|account| account.nonces.get(&header.fee_nonce))
            .is_some_and(|expiry| *expiry >= number);
        self.check_fees(item, self.next_base_fee(), balance, used).map(|_| ())
    }

    /// What would become of the items, without changing anything.
    pub fn preview(
        &self,
        timestamp_ms: u64,
        items: &[CheckedItem],
        forced: usize,
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<Vec<Verdict>, SealFault> {
        self.compute(timestamp_ms, items, forced, epoch, facts).map(|computed| computed.verdicts)
    }

    /// Makes and applies the next header. Items must have been checked against `epoch`; the first `forced` of them are
    /// the next entries of the forced queue, and enough of them that nothing due is left out. All or nothing.
    pub fn seal(
        &mut self,
        timestamp_ms: u64,
        items: &[CheckedItem],
        forced: usize,
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<(BatchHeader, AppliedBatch), SealFault> {
        let origin = &facts.origin;
        let Computed {
            verdicts,
            delta,
            envelope_root,
            envelope_bytes,
            gas,
            base_fee,
            second_gas,
            second_bytes,
        } = self.compute(timestamp_ms, items, forced, epoch, facts)?;
        self.ledger.apply(&delta).map_err(InputFault::Ledger)?;
        let header = BatchHeader {
            // `compute` has found that a number follows.
            number: self.head.number + 1,
            parent_hash: self.head.hash,
            timestamp_ms,
            l1_origin_number: origin.number,
            l1_origin_hash: origin.hash,
            envelope_root,
            // `compute` has bounded the count.
            envelope_count: items.len() as u32,
            envelope_bytes,
            gas,
            base_fee,
            fee_ledger_root: self.ledger.root(),
            // `compute` has found that these entries exist.
            forced_cursor: self.head.forced_cursor + forced as u64,
            epoch: epoch.epoch,
        };
        let head = Head {
            number: header.number,
            hash: header.hash(),
            timestamp_ms,
            l1_origin: origin.number,
            l1_origin_hash: origin.hash,
            base_fee,
            bytes: envelope_bytes,
            second_gas,
            second_bytes,
            forced_cursor: header.forced_cursor,
            made_at: 0,
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
    pub fn apply(
        &mut self,
        header: &BatchHeader,
        items: &[CheckedItem],
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<AppliedBatch, HeaderFault> {
        let origin = &facts.origin;
        let expected = self.head.number.checked_add(1).ok_or(HeaderFault::Input(InputFault::Exhausted))?;
        if header.number != expected {
            return Err(HeaderFault::Number { got: header.number, expected });
        }
        if header.parent_hash != self.head.hash {
            return Err(HeaderFault::Parent { got: header.parent_hash, expected: self.head.hash });
        }
        if (header.l1_origin_number, header.l1_origin_hash) != (origin.number, origin.hash) {
            return Err(HeaderFault::Origin { number: header.l1_origin_number, hash: header.l1_origin_hash });
        }
        if header.epoch != epoch.epoch {
            return Err(HeaderFault::Epoch { got: header.epoch, expected: epoch.epoch });
        }
        let before = self.head.forced_cursor;
        let forced = header
            .forced_cursor
            .checked_sub(before)
            .ok_or(HeaderFault::ForcedCursor { got: header.forced_cursor, expected: before })?;
        if forced > MAX_FORCED_ITEMS as u64 {
            return Err(SealFault::ForcedCap(forced).into());
        }
        // At most `MAX_FORCED_ITEMS`.
        let forced = forced as usize;
        let (recomputed, applied) = self.seal(header.timestamp_ms, items, forced, epoch, facts)?;
        if let Err(fault) = compare(header, &recomputed) {
            let undone = self.revert(applied);
            assert!(undone.is_ok(), "what was just applied can be undone");
            return Err(fault);
        }
        Ok(applied)
    }

    /// Undoes the last header applied or sealed, exactly.
    pub fn revert(&mut self, applied: AppliedBatch) -> Result<(), LastBatchFault> {
        if self.head != applied.head {
            return Err(LastBatchFault::NotLast { number: applied.number, head: self.head.number });
        }
        self.ledger.revert(&applied.ledger_delta)?;
        self.head = applied.previous_head;
        Ok(())
    }

    /// The one computation behind sealing and checking.
    fn compute(
        &self,
        timestamp_ms: u64,
        items: &[CheckedItem],
        forced: usize,
        epoch: &Epoch,
        facts: &L1Facts,
    ) -> Result<Computed, SealFault> {
        let number = self.head.number.checked_add(1).ok_or(InputFault::Exhausted)?;
        self.check_frame(number, timestamp_ms, items, epoch, &facts.origin)?;
        let entries = self.check_forced(items, forced, facts)?;

        let mut ledger = self.ledger.changes();
        self.take_events(&mut ledger, facts)?;
        ledger.prune(number);

        let base_fee = self.next_base_fee();
        let mut verdicts = Vec::with_capacity(items.len());
        let mut leaves = Vec::with_capacity(items.len());
        let mut seen = HashSet::with_capacity(items.len());
        let (mut position, mut gas, mut bytes) = (0u32, 0u64, 0u64);
        for (index, item) in (0u32..).zip(items) {
            let (id, item_bytes, item_hash) = item_facts(item);
            bytes += u64::from(item_bytes);
            let entry = entries.get(index as usize);
            if let Some(gas_limit) = entry.and_then(ForcedEntry::transaction_gas) {
                gas = gas.saturating_add(gas_limit);
                verdicts.push(Verdict::ForcedTransaction);
                leaves.push(item_leaf(&B256::ZERO, &item_hash, CODE_FORCED_TRANSACTION));
                continue;
            }
            // Only a decoded item has an id to repeat.
            let first = id.is_zero() || seen.insert(id);
            let place = Place { number, index, first, forced: entry.is_some(), epoch, base_fee };
            let verdict = match self.take(&mut ledger, item, &place).map_err(InputFault::Ledger)? {
                Ok(gas_limit) => {
                    // Each limit is below 2^64 / 4096 in any sane chain; a sum beyond is refused as too much gas.
                    gas = gas.saturating_add(gas_limit);
                    position += 1;
                    Verdict::Accepted { position: position - 1 }
                }
                Err(fault) => Verdict::Skipped(fault),
            };
            verdicts.push(verdict);
            leaves.push(item_leaf(&id, &item_hash, verdict.code()));
        }

        let (second_gas, second_bytes) = self.second_totals(block_second(timestamp_ms));
        let second_gas = second_gas.saturating_add(gas);
        let second_bytes = second_bytes.saturating_add(bytes);
        if second_gas > self.config.second_gas_limit() {
            return Err(SealFault::SecondGas { gas: second_gas, limit: self.config.second_gas_limit() });
        }
        if second_bytes > MAX_SECOND_BYTES {
            return Err(SealFault::SecondBytes { bytes: second_bytes });
        }
        Ok(Computed {
            verdicts,
            delta: ledger.finish(),
            envelope_root: merkle::root(&leaves),
            // At most `MAX_SECOND_BYTES`.
            envelope_bytes: bytes as u32,
            gas,
            base_fee,
            second_gas,
            second_bytes,
        })
    }

    /// The rules of time, origin, epoch and size, before any item is looked at.
    fn check_frame(
        &self,
        number: u64,
        timestamp_ms: u64,
        items: &[CheckedItem],
        epoch: &Epoch,
        origin: &OriginFacts,
    ) -> Result<(), SealFault> {
        if timestamp_ms <= self.head.timestamp_ms {
            return Err(SealFault::Time { timestamp_ms, parent_ms: self.head.timestamp_ms });
        }
        let second = block_second(timestamp_ms);
        if second < origin.timestamp {
            return Err(SealFault::TimeBeforeOrigin { second, origin: origin.timestamp });
        }
        if origin.number < self.head.l1_origin {
            return Err(SealFault::OriginBack { origin: origin.number, parent: self.head.l1_origin });
        }
        if origin.number < self.head.made_at {
            return Err(SealFault::OriginBeforeL1Header {
                origin: origin.number,
                made_at: self.head.made_at,
            });
        }
        if !epoch.contains(number) {
            return Err(SealFault::Epoch { number, epoch: epoch.epoch });
        }
        if items.len() > MAX_BATCH_ITEMS {
            return Err(SealFault::TooManyItems(items.len()));
        }
        for (index, item) in items.iter().enumerate() {
            let (_, bytes, _) = item_facts(item);
            if bytes as usize > MAX_ENVELOPE_BYTES {
                return Err(SealFault::ItemTooLong { index, bytes });
            }
        }
        Ok(())
    }

    /// The entries of the forced queue that the first items must be, after checking that they are and that nothing due
    /// is left out.
    fn check_forced<'a>(
        &self,
        items: &[CheckedItem],
        forced: usize,
        facts: &'a L1Facts,
    ) -> Result<&'a [ForcedEntry], SealFault> {
        let mut enqueued_at = 0;
        for (entry, index) in facts.forced.iter().zip(self.head.forced_cursor..) {
            let in_order = (enqueued_at..=facts.origin.number).contains(&entry.enqueued_at);
            if entry.index != index || !in_order {
                return Err(InputFault::Forced { index: entry.index }.into());
            }
            enqueued_at = entry.enqueued_at;
        }
        if forced > MAX_FORCED_ITEMS {
            return Err(SealFault::ForcedCap(forced as u64));
        }
        let Some((taken, left)) = facts.forced.split_at_checked(forced) else {
            // Saturating: there are not 2^64 entries.
            let index = self.head.forced_cursor.saturating_add(facts.forced.len() as u64);
            return Err(SealFault::ForcedAhead { index });
        };
        for (item, entry) in (0u32..).zip(taken) {
            let hash = items.get(item as usize).map(|item| item_facts(item).2);
            if hash != Some(entry.item_hash()) {
                return Err(SealFault::ForcedItem { item, index: entry.index });
            }
        }
        if forced < MAX_FORCED_ITEMS
            && let Some(entry) = left.first()
        {
            let due = entry.due_at(self.config.timing.forced_delay);
            if due <= facts.origin.number {
                return Err(SealFault::ForcedIgnored { index: entry.index, due });
            }
        }
        Ok(taken)
    }

    /// What L1 said to the fee ledger since the parent's origin: deposits and withdrawals in L1 order, then what is
    /// released of the surcharges.
    fn take_events(&self, ledger: &mut LedgerChanges<'_>, facts: &L1Facts) -> Result<(), InputFault> {
        let (after, up_to) = (self.head.l1_origin, facts.origin.number);
        for event in &facts.ledger {
            let l1_block = event.l1_block();
            if l1_block <= after || l1_block > up_to {
                return Err(InputFault::Event { l1_block, after, up_to });
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
                ledger.settle(settled.first, settled.last, malformed, self.config.sequencer)?;
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
    ) -> Result<Result<u64, EnvelopeFault>, LedgerFault> {
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
        let fees = check_fields(&self.config, place.epoch, header, checked.envelope.ciphertext.e.len())
            .and_then(|()| self.check_forced_gas(place, header.gas_limit))
            .and_then(|()| place.check(header.expiry))
            .and_then(|()| match ledger.nonce_used(&header.payer, header.fee_nonce) {
                // Paid for on L1.
                used if place.forced => {
                    if used {
                        Err(EnvelopeFault::FeeNonceUsed)
                    } else {
                        Ok((0, 0))
                    }
                }
                used => self.check_fees(checked, place.base_fee, ledger.balance(&header.payer), used),
            });
        let (fee, surcharge) = match fees {
            Ok(fees) => fees,
            Err(fault) => return Ok(Err(fault)),
        };
        if fee > 0 {
            ledger.debit(header.payer, fee)?;
            ledger.credit(self.config.sequencer, fee)?;
        }
        if surcharge > 0 {
            ledger.hold(place.number, place.index, header.payer, surcharge)?;
        }
        ledger.use_nonce(header.payer, header.fee_nonce, header.expiry);
        Ok(Ok(header.gas_limit))
    }
}

impl ChainState {
    /// `gas_limit_too_high` of a forced envelope.
    fn check_forced_gas(&self, place: &Place<'_>, gas_limit: u64) -> Result<(), EnvelopeFault> {
        let too_high = place.forced && gas_limit > self.config.forced_envelope_gas_limit();
        if too_high { Err(EnvelopeFault::GasLimitTooHigh) } else { Ok(()) }
    }
}

/// Where an item stands.
struct Place<'a> {
    number: u64,
    index: u32,
    first: bool,
    /// Whether it comes from the forced queue.
    forced: bool,
    epoch: &'a Epoch,
    base_fee: u128,
}

impl Place<'_> {
    /// The faults that depend on the batch: expiry, and being there already.
    fn check(&self, expiry: u64) -> Result<(), EnvelopeFault> {
        if self.forced {
            check_forced_expiry(expiry, self.number, self.epoch)?;
        } else {
            check_expiry(expiry, self.number, self.epoch)?;
        }
        if self.first { Ok(()) } else { Err(EnvelopeFault::Duplicate) }
    }
}

/// Field by field, so that the fault says which one is wrong.
pub(super) fn compare(header: &BatchHeader, recomputed: &BatchHeader) -> Result<(), HeaderFault> {
    let fault = if header.envelope_count != recomputed.envelope_count {
        HeaderFault::Count { got: header.envelope_count, expected: recomputed.envelope_count }
    } else if header.envelope_bytes != recomputed.envelope_bytes {
        HeaderFault::Bytes { got: header.envelope_bytes, expected: recomputed.envelope_bytes }
    } else if header.gas != recomputed.gas {
        HeaderFault::Gas { got: header.gas, expected: recomputed.gas }
    } else if header.base_fee != recomputed.base_fee {
        HeaderFault::BaseFee { got: header.base_fee, expected: recomputed.base_fee }
    } else if header.envelope_root != recomputed.envelope_root {
        HeaderFault::EnvelopeRoot { got: header.envelope_root, expected: recomputed.envelope_root }
    } else if header.forced_cursor != recomputed.forced_cursor {
        HeaderFault::ForcedCursor { got: header.forced_cursor, expected: recomputed.forced_cursor }
    } else if header.fee_ledger_root != recomputed.fee_ledger_root {
        HeaderFault::FeeLedgerRoot { got: header.fee_ledger_root, expected: recomputed.fee_ledger_root }
    } else {
        assert_eq!(header, recomputed, "every field has been compared");
        return Ok(());
    };
    Err(fault)
}
