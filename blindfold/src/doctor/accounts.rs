//! Accounts that pay: what they have, and how long that lasts.

use alloy_primitives::{Address, U256};
use blindfold_l1::{L1Client, L1Error, PublisherBond};

use super::{
    finding::{Area, Finding},
    local::{Local, OpenedAccount},
    subject::AccountUse,
};
use crate::wallet::ether;

/// Gas of one transaction that the account is to afford: a large posting in calldata.
const TRANSACTION_GAS: u128 = 2_000_000;
/// With less than so many transactions' price somebody should send ether.
const MIN_TRANSACTIONS: u128 = 100;

/// The account that pays ordering fees, where there is one.
pub(super) fn payer(local: &Local) -> Option<Address> {
    let payer = local.accounts.iter().find(|account| account.is_for == AccountUse::PaysFees);
    payer.map(|account| account.address)
}

/// Balances on L1, and the bond of a hint publisher.
pub(super) async fn look(l1: &L1Client, accounts: &[OpenedAccount]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for account in accounts {
        if !matches!(account.is_for, AccountUse::PaysL1 | AccountUse::PostsHints) {
            continue;
        }
        let asked = async { Ok::<_, L1Error>((l1.balance(account.address).await?, l1.gas_offer().await?)) };
        findings.push(match asked.await {
            Ok((balance, offer)) => of_balance(account, balance, offer),
            Err(fault) => unanswered(account.setting, &fault),
        });
        if account.is_for == AccountUse::PostsHints {
            let asked = async {
                Ok::<_, L1Error>((l1.publisher_bond(account.address).await?, l1.hint_stakes().await?.0))
            };
            findings.push(match asked.await {
                Ok((bond, needed)) => of_bond(account, &bond, needed),
                Err(fault) => unanswered(account.setting, &fault),
            });
        }
    }
    findings
}

pub(super) fn unanswered(subject: &str, fault: &L1Error) -> Finding {
    Finding::error(Area::L1, subject, fault, "look at the L1 node, and run this again")
}

fn of_balance(account: &OpenedAccount, balance: U256, offer: u128) -> Finding {
    let OpenedAccount { setting, address, .. } = account;
    let found = format!("{address} has {} on L1", ether(balance));
    let next = format!("send ether to {address} on L1: it pays for this role's transactions");
    let transaction = U256::from(offer.saturating_mul(TRANSACTION_GAS));
    if balance < transaction {
        let found = format!("{found}, less than one posting costs");
        return Finding::error(Area::L1, *setting, found, next);
    }
    if balance < transaction.saturating_mul(U256::from(MIN_TRANSACTIONS)) {
        let found = format!("{found}, less than {MIN_TRANSACTIONS} large postings cost");
        return Finding::warning(Area::L1, *setting, found, next);
    }
    Finding::ok(Area::L1, *setting, found)
}

fn of_bond(account: &OpenedAccount, bond: &PublisherBond, needed: u128) -> Finding {
    let PublisherBond { total, open, .. } = *bond;
    let found =
        format!("bond {} of {}, {open} open postings", ether(U256::from(total)), ether(U256::from(needed)));
    if total < needed {
        let next =
            "raise `l1_posting.bond_wei` and start the role, or run `blindfold l1 bond publisher deposit`";
        return Finding::warning(Area::L1, account.setting, found, next);
    }
    Finding::ok(Area::L1, account.setting, found)
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    fn account() -> OpenedAccount {
        OpenedAccount { setting: "posting_key", is_for: AccountUse::PaysL1, address: Address::repeat_byte(7) }
    }

    #[test]
    fn an_account_is_warned_of_before_it_is_empty() {
        let gwei = 1_000_000_000;
        let posting = U256::from(gwei * TRANSACTION_GAS);
        let level = |balance| of_balance(&account(), balance, gwei).level;
        assert_eq!(level(U256::ZERO), Level::Error);
        assert_eq!(level(posting - U256::ONE), Level::Error);
        assert_eq!(level(posting), Level::Warning);
        assert_eq!(level(posting * U256::from(MIN_TRANSACTIONS)), Level::Ok);
        assert_eq!(of_balance(&account(), U256::MAX, u128::MAX).level, Level::Ok);
        let empty = of_balance(&account(), U256::ZERO, gwei);
        assert!(empty.next.is_some_and(|next| next.contains("send ether to 0x0707")));
    }

    #[test]
    fn a_short_bond_is_told() {
        let bond = |total| of_bond(&account(), &PublisherBond { total, locked: 0, open: 2 }, 10).level;
        assert_eq!((bond(9), bond(10)), (Level::Warning, Level::Ok));
    }
}
