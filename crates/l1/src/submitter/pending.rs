//! What an account has on its way to L1, as far as its process knows.

use alloy_primitives::B256;

use crate::{error::L1Error, posting::run_data::MAX_PARTS, submitter::fees::Fees};

/// Calls of rows that are remembered: two of the longest, since a sequencer posts and supplies data from one account. Whoever
/// never asks for one again leaves it here.
const MAX_REMEMBERED: usize = 2 * MAX_PARTS as usize;
/// Transactions of a call that are remembered, and looked for one by one: each offers more than the one before, so there are
/// more only where a node does not say for long what becomes of them.
const MAX_TRANSACTIONS: usize = 64;

/// A transaction that is in a block and did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Hash of the transaction.
    pub transaction: B256,
    /// The block, which is not final yet.
    pub block: u64,
    /// Gas that it used, as its receipt says.
    pub gas_used: u64,
}

/// What may be in the way of the next transaction, and which calls of rows have been sent of which nobody was told that all of
/// them are there: where the row is tried again, what carried one of them does so still, and is not paid for twice.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub stuck: Option<Fees>,
    /// Oldest first.
    calls: Vec<SentCall>,
    /// Rows begun so far.
    rows: u64,
}

/// A call of a row.
#[derive(Clone, Debug)]
pub(crate) struct SentCall {
    /// Hash of what is called.
    pub what: B256,
    /// What carries it, the newest last: of those that took each other's place one gets into a block.
    pub transactions: Vec<B256>,
    /// What the newest offers.
    pub fees: Fees,
    pub state: State,
    /// The row that it was last sent in, or found.
    row: u64,
}

/// What is known of a call of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is in the pool, behind others, and nobody has waited for it yet.
    Waits,
    /// It did not get into a block in time, or may not be in the pool: the next try outbids it.
    Overdue,
    /// It was in a block, which need not be final, and what it cost is counted.
    Included,
}

impl Pending {
    /// Begins a row; its number.
    pub fn begin_row(&mut self) -> u64 {
        self.rows = self.rows.saturating_add(1);
        self.rows
    }

    /// The call with this hash, where an earlier row sent it, or this one and does not know whether it arrived. What this one
    /// has seen in a block is not looked for again: the same call twice in a row is meant.
    pub fn find(&self, row: u64, what: &B256) -> Option<&SentCall> {
        self.calls.iter().find(|call| {
            let is_done = call.state == State::Included && call.row == row;
            call.what == *what && !is_done
        })
    }

    /// Whether anything is remembered at all.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Notes a transaction that carries this call.
    pub fn note(&mut self, row: u64, what: B256, transaction: B256, fees: Fees, state: State) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.what == what) {
            // What is offered once more is the newest.
            call.transactions.retain(|before| *before != transaction);
            call.transactions.push(transaction);
            if call.transactions.len() > MAX_TRANSACTIONS {
                call.transactions.remove(0);
            }
            (call.fees, call.state, call.row) = (fees, state, row);
            return;
        }
        if self.calls.len() >= MAX_REMEMBERED {
            self.calls.remove(0);
        }
        self.calls.push(SentCall { what, transactions: vec![transaction], fees, state, row });
    }

    /// Notes what came of waiting for it.
    pub fn heard(&mut self, row: u64, what: &B256, outcome: &Result<Sent, L1Error>) {
        let state = match outcome {
            Ok(_) => State::Included,
            Err(L1Error::Unconfirmed { .. }) => State::Overdue,
            Err(L1Error::Failed { .. }) => return self.forget(&[*what]),
            Err(_) => return,
        };
        if let Some(call) = self.calls.iter_mut().find(|call| call.what == *what) {
            (call.state, call.row) = (state, row);
        }
    }

    /// A transaction with this nonce is in a block: nothing up to it is in the way.
    pub fn pass(&mut self, nonce: u64) {
        self.stuck = self.stuck.filter(|stuck| stuck.nonce > nonce);
    }

    /// Forgets calls: whoever sent them was told that all are there, or one of them has to be sent anew.
    pub fn forget(&mut self, whats: &[B256]) {
        self.calls.retain(|call| !whats.contains(&call.what));
    }

    /// What the transaction with this nonce offers, where a row sent it.
    pub fn offered_at(&self, nonce: u64) -> Option<Fees> {
        self.calls.iter().rev().map(|call| call.fees).find(|fees| fees.nonce == nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fees(nonce: u64) -> Fees {
        Fees { nonce, max_fee: 100, tip: 10, blob_fee: None }
    }

    #[test]
    fn a_call_is_found_until_its_row_is_there() {
        let mut pending = Pending::default();
        let [one, other] = [1, 2].map(B256::repeat_byte);
        let row = pending.begin_row();
        pending.note(row, one, B256::repeat_byte(11), fees(4), State::Waits);
        pending.note(row, other, B256::repeat_byte(12), fees(5), State::Waits);
        let sent = Sent { transaction: B256::repeat_byte(11), block: 7, gas_used: 1 };
        pending.heard(row, &one, &Ok(sent));
        assert!(pending.find(row, &one).is_none(), "the same call once more is meant");
        let unconfirmed =
            L1Error::Unconfirmed { call: "postData", transaction: B256::repeat_byte(12), waited_ms: 1 };
        pending.heard(row, &other, &Err(unconfirmed));

        let next = pending.begin_row();
        let state = |pending: &Pending, what: &B256| pending.find(next, what).map(|call| call.state);
        assert_eq!(state(&pending, &one), Some(State::Included));
        assert_eq!(state(&pending, &other), Some(State::Overdue));
        pending.note(next, other, B256::repeat_byte(13), fees(6), State::Overdue);
        assert_eq!(pending.find(next, &other).map(|call| call.transactions.len()), Some(2));
        assert_eq!((pending.offered_at(4), pending.offered_at(5)), (Some(fees(4)), None));
        pending.forget(&[one, other]);
        assert!(pending.is_empty());
    }

    /// A node that answers nothing of use to what it is given is given it again and again.
    #[test]
    fn no_more_than_so_many_transactions_of_a_call_are_remembered() {
        let mut pending = Pending::default();
        let (row, what) = (pending.begin_row(), B256::repeat_byte(1));
        let hash = |number: usize| B256::left_padding_from(&number.to_be_bytes());
        for number in (0..=MAX_TRANSACTIONS).chain([1, 1]) {
            pending.note(row, what, hash(number), fees(4), State::Overdue);
        }
        let found = &pending.find(row, &what).unwrap().transactions;
        assert_eq!(found.len(), MAX_TRANSACTIONS);
        assert_eq!((found.first(), found.last()), (Some(&hash(2)), Some(&hash(1))));
    }

    #[test]
    fn no_more_than_so_many_calls_are_remembered() {
        let mut pending = Pending::default();
        let row = pending.begin_row();
        let what = |number: usize| B256::left_padding_from(&number.to_be_bytes());
        for number in 0..=MAX_REMEMBERED {
            pending.note(row, what(number), B256::ZERO, fees(number as u64), State::Waits);
        }
        assert_eq!(pending.calls.len(), MAX_REMEMBERED);
        assert!(pending.find(row, &what(0)).is_none() && pending.find(row, &what(1)).is_some());
    }
}
