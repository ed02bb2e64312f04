//! Calls to the source that many ask for at the same time: made once, and answered to all; kept for a moment.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use blindfold_rpc::{
    HttpClient, ReceivedError, RpcError, caller,
    jsonrpsee::core::{client::ClientT, traits::ToRpcParams},
    limits::RETRY_AFTER_MS,
};
use blindfold_runtime::{Instant, now};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, ready},
};
use lru::LruCache;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{
    limits::{MAX_KEPT_BYTES, MAX_QUESTION_BYTES},
    line::{Lines, Turns},
};

/// How long a question may be under way and still be joined, where nothing is kept.
const JOIN: Duration = Duration::from_millis(250);

type Answer = Result<Arc<RawValue>, RpcError>;

/// An answer that is here, or that others wait for.
type Asked = Shared<BoxFuture<'static, Answer>>;

/// A call as it was asked: method and parameters.
type Question = (String, Option<String>);

enum Known {
    UnderWay(Asked, Instant),
    Kept(Arc<RawValue>, Instant),
}

/// The source, as many ask it.
#[derive(Clone)]
pub(crate) struct Source {
    client: HttpClient,
    keep: Duration,
    known: Arc<Mutex<LruCache<Question, Known>>>,
    /// In which callers ask; none where they have no limits in common.
    lines: Option<Lines>,
}

/// Parameters as they came.
struct Raw(Option<String>);

impl ToRpcParams for Raw {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        self.0.map(RawValue::from_string).transpose()
    }
}

impl Source {
    /// Keeps at most `entries` answers, each for `keep`.
    pub(crate) fn new(client: HttpClient, keep: Duration, entries: usize) -> Self {
        let entries = NonZeroUsize::new(entries).unwrap_or(NonZeroUsize::MIN);
        Self { client, keep, known: Arc::new(Mutex::new(LruCache::new(entries))), lines: None }
    }

    /// The same, asked in turn.
    pub(crate) fn in_turn(self, lines: Lines) -> Self {
        Self { lines: Some(lines), ..self }
    }

    /// The turn of whoever asks.
    async fn turn(&self, method: &str) -> Result<Option<Turns>, RpcError> {
        match &self.lines {
            Some(lines) => lines.turn(caller(), method).await.map(Some),
            None => Ok(None),
        }
    }

    /// The source's answer, maybe to somebody else's call a moment ago. Refusals are not kept.
    pub(crate) async fn raw(&self, method: &str, params: Option<&RawValue>) -> Answer {
        let question = (method.to_owned(), params.map(|params| params.get().to_owned()));
        if question.1.as_ref().is_some_and(|params| params.len() > MAX_QUESTION_BYTES) {
            let _turn = self.turn(method).await?;
            let (method, params) = question;
            return self.call(&method, params).await;
        }
        let known = self.find(&mut self.known.lock(), &question);
        if let Some(known) = known {
            return known.await;
        }
        // What waits for its turn is nobody else's: others may have theirs before.
        let turn = self.turn(method).await?;
        let asked = {
            let mut known = self.known.lock();
            self.find(&mut known, &question).unwrap_or_else(|| {
                let asked = self.clone().ask(question.clone(), turn).boxed().shared();
                known.put(question, Known::UnderWay(asked.clone(), now()));
                asked
            })
        };
        asked.await
    }

    /// An answer that may be told again.
    fn find(&self, known: &mut LruCache<Question, Known>, question: &Question) -> Option<Asked> {
        match known.get(question)? {
            Known::Kept(answer, since) if since.elapsed() < self.keep => {
                Some(ready(Ok(Arc::clone(answer))).boxed().shared())
            }
            // One that hangs is nobody else's.
            Known::UnderWay(asked, since) if since.elapsed() < self.keep.max(JOIN) => Some(asked.clone()),
            _ => None,
        }
    }

    async fn ask(self, question: Question, turn: Option<Turns>) -> Answer {
        let (method, params) = question.clone();
        // Its age is that of the question: the answer may be as old.
        let since = now();
        let answer = self.call(&method, params).await;
        drop(turn);
        let mut known = self.known.lock();
        match &answer {
            Ok(answer) if !self.keep.is_zero() && answer.get().len() <= MAX_KEPT_BYTES => {
                known.put(question, Known::Kept(Arc::clone(answer), since));
            }
            _ if matches!(known.peek(&question), Some(Known::UnderWay(_, begun)) if *begun <= since) => {
                drop(known.pop(&question));
            }
            _ => {}
        }
        answer
    }

    async fn call(&self, method: &str, params: Option<String>) -> Answer {
        let answered: Result<Box<RawValue>, _> = self.client.request(method, Raw(params)).await;
        answered.map(Arc::from).map_err(|error| away(error.into()))
    }

    /// An answer of now, which nobody else's call gave before, read.
    pub(crate) async fn anew<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl serde::Serialize,
    ) -> Result<T, RpcError> {
        let params = serde_json::to_string(params).map_err(RpcError::internal)?;
        let _turn = self.turn(method).await?;
        read(method, &self.call(method, Some(params)).await?)
    }

    /// The source's answer, maybe to somebody else's call a moment ago, read.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl serde::Serialize,
    ) -> Result<T, RpcError> {
        let params = serde_json::value::to_raw_value(params).map_err(RpcError::internal)?;
        read(method, &self.raw(method, Some(&params)).await?)
    }
}

fn read<T: DeserializeOwned>(method: &str, answer: &RawValue) -> Result<T, RpcError> {
    serde_json::from_str(answer.get()).map_err(|fault| {
        tracing::warn!(method, %fault, "an answer of the source that is none");
        RpcError::unavailable("source_unavailable", "what the source answered is no answer to this method")
    })
}

/// What a caller hears when the source refused, or did not answer.
pub(crate) fn away(error: ReceivedError) -> RpcError {
    match error {
        ReceivedError::Refused(refusal) if !refusal.is_standing_by() => refusal,
        ReceivedError::Refused(_) => {
            RpcError::unavailable("no_leader", "no sequencer leads now; ask again").after(RETRY_AFTER)
        }
        ReceivedError::NoAnswer(cause) => {
            tracing::debug!(cause, "the source does not answer");
            RpcError::unavailable("source_unavailable", "what stands behind this server does not answer")
                .after(RETRY_AFTER)
        }
    }
}

/// A source that is away has a successor, or is started again, in some seconds.
const RETRY_AFTER: Duration = Duration::from_millis(RETRY_AFTER_MS);
