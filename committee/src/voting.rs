//! Whether this member may vote: a disk that does not know what was signed before could sign a second time.
//!
//! - C-1: a fresh disk votes from the first number of the epoch after every number that may have been voted for. Only
//!   before the chain's first certified header it votes at once, for then nobody has voted for anything that counts.
//! - C-2: a disk that does not know a vote which a certificate carries is older than the member's last vote. It is
//!   treated as a fresh one from then on.
//! - C-3: after every start the member votes only when its chain reaches what the other members that answer hold
//!   certified, so that C-2 sees every vote that they could show.

use std::sync::Arc;

use blindfold_chain::Tracker;
use blindfold_protocol::{Certificate, certificate, limits::MAX_UNCERTIFIED_HEADERS};
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

use crate::{
    catch_up::Survey,
    key_file::KeyFilePublic,
    member::{Context, is_member_of},
};

/// Where the first number that this disk votes for is stored; empty while it is not decided.
const KEY: &str = "committee.votes_from";
/// Name of the readiness condition.
pub(crate) const VOTING: &str = "voting";

/// Why this member does not vote for a number now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Abstains {
    /// The other members are being asked, or the chain here is behind theirs.
    #[error("this member votes once it has caught up with what the others hold")]
    CatchingUp,
    /// The disk is fresh, or older than the member's last vote, and not enough members have answered.
    #[error(
        "this disk does not know what the member voted for, and too few other members answer to tell from when on \
         it may vote"
    )]
    Undecided,
    /// The disk is fresh, or was, in this epoch.
    #[error("this disk does not know what the member voted for below number {from}, and votes from there on")]
    Until {
        /// The first number that it votes for.
        from: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The first number that this disk votes for.
    from: Option<u64>,
    /// What the others held certified at the start; unknown until they were asked.
    reach: Option<u64>,
}

/// The rules C-1 to C-3 with what is known for them.
pub(crate) struct Voting {
    store: Arc<dyn Store>,
    state: Mutex<State>,
}

impl Voting {
    pub(crate) async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let stored = store.meta(KEY).await?;
        // What is damaged is not decided.
        let from = stored.and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
        Ok(Self { store, state: Mutex::new(State { from, reach: None }) })
    }

    /// The first number that this disk votes for, once that is decided.
    pub(crate) fn from(&self) -> Option<u64> {
        self.state.lock().from
    }

    /// Rule C-2, for a certificate that stands: whether it carries a vote of this member that its disk does not know.
    pub(crate) async fn check_own_vote(
        &self,
        tracker: &Tracker,
        us: &KeyFilePublic,
        certificate: &Certificate,
    ) {
        let number = certificate.number;
        if self.from().is_none_or(|from| number < from)
            || !certificate::signers(certificate).contains(&us.member)
            || !tracker.epoch(number).await.is_ok_and(|epoch| is_member_of(us, &epoch))
        {
            return;
        }
        // Also one that gave way under rule C-5: its certificate may come late.
        match tracker.store().was_acknowledged(number, certificate.header_hash).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(
                    number,
                    certified = %certificate.header_hash,
                    "a certificate carries a vote of this member that its disk does not know: the disk was restored from \
                     an older copy, or another machine uses this key; nothing more is voted for in this epoch"
                );
                if let Err(error) = self.decide(None).await {
                    tracing::error!(%error, "this could not be stored; nothing is voted for until a restart");
                }
            }
            Err(error) => tracing::error!(%error, number, "the store does not tell what was voted for"),
        }
    }

    /// Whether the member may vote for `number` while its chain is certified up to `certified`.
    pub(crate) fn allows(&self, number: u64, certified: u64) -> Result<(), Abstains> {
        let State { from, reach } = *self.state.lock();
        if reach.is_none_or(|reach| certified < reach) {
            return Err(Abstains::CatchingUp);
        }
        match from {
            None => Err(Abstains::Undecided),
            Some(from) if number < from => Err(Abstains::Until { from }),
            Some(_) => Ok(()),
        }
    }

    async fn decide(&self, from: Option<u64>) -> Result<(), StoreError> {
        let bytes = from.map_or_else(Vec::new, |from| from.to_be_bytes().to_vec());
        // Nothing is voted for while it is written.
        self.state.lock().from = None;
        self.store.put_meta(KEY, &bytes).await?;
        self.state.lock().from = from;
        Ok(())
    }
}

impl Context {
    /// Takes what the others answered; decides from when on this disk votes, if it can.
    pub(crate) async fn take_survey(&self, survey: &Survey) {
        {
            let mut state = self.voting.state.lock();
            state.reach = Some(state.reach.unwrap_or_default().max(survey.certified));
            if state.from.is_some() {
                return;
            }
        }
        let Some(from) = self.first_vote(survey).await else { return };
        match self.voting.decide(Some(from)).await {
            Ok(()) if from > 1 => {
                tracing::warn!(
                    from,
                    "this disk is fresh, or older than the member's last vote: it votes later"
                );
            }
            Ok(()) => {}
            Err(error) => tracing::error!(%error, "from when on this member votes could not be stored"),
        }
    }

    /// Rule C-1. `None` while too few answer.
    async fn first_vote(&self, survey: &Survey) -> Option<u64> {
        let posted = match self.l1.posted_at(1).await {
            Ok(posted) => posted.is_some(),
            Err(fault) => {
                tracing::warn!(%fault, "L1 does not tell whether anything was posted");
                return None;
            }
        };
        let certified = self.tracker.certified().number;
        if !posted && certified.max(survey.certified) == 0 && survey.sequencer.unwrap_or_default() == 0 {
            return Some(1);
        }
        let epoch = self.tracker.epoch(certified + 1).await.ok()?;
        // Of the t that signed a certificate, this member may be one and all dishonest ones may be: among t others is an
        // honest one that signed it, and says so.
        let needed = usize::from(epoch.threshold).min(epoch.members.len().saturating_sub(1));
        if survey.answers < needed {
            return None;
        }
        // Nobody votes further ahead of a certificate than headers may wait for one.
        let reach = survey.highest.max(self.tracker.head().number);
        let furthest = reach.saturating_add(MAX_UNCERTIFIED_HEADERS as u64);
        let last = match self.tracker.epoch(furthest).await {
            Ok(epoch) => epoch,
            // Nobody votes for a number that no epoch contains.
            Err(_) => self.tracker.epoch(reach).await.ok()?,
        };
        Some(last.last.saturating_add(1))
    }

    /// Rule C-2, see [`Voting::check_own_vote`].
    pub(crate) async fn check_own_vote(&self, certificate: &Certificate) {
        self.voting.check_own_vote(&self.tracker, &self.key.public, certificate).await;
    }

    /// Shows in the readiness whether this member votes for the next header.
    pub(crate) fn show_voting(&self) {
        let (head, certified) = (self.tracker.head().number, self.tracker.certified().number);
        match self.voting.allows(head + 1, certified) {
            Ok(()) => self.readiness.set_ready(VOTING),
            Err(abstains) => self.readiness.set_not_ready(VOTING, abstains.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use blindfold_store::SqliteStore;

    use super::*;

    #[tokio::test]
    async fn what_was_decided_survives_and_nothing_is_voted_for_before_the_others_were_asked() {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().expect("opens"));
        let voting = Voting::open(Arc::clone(&store)).await.expect("opens");
        assert_eq!(voting.allows(1, 0), Err(Abstains::CatchingUp));
        voting.state.lock().reach = Some(0);
        assert_eq!(voting.allows(1, 0), Err(Abstains::Undecided));
        voting.decide(Some(7)).await.expect("stored");
        assert_eq!(voting.allows(6, 5), Err(Abstains::Until { from: 7 }));
        assert_eq!(voting.allows(7, 6), Ok(()));

        let again = Voting::open(Arc::clone(&store)).await.expect("opens");
        assert_eq!((again.from(), again.allows(7, 6)), (Some(7), Err(Abstains::CatchingUp)));
        again.state.lock().reach = Some(9);
        assert_eq!(again.allows(9, 8), Err(Abstains::CatchingUp));
        assert_eq!(again.allows(10, 9), Ok(()));
        again.decide(None).await.expect("stored");
        assert_eq!(Voting::open(store).await.expect("opens").from(), None);
    }
}
