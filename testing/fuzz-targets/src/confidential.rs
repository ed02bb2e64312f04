use std::sync::{Arc, LazyLock};

use blindfold_confidential::transaction::ConfidentialTransaction;
use blindfold_rlwe::rlwe::Parameters;

/// The small set: whole transactions are short enough to be found.
static TOY: LazyLock<Arc<Parameters>> = LazyLock::new(|| Parameters::toy().expect("fixed numbers"));
static BALANCE: LazyLock<Arc<Parameters>> = LazyLock::new(|| Parameters::balance().expect("fixed numbers"));

/// Confidential transactions: what decodes has exactly one encoding, and nothing panics.
///
/// Input: the transaction.
pub fn confidential(input: &[u8]) {
    for parameters in [&*TOY, &*BALANCE] {
        if let Ok(transaction) = ConfidentialTransaction::decode(parameters, input) {
            assert_eq!(transaction.encode(), input);
        }
    }
}
