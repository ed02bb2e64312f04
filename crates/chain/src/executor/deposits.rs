//! L1 deposits on their way into blocks.

use std::collections::VecDeque;

use alloy_primitives::Bytes;
use blindfold_protocol::limits::RESERVED_DEPOSIT_GAS;

use super::details::DepositCursor;
use crate::L1Deposit;
use crate::limits::DEPOSIT_READ_STEP_BLOCKS;

/// The deposits that no block has taken yet, as far as they were read.
pub(super) struct Deposits {
    /// Those that wait, in L1 order.
    waiting: VecDeque<L1Deposit>,
    /// Deposits of the first blocks read that are taken already: what the cursor says after a restart.
    skip: u64,
    /// Where the last block left off.
    cursor: DepositCursor,
    /// The L1 block up to which they were read.
    read: u64,
}

/// The deposits of one block.
pub(super) struct BlockDeposits {
    /// Raw transactions in L1 order.
    pub(super) raw: Vec<Bytes>,
    /// Where the chain stands after the block.
    pub(super) cursor: DepositCursor,
}

impl Deposits {
    /// Nothing is read yet; the chain stands at `cursor`.
    pub(super) fn after(cursor: DepositCursor) -> Self {
        Self { waiting: VecDeque::new(), skip: cursor.then, cursor, read: cursor.through }
    }

    /// The L1 blocks (after, through] to read next for a block of this origin; `None` when what it takes is here, and
    /// whether one is left.
    pub(super) fn missing(&self, origin: u64) -> Option<(u64, u64)> {
        let full = self.within(origin) > self.fitting(origin);
        (self.read < origin && !full)
            .then(|| (self.read, origin.min(self.read.saturating_add(DEPOSIT_READ_STEP_BLOCKS))))
    }

    /// Adds what was read, up to L1 block `through`.
    pub(super) fn add(&mut self, fresh: Vec<L1Deposit>, through: u64) {
        for deposit in fresh {
            if self.skip > 0 {
                self.skip -= 1;
            } else {
                self.waiting.push_back(deposit);
            }
        }
        self.read = through;
    }

    /// How many of the waiting ones a block of this origin knows of; more may have been read ahead.
    fn within(&self, origin: u64) -> usize {
        self.waiting.partition_point(|deposit| deposit.l1_block <= origin)
    }

    /// Up to which L1 block they were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// How many of the waiting ones one block of this origin takes: as long as the sum stays within the gas kept for them, and one in
    /// any case, so that nothing that L1 says can stand still here (DP-2).
    fn fitting(&self, origin: u64) -> usize {
        let mut left = RESERVED_DEPOSIT_GAS;
        let fits = |deposit: &&L1Deposit| match left.checked_sub(deposit.gas) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let within = self.within(origin);
        let count = self.waiting.iter().take(within).take_while(fits).count();
        count.max(within.min(1))
    }

    /// What the next block takes, which has this origin. Changes nothing: the block may have to be tried again.
    pub(super) fn next_block(&self, origin: u64) -> BlockDeposits {
        let count = self.fitting(origin);
        let raw = self.waiting.iter().take(count).map(|deposit| deposit.raw.clone()).collect();
        let cursor = match self.waiting.get(count).filter(|next| next.l1_block <= origin) {
            // Everything up to the origin is taken.
            None => DepositCursor { through: origin.max(self.cursor.through), then: 0, more: false },
            Some(next) => {
                let through = next.l1_block.saturating_sub(1);
                let of_block = self.waiting.iter().take(count).filter(|taken| taken.l1_block > through);
                // Of a block that several blocks share, the cursor counts what the blocks before took, too.
                let before = if self.cursor.through == through { self.cursor.then } else { 0 };
                DepositCursor { through, then: before + of_block.count() as u64, more: true }
            }
        };
        BlockDeposits { raw, cursor }
    }

    /// A block of this origin that leaves the chain at `cursor` is durable.
    pub(super) fn taken(&mut self, origin: u64, cursor: DepositCursor) {
        self.waiting.drain(..self.fitting(origin));
        self.cursor = cursor;
    }
}
