//! The rows of "What fails, and what to do" in `docs/operate.md`, and what reproduces each.

/// What reproduces a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A drill of this run.
    Drill(&'static str),
    /// A case of `scripts/devnet --adversary`.
    Case(&'static str),
    /// Nothing here, and why.
    Nothing(&'static str),
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its first cell, up to what it says in parentheses or code.
    pub what: &'static str,
    /// What reproduces it.
    pub by: By,
    /// The alarms that it sets off, as its last cell names them.
    pub alarms: &'static [&'static str],
}

const fn row(what: &'static str, by: By, alarms: &'static [&'static str]) -> Row {
    Row { what, by, alarms }
}

use By::{Case, Drill, Nothing};

/// All of them, in the table's order.
pub const ROWS: &[Row] = &[
    row("sequencer", Drill("sequencer"), &["SequencerDown"]),
    row("sequencer, for good, or its key was stolen", Case("dead_committee_replaced"), &["SequencerDown"]),
    row("a gateway", Drill("gateway"), &["GatewayDown"]),
    row(
        "every sequencer, behind gateways",
        Drill("every_sequencer"),
        &["SequencerDown", "GatewayWithoutLeader"],
    ),
    row("a relay, or its source", Drill("relay"), &["RelayDown", "RoleNotReady"]),
    row("a relay's source that lies", Drill("lying_source"), &["RelayRefuses"]),
    row("the signer", Drill("signer"), &["SignerDown"]),
    row("one member", Drill("one_member"), &["MemberDown"]),
    row("two members", Drill("two_members"), &["MembersDown", "CommitteeStalled"]),
    row("a member with a wrong clock", Drill("member_clock"), &["MemberClock"]),
    row("a member that refuses", Case("reordered_after_release"), &["SecondHeader"]),
    row("a lying member", Drill("lying_member"), &["FaultyMember"]),
    row("hint publisher", Drill("hint_publisher"), &["HintPublisherDown", "HintsStalled", "DecryptsLocally"]),
    row("a hint publisher or sequencer that sends wrong hints", Drill("wrong_hints"), &["BadHints"]),
    row("sequencer's execution client", Drill("execution_of_sequencer"), &["ExecutionStalled"]),
    row("the hint publisher's bond is short", Drill("bond_short"), &["HintBondShort"]),
    row("no hint publisher posts hints", Drill("hints_unposted"), &["HintsUnposted", "HintDeadlineNear"]),
    row("L1 declared void what was executed", Drill("declared_void"), &["BlocksTakenBack"]),
    row("wrong hints on L1", Drill("wrong_hints_on_l1"), &["WrongHintsOnL1"]),
    row("wrong outputs on L1", Drill("wrong_output"), &["WrongOutput"]),
    row("two headers for one number", Case("reordered_after_release"), &["SecondHeader"]),
    row("the sequencer is accused on L1", Case("omitted_promise"), &["PromiseBroken"]),
    row("full node", Drill("full_node"), &["FullNodeDown"]),
    row("full node's execution client", Drill("execution_of_node"), &["RoleNotReady"]),
    row("`/readyz`: execution halted", Drill("skip_rule"), &["RoleNotReady"]),
    row("blocks differ from the sequencer's", Drill("block_differs"), &["BlockDivergence"]),
    row("proxy", Drill("proxy"), &["ProxyDown"]),
    row("the fee account is empty", Drill("fee_account_empty"), &["ProxyStalled"]),
    row("L1 node, while roles run", Drill("l1_away"), &["L1Unreachable"]),
    row("L1 node, at a start", Drill("l1_away_at_start"), &["FullNodeDown"]),
    row("L1 takes back a final block", Drill("final_block_taken_back"), &["RoleNotReady"]),
    row("posting fails", Drill("posting_fails"), &["PostingFailures"]),
    row("no epoch for the next number", Drill("no_epoch"), &["NoEpoch"]),
    row("the announced end of the epoch is near", Case("announced_end"), &["EpochEnds"]),
    row("more than n − t members are gone for good", Case("dead_committee_replaced"), &["MembersDown"]),
    row(
        "more than n − t members sign too seldom for the chain to go on, and too often to be silent",
        Drill("seldom"),
        &["CertificatesSlow"],
    ),
    row(
        "an epoch was registered that should not have been",
        Nothing("no role knows which epochs should be there"),
        &[],
    ),
    row("a rule set that this build does not know begins", Drill("unknown_rules"), &["RoleNotReady"]),
    row("disk full", Drill("disk_full"), &["StorageRefuses"]),
    row("disk error", Drill("disk_error"), &["MemberDown"]),
    row("two certificates for one number", Drill("conflicting_certificates"), &["ConflictingCertificates"]),
    row("overload", Drill("overload"), &["Overload"]),
];
