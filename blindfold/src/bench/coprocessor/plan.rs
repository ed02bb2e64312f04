//! Who pays whom, and what everybody has in the end: the plain model.

use rand::{RngExt, SeedableRng, rngs::StdRng};

/// What all accounts have together: below 2^32, so that the baseline's table reads every balance.
const SUPPLY: u64 = 1 << 31;
/// What each transfer pays the operator.
pub(super) const FEE: u64 = 1;

/// A payment between two accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) amount: u64,
}

/// All payments, and the balances that they leave.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// What every account begins with, available.
    pub(super) deposit: u64,
    pub(super) payments: Vec<Payment>,
    /// Available and pending of each account in the end.
    pub(super) balances: Vec<[u64; 2]>,
}

impl Plan {
    /// Senders take turns; receivers and amounts are random. Of its deposit an account spends an equal share at most
    /// in each of its turns, so nobody runs dry, whatever the number of transfers.
    pub(super) fn new(accounts: u32, transfers: u32, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let accounts = accounts as usize;
        let deposit = SUPPLY / accounts as u64;
        let turns = u64::from(transfers).div_ceil(accounts as u64).max(1);
        let most = (deposit / turns).saturating_sub(FEE);
        let mut balances = vec![[deposit, 0]; accounts];
        let payments = (0..transfers as usize)
            .map(|turn| {
                let from = turn % accounts;
                let to = (from + rng.random_range(1..accounts)) % accounts;
                let amount = rng.random_range(0..=most);
                balances[from][0] -= amount + FEE;
                balances[to][1] += amount;
                Payment { from, to, amount }
            })
            .collect();
        Self { seed, deposit, payments, balances }
    }

    pub(super) fn accounts(&self) -> usize {
        self.balances.len()
    }

    /// What the operator gets.
    pub(super) fn fees(&self) -> u64 {
        FEE * self.payments.len() as u64
    }

    /// Everything that there is.
    pub(super) fn supply(&self) -> u64 {
        self.deposit * self.accounts() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_or_lost_and_nobody_pays_himself() {
        for (accounts, transfers) in [(2, 1), (2, 10_000), (3, 5_000), (10_000, 100)] {
            let plan = Plan::new(accounts, transfers, 7);
            let held: u64 = plan.balances.iter().flatten().sum();
            assert_eq!(held + plan.fees(), plan.supply());
            assert!(plan.payments.iter().all(|payment| payment.from != payment.to));
            assert_eq!(plan.payments.len(), transfers as usize);
            assert_eq!(plan.payments, Plan::new(accounts, transfers, 7).payments);
        }
    }
}
