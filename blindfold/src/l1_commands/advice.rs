//! What to do about what the contracts refuse.

use anyhow::Error;
use blindfold_l1::L1Error;

/// The contracts' errors that a person meets who governs a deployment, and what to do. The contract's own words, with its
/// numbers, follow.
const ADVICE: [(&str, &str); 9] = [
    ("NotGovernor", "only the governor's key may do this: the one that deployed the contracts, with --key"),
    (
        "NotSilent",
        "the committee is not silent: try again after L1 block `until` if nothing certified comes, or have its epoch end \
         whatever it does with `blindfold l1 committee end-at-head`",
    ),
    (
        "ChangeTooSoon",
        "that is too near to the posted head: a change may begin with batch `earliest`, or later",
    ),
    (
        "NotAnEarlierEnd",
        "give a --last below the present one and not below the epoch's first number (`blindfold l1 status` has both)",
    ),
    (
        "RulesOutOfOrder",
        "rule sets rise by one, each from a later number on: `blindfold l1 status` shows the last one",
    ),
    (
        "EndNotDue",
        "no end is due: announce one, and wait for its notice; `blindfold l1 status` shows what is announced",
    ),
    ("HeadersPosted", "headers are posted: `blindfold l1 post-header` ends the epoch when its end is due"),
    ("EmptyEpoch", "the epoch would have no number: give a --last that is not below `firstNumber`"),
    (
        "BadMemberCount",
        "this deployment registers no committee of that size: 64 at most, and --min-members of its deployment at least",
    ),
];

/// The error, with what to do where that is known.
pub(crate) fn advised(error: L1Error) -> Error {
    let advice = match &error {
        L1Error::Reverted { reason, .. } => {
            // "NotSilent { since: 3, until: 14403 }"
            let name = reason.split([' ', '{', '(']).next().unwrap_or_default();
            ADVICE.iter().find(|(known, _)| *known == name).map(|(_, advice)| *advice)
        }
        _ => None,
    };
    let error = Error::new(error);
    match advice {
        Some(advice) => error.context(advice),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(reason: &str) -> String {
        format!("{:#}", advised(L1Error::Reverted { call: "announceSilence", reason: reason.to_owned() }))
    }

    #[test]
    fn what_a_contract_refuses_comes_with_what_to_do() {
        let silent = said("NotSilent { since: 3, until: 14403 }");
        assert!(silent.starts_with("the committee is not silent"), "{silent}");
        assert!(silent.ends_with("announceSilence would be refused: NotSilent { since: 3, until: 14403 }"));
        assert!(said("EmptyEpoch { firstNumber: 9, lastNumber: 3 }").contains("--last"));
        assert!(said("NotGovernor { caller: 0x00 }").contains("--key"));
        assert_eq!(said("no reason given"), "announceSilence would be refused: no reason given");
    }
}
