//! Having the committee read data before it is paid for (OD-6).
//!
//! This sequencer counts data that it made itself as there, and nobody else posts the same again. So what its own software
//! reads and others' does not has to be found before it goes out: t members read it, each with its own software and its own
//! view of L1, and sign its hash. Nothing of that is stored: after a crash they are asked again, and say the same.

use std::{sync::Arc, time::Duration};

use blindfold_l1::OpenedPiece;
use blindfold_protocol::{
    AttestedData, Bytes, Epoch, certificate, data::KIND_OPENED, keccak256, limits::MAX_ATTESTED_DATA_BYTES,
};
use blindfold_runtime::{Backoff, blocking};
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::{sleep, timeout};

use crate::{
    context::Context,
    members::{AttestError, Committee},
};

/// First pause before a member that cannot read now is asked again, in milliseconds; it doubles.
const FIRST_PAUSE_MS: u64 = 500;
/// The longest of them.
const MAX_PAUSE_MS: u64 = 4_000;

/// What the committee says of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// At least t members read it and signed.
    Attested,
    /// So many found that it does not give the batches back that t cannot sign.
    Refuted,
    /// So many never read data of these numbers that t cannot sign, whenever they are asked.
    Never,
    /// None of these, in the time that the settings give.
    Silent,
    /// Nobody is asked.
    NotAsked,
}

/// What one member came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Signed,
    Refuted,
    /// It reads no data of these numbers.
    Never,
    /// What it gave is no attestation of this.
    Worthless,
}

/// The members, as readers of what is to be posted.
pub(crate) struct Readers {
    cx: Arc<Context>,
    committee: Arc<dyn Committee>,
}

impl Readers {
    pub fn new(cx: Arc<Context>, committee: Arc<dyn Committee>) -> Self {
        Self { cx, committee }
    }

    /// Asks all members of the batches' committee at once. Whose URL is not in the settings is not asked, and where t are not,
    /// nobody is; nor where the data are longer than members read.
    pub async fn word_on(&self, piece: &OpenedPiece) -> Word {
        let word = self.ask_about(piece).await;
        let outcome = match word {
            Word::Attested => "attested",
            Word::Refuted => "refuted",
            Word::Never => "never",
            Word::Silent => "silent",
            Word::NotAsked => return word,
        };
        self.cx.metrics.attestations.get(&[outcome]).increment();
        word
    }

    async fn ask_about(&self, piece: &OpenedPiece) -> Word {
        let wait_ms = self.cx.config.posting.attestation_wait_ms;
        let Some((first_number, last_number)) = piece.numbers() else { return Word::NotAsked };
        if wait_ms == 0 || piece.data.len() > MAX_ATTESTED_DATA_BYTES {
            return Word::NotAsked;
        }
        let Ok(epoch) = self.cx.tracker.epoch(first_number).await else { return Word::Silent };
        let threshold = usize::from(epoch.threshold);
        let members = self.committee.members();
        let members: Vec<u16> =
            members.into_iter().filter(|member| epoch.member(*member).is_some()).collect();
        if members.len() < threshold {
            return Word::NotAsked;
        }
        let data_hash = keccak256(&piece.data);
        let attested =
            AttestedData { epoch: epoch.epoch, first_number, last_number, kind: KIND_OPENED, data_hash };
        let epoch = Arc::new(epoch);
        let asked: FuturesUnordered<_> =
            members.iter().map(|member| self.ask(*member, attested, &piece.data, &epoch)).collect();
        let word = counted(asked, threshold, epoch.members.len());
        timeout(Duration::from_millis(wait_ms), word).await.unwrap_or(Word::Silent)
    }

    /// What a member says, once it has read the data.
    async fn ask(&self, member: u16, attested: AttestedData, data: &Bytes, epoch: &Arc<Epoch>) -> Answer {
        let AttestedData { first_number: first, last_number: last, .. } = attested;
        let mut pauses = Backoff::new(FIRST_PAUSE_MS, MAX_PAUSE_MS);
        loop {
            match self.committee.attest(member, (first, last), data).await {
                Ok(given) => {
                    let is_ours = given.data == attested && given.member == member;
                    let (epoch, deployment) = (Arc::clone(epoch), self.cx.chain.deployment);
                    let verify = move || certificate::verify_attestation(&given, &epoch, &deployment).is_ok();
                    if is_ours && blocking(verify).await.unwrap_or(false) {
                        return Answer::Signed;
                    }
                    tracing::warn!(member, first, last, "what a member gave is no attestation of this data");
                    return Answer::Worthless;
                }
                Err(AttestError::Refuted(reason)) => {
                    tracing::warn!(
                        member,
                        first,
                        last,
                        reason,
                        "a member cannot read data as it is opened here"
                    );
                    return Answer::Refuted;
                }
                Err(AttestError::Never(reason)) => {
                    tracing::debug!(member, first, last, reason, "a member reads no data of these numbers");
                    return Answer::Never;
                }
                Err(AttestError::Silent(fault)) => {
                    tracing::debug!(member, first, last, %fault, "a member has not read data yet");
                }
            }
            sleep(pauses.pause()).await;
        }
    }
}

/// Counts answers until they say something, or cannot any more. The committee may have more members than are asked.
async fn counted<A: Future<Output = Answer>>(
    mut asked: FuturesUnordered<A>,
    threshold: usize,
    members: usize,
) -> Word {
    let (mut signed, mut refuted, mut never) = (0, 0, 0);
    let readers = asked.len();
    let may_refute = members.saturating_sub(threshold);
    while let Some(answer) = asked.next().await {
        signed += usize::from(answer == Answer::Signed);
        refuted += usize::from(answer == Answer::Refuted);
        never += usize::from(answer == Answer::Never);
        if signed >= threshold {
            return Word::Attested;
        }
        if refuted > may_refute {
            return Word::Refuted;
        }
        if never > 0 && readers.saturating_sub(never + refuted) < threshold {
            return Word::Never;
        }
        if signed + asked.len() < threshold {
            return Word::Silent;
        }
    }
    Word::Silent
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn word(answers: &[Answer], silent: usize, threshold: usize) -> Word {
        let given = answers.iter().map(|answer| Some(*answer)).chain(std::iter::repeat_n(None, silent));
        let asked: FuturesUnordered<_> = given
            .map(|answer| async move {
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            })
            .collect();
        timeout(Duration::from_millis(20), counted(asked, threshold, 4)).await.unwrap_or(Word::Silent)
    }

    #[tokio::test]
    async fn t_signatures_count_and_so_many_refusals_that_t_cannot_sign() {
        use Answer::{Never, Refuted, Signed, Worthless};
        assert_eq!(word(&[Signed, Signed, Signed], 1, 3).await, Word::Attested);
        assert_eq!(word(&[Signed, Worthless, Signed, Signed], 0, 3).await, Word::Attested);
        assert_eq!(word(&[Refuted, Signed, Signed, Signed], 0, 3).await, Word::Attested, "one of them errs");
        assert_eq!(word(&[Signed, Signed, Worthless], 1, 3).await, Word::Silent);
        assert_eq!(word(&[Refuted, Refuted], 2, 3).await, Word::Refuted);
        assert_eq!(word(&[Refuted, Worthless], 2, 3).await, Word::Silent, "a liar is nobody's evidence");
        assert_eq!(word(&[Signed, Signed, Refuted], 1, 3).await, Word::Silent);
        assert_eq!(word(&[], 4, 3).await, Word::Silent);
        assert_eq!(word(&[Refuted], 2, 3).await, Word::Silent, "one URL is not known: that is no refusal");
        assert_eq!(word(&[Never, Signed, Signed, Signed], 0, 3).await, Word::Attested);
        assert_eq!(word(&[Never, Never], 2, 3).await, Word::Never, "two are not enough, whatever they say");
        assert_eq!(word(&[Never, Refuted], 2, 3).await, Word::Never);
        assert_eq!(word(&[Never], 2, 3).await, Word::Never, "one URL is not known");
        assert_eq!(word(&[Never], 3, 3).await, Word::Silent, "the others may come back");
        assert_eq!(word(&[Never, Worthless], 2, 3).await, Word::Silent);
    }
}
