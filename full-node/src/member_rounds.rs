//! Asking members for what the sequencer does not give, beside following: one that is slow holds nothing up.

use std::sync::Arc;

use blindfold_chain::FetchedRuns;
use blindfold_runtime::Pauses;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::task::JoinSet;

use crate::limits::{MAX_MEMBER_PAUSE_MS, MAX_MEMBER_ROUND_BATCHES};
use crate::members::{CertifiedRun, Member};
use crate::node::Node;

/// What members gave in one round of asking.
pub(crate) type MemberRound = FetchedRuns<CertifiedRun>;

/// Rounds over all members, one at a time. Nothing is taken in them. Dropping it ends the one under way.
pub(crate) struct MemberRounds {
    node: Arc<Node>,
    under_way: JoinSet<MemberRound>,
    /// Members that claimed to hold more than they gave, or were slow to give it.
    pauses: Pauses<u16>,
}

impl MemberRounds {
    pub(crate) fn new(node: Arc<Node>, first_pause_ms: u64) -> Self {
        Self { node, under_way: JoinSet::new(), pauses: Pauses::new(first_pause_ms, MAX_MEMBER_PAUSE_MS) }
    }

    /// Begins a round for what follows this certified number, unless one is under way.
    pub(crate) fn begin(&mut self, certified: u64) {
        if !self.under_way.is_empty() {
            return;
        }
        let ready = |member: &&Member| self.pauses.is_over(&member.index());
        let members: Vec<Member> = self.node.members.iter().filter(ready).cloned().collect();
        let node = Arc::clone(&self.node);
        self.under_way.spawn(async move { round(&node, &members, certified.saturating_add(1)).await });
    }

    /// The end of the round under way; for ever where there is none. Nothing is lost when the future is dropped.
    pub(crate) async fn ended(&mut self) -> MemberRound {
        match self.under_way.join_next().await {
            // One that panicked ends the role.
            Some(ended) => ended.unwrap_or_default(),
            None => std::future::pending().await,
        }
    }

    /// What this member gave came to nothing: the others are asked for a while.
    pub(crate) fn pause(&mut self, member: u16) {
        self.pauses.failed(member);
    }

    /// L1 made a header: members that could show it alone, which nobody signed, did not fail.
    pub(crate) fn forgive(&mut self) {
        self.pauses.clear();
    }

    /// What this member gave was taken.
    pub(crate) fn trust(&mut self, member: u16) {
        self.pauses.succeeded(&member);
    }
}

/// Asks all at once what they hold, and those that hold what is wanted for it, one beside the other as far as they are slow.
async fn round(node: &Node, members: &[Member], number: u64) -> MemberRound {
    let claim = |member: &Member| {
        let member = member.clone();
        async move { (member.index(), member.certified().await) }
    };
    let claims: FuturesUnordered<_> = members.iter().map(claim).collect();
    let claims = claims.filter_map(|(member, claim)| {
        let claim = claim.inspect_err(|fault| {
            tracing::debug!(member, %fault, "the member does not say what it holds");
        });
        // While nothing is certified, nobody is asked for batches.
        std::future::ready(claim.ok().map(|certified| (member, certified)))
    });
    let run_of = async |member: u16, number: u64| {
        let run = node.members.by_index(member)?.certified_run(number, &node.tracker).await;
        run.inspect_err(|fault| {
            tracing::warn!(number, member, %fault, "the member claims to hold more than it gives");
        })
        .ok()
    };
    node.fetcher.runs(claims, run_of, number, MAX_MEMBER_ROUND_BATCHES).await
}
