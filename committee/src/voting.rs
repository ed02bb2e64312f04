//! Whether this member may vote: a disk that does not know what was signed before could sign a second time.
//!
//! - C-1: a fresh disk votes in the epochs after every number that may have been voted for, by whatever numbers the registry
//!   gives them later. Only before the chain's first certified header it votes at once, for then nobody has voted for
//!   anything that counts; as many others as tell for certain have to say so.
//! - C-2: a disk that does not know a vote which a certificate carries is older than the member's last vote. It is
//!   treated as a fresh one from then on.
//! - C-3: after every start the member votes only when its chain reaches what the other members that answer hold
//!   certified, so that C-2 sees every vote that they could show.

use std::sync::Arc;

use blindfold_chain::Tracker;
use blindfold_protocol::{Certificate, certificate, limits::MAX_UNCERTIFIED_RUN};
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

use crate::{
    catch_up::Survey,
    key_file::KeyFilePublic,
    member::{Context, is_member_of},
};

/// Where a member's store has the last epoch in which it does not vote; empty while that is not decided.
pub const VOTES_AFTER_KEY: &str = "committee.votes_after_epoch";
/// Where earlier versions stored the first number that the disk votes for; 1 for one that knows every vote.
const EARLIER_KEY: &str = "committee.votes_from";
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
    #[error(
        "this disk does not know what the member voted for up to epoch {epoch}, and votes in the next one"
    )]
    Until {
        /// The last epoch in which it does not vote.
        epoch: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The last epoch in which this disk does not vote; 0 for one that knows every vote.
    after: Option<u64>,
    /// What the others held certified since the start; unknown until they were asked.
    reach: Option<Reach>,
}

/// A number that others hold certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    certified: u64,
    /// The last number that L1 had made a header for then: one that it makes later may end the branch.
    made: u64,
}

/// The rules C-1 to C-3 with what is known for them.
pub(crate) struct Voting {
    store: Arc<dyn Store>,
    state: Mutex<State>,
}

impl Voting {
    pub(crate) async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let mut stored = store.meta(VOTES_AFTER_KEY).await?;
        if stored.is_none() && store.meta(EARLIER_KEY).await?.is_some_and(|from| from == 1u64.to_be_bytes()) {
            let knows_all = 0u64.to_be_bytes().to_vec();
            store.put_meta(VOTES_AFTER_KEY, &knows_all).await?;
            stored = Some(knows_all);
        }
        // What is damaged is not decided.
        let after = stored.and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
        Ok(Self { store, state: Mutex::new(State { after, reach: None }) })
    }

    /// The last epoch in which this disk does not vote, once that is decided; 0 for one that knows every vote.
    pub(crate) fn after(&self) -> Option<u64> {
        self.state.lock().after
    }

    /// Rule C-2, for a certificate that stands: whether it carries a vote of this member that its disk does not know.
    pub(crate) async fn check_own_vote(
        &self,
        tracker: &Tracker,
        us: &KeyFilePublic,
        certificate: &Certificate,
    ) {
        let number = certificate.number;
        if self.after().is_none_or(|after| certificate.epoch <= after)
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

    /// Whether the member may vote in this epoch while its chain is certified up to `certified`.
    pub(crate) fn allows(&self, epoch: u64, certified: u64) -> Result<(), Abstains> {
        let State { after, reach } = *self.state.lock();
        if reach.is_none_or(|reach| certified < reach.certified) {
            return Err(Abstains::CatchingUp);
        }
        match after {
            None => Err(Abstains::Undecided),
            Some(after) if epoch <= after => Err(Abstains::Until { epoch: after }),
            Some(_) => Ok(()),
        }
    }

    /// Whether the others are to be asked, again if need be.
    pub(crate) fn wants_survey(&self, certified: u64) -> bool {
        let State { after, reach } = *self.state.lock();
        after.is_none() || reach.is_none_or(|reach| certified < reach.certified)
    }

    async fn decide(&self, after: Option<u64>) -> Result<(), StoreError> {
        let bytes = after.map_or_else(Vec::new, |after| after.to_be_bytes().to_vec());
        // Nothing is voted for while it is written.
        self.state.lock().after = None;
        self.store.put_meta(VOTES_AFTER_KEY, &bytes).await?;
        self.state.lock().after = after;
        Ok(())
    }
}

impl Reach {
    /// What is known with one survey more. A silent member does not take back what it showed. Where L1 made a header at or
    /// below that since, it may be of a branch that L1 ended. While L1 does not tell whether a claim holds, the first survey
    /// says nothing.
    fn after(known: Option<Self>, survey: &Survey) -> Option<Self> {
        let Some(known) = known else {
            let made = survey.made.unwrap_or_default();
            return (!survey.unjudged).then_some(Self { certified: survey.certified, made });
        };
        let made = survey.made.unwrap_or(known.made);
        let is_ended = made > known.made && made <= known.certified;
        let certified = if is_ended { survey.certified } else { known.certified.max(survey.certified) };
        Some(Self { certified, made })
    }
}

impl Context {
    /// Takes what the others answered; decides from when on this disk votes, if it can.
    pub(crate) async fn take_survey(&self, survey: &Survey) {
        {
            let mut state = self.voting.state.lock();
            state.reach = Reach::after(state.reach, survey);
            if state.after.is_some() {
                return;
            }
        }
        let Some(after) = self.unknown_epoch(survey).await else { return };
        match self.voting.decide(Some(after)).await {
            Ok(()) if after > 0 => {
                tracing::warn!(
                    epoch = after,
                    "this disk is fresh, or older than the member's last vote: it votes after this epoch"
                );
            }
            Ok(()) => {}
            Err(error) => tracing::error!(%error, "from when on this member votes could not be stored"),
        }
    }

    /// Rule C-1: the last epoch that the member may have voted in. `None` while too few answer.
    async fn unknown_epoch(&self, survey: &Survey) -> Option<u64> {
        let posted = match self.l1.posted_at(1).await {
            Ok(posted) => posted.is_some(),
            Err(fault) => {
                tracing::warn!(%fault, "L1 does not tell whether anything was posted");
                return None;
            }
        };
        let certified = self.tracker.certified().number;
        let epoch = self.tracker.epoch(certified + 1).await.ok()?;
        // Of the t that signed a certificate, this member may be one and all dishonest ones may be: among t others is an
        // honest one that signed it, and says so.
        let needed = usize::from(epoch.threshold).min(epoch.members.len().saturating_sub(1));
        if !posted && certified.max(survey.certified) == 0 && survey.sequencer.unwrap_or_default() == 0 {
            // Nobody is certain to have posted or to tell what was certified a moment ago but the others, if there are any.
            return (survey.answers >= needed.min(survey.asked)).then_some(0);
        }
        if survey.answers < needed {
            return None;
        }
        // Nobody votes further ahead of a certificate than headers may wait for one.
        let reach = survey.highest.max(self.tracker.head().number);
        let furthest = reach.saturating_add(MAX_UNCERTIFIED_RUN as u64);
        let last = match self.tracker.epoch(furthest).await {
            Ok(epoch) => epoch,
            // Nobody votes for a number that no epoch contains.
            Err(_) => self.tracker.epoch(reach).await.ok()?,
        };
        // The registry may lag behind what others follow already.
        Some(last.epoch.max(survey.epoch))
    }

    /// Whether the member may vote for `number` now (C-7).
    pub(crate) fn may_vote(&self, number: u64) -> Result<(), Abstains> {
        // Where no epoch is registered nobody votes, and not for that reason.
        let epoch = self.tracker.registered_epoch(number).unwrap_or(u64::MAX);
        self.voting.allows(epoch, self.tracker.certified().number)
    }

    /// The first number that this disk votes for, as the registry has it now, once that is decided.
    pub(crate) fn votes_from(&self) -> Option<u64> {
        self.voting.after().map(|after| self.tracker.first_number_after(after))
    }

    /// Rule C-2, see [`Voting::check_own_vote`].
    pub(crate) async fn check_own_vote(&self, certificate: &Certificate) {
        self.voting.check_own_vote(&self.tracker, &self.key.public, certificate).await;
    }

    /// Shows in the readiness whether this member votes for the next header.
    pub(crate) fn show_voting(&self) {
        match self.may_vote(self.tracker.head().number + 1) {
            Ok(()) => self.readiness.set_ready(VOTING),
            Err(abstains) => self.readiness.set_not_ready(VOTING, abstains.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use blindfold_store::SqlStore;

    use super::*;

    #[tokio::test]
    async fn what_was_decided_survives_and_nothing_is_voted_for_before_the_others_were_asked() {
        let store: Arc<dyn Store> = Arc::new(SqlStore::in_memory().expect("opens"));
        let voting = Voting::open(Arc::clone(&store)).await.expect("opens");
        assert_eq!(voting.allows(1, 0), Err(Abstains::CatchingUp));
        let reach = |certified| Some(Reach { certified, made: 0 });
        voting.state.lock().reach = reach(0);
        assert_eq!(voting.allows(1, 0), Err(Abstains::Undecided));
        voting.decide(Some(1)).await.expect("stored");
        assert_eq!(voting.allows(1, 5), Err(Abstains::Until { epoch: 1 }));
        assert_eq!(voting.allows(2, 6), Ok(()));

        let again = Voting::open(Arc::clone(&store)).await.expect("opens");
        assert_eq!((again.after(), again.allows(2, 6)), (Some(1), Err(Abstains::CatchingUp)));
        again.state.lock().reach = reach(9);
        assert_eq!((again.allows(2, 8), again.wants_survey(8)), (Err(Abstains::CatchingUp), true));
        assert_eq!((again.allows(2, 9), again.wants_survey(9)), (Ok(()), false));
        again.decide(None).await.expect("stored");
        assert_eq!(Voting::open(store).await.expect("opens").after(), None);
    }

    #[tokio::test]
    async fn a_disk_of_an_earlier_version_that_knows_every_vote_knows_it_still() {
        let store: Arc<dyn Store> = Arc::new(SqlStore::in_memory().expect("opens"));
        store.put_meta(EARLIER_KEY, &7u64.to_be_bytes()).await.expect("stored");
        assert_eq!(Voting::open(Arc::clone(&store)).await.expect("opens").after(), None);
        store.put_meta(EARLIER_KEY, &1u64.to_be_bytes()).await.expect("stored");
        assert_eq!(Voting::open(Arc::clone(&store)).await.expect("opens").after(), Some(0));
        let later = Voting::open(Arc::clone(&store)).await.expect("opens");
        later.decide(Some(3)).await.expect("stored");
        assert_eq!(Voting::open(store).await.expect("opens").after(), Some(3));
    }

    #[test]
    fn what_was_shown_counts_until_l1_makes_a_header_below_it() {
        let survey = |certified, made| Survey { certified, made, ..Survey::default() };
        let known = Reach::after(None, &survey(100, Some(40)));
        assert_eq!(known, Some(Reach { certified: 100, made: 40 }));
        // A silent member, or a silent L1, takes nothing back.
        assert_eq!(Reach::after(known, &survey(0, Some(40))), known);
        assert_eq!(Reach::after(known, &survey(0, None)), known);
        assert_eq!(Reach::after(known, &survey(0, Some(101))), Some(Reach { certified: 100, made: 101 }));
        assert_eq!(Reach::after(known, &survey(90, Some(91))), Some(Reach { certified: 90, made: 91 }));
        let unjudged = Survey { unjudged: true, ..survey(7, None) };
        assert_eq!((Reach::after(None, &unjudged), Reach::after(known, &unjudged)), (None, known));
    }
}
