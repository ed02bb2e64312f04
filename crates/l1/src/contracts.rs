//! Bindings generated from `contracts/abi`, which `scripts/contracts abi` writes.
#![allow(missing_docs, clippy::too_many_arguments)]

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    BlindedInbox,
    "../../contracts/abi/BlindedInbox.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    CommitteeRegistry,
    "../../contracts/abi/CommitteeRegistry.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    FeeVault,
    "../../contracts/abi/FeeVault.json"
);
