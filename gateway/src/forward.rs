//! Envelopes on their way to whichever sequencer leads: many in one call, and again until one answers as the leader. The
//! same envelope may be sent again anywhere and any number of times (J-5).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use blindfold_rpc::{
    Encoded, ForwardApiClient, HttpClient, Pace, RawEnvelope, ReceivedError, RpcError,
    limits::{MAX_FORWARDED_BYTES, MAX_FORWARDED_ENVELOPES},
    types::{ForwardedAnswer, ForwardedEnvelope, SentEnvelope},
};
use blindfold_runtime::{Backoff, Instant, Spawner, Stop, now, until};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::{sleep, timeout_at},
};

use crate::{
    limits::{
        FORWARD_RETRY_MS, MAX_FORWARD_RETRY_MS, MAX_WAITING_ENVELOPES, PARALLEL_FORWARDS, STOP_WAIT_MS,
    },
    metrics::GatewayMetrics,
};

/// What an envelope came to.
pub(crate) type Forwarded = Result<SentEnvelope, NotForwarded>;

/// Why an envelope was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotForwarded {
    /// The sequencer refused it.
    Refused(RpcError),
    /// Nobody answered in time as the one that leads.
    NoLeader,
    /// The sequencer lets this gateway not forward.
    GatewayRefused,
    /// As many wait as may.
    Full,
    /// The gateway is stopping.
    Stopped,
}

struct Job {
    envelope: ForwardedEnvelope,
    deadline: Instant,
    answer: oneshot::Sender<Forwarded>,
}

impl Job {
    fn bytes(&self) -> usize {
        self.envelope.envelope.bytes().len()
    }
}

/// The queue in front of the sequencers.
#[derive(Clone)]
pub(crate) struct Forwarder {
    queue: mpsc::Sender<Job>,
    wait: Duration,
    answered: Arc<Pace>,
}

impl Forwarder {
    /// Starts the task that makes the calls. The first envelope of a call waits for others for `group_wait`, and each at
    /// most `leader_wait` for an answer.
    pub(crate) fn start(
        sequencers: HttpClient,
        group_wait: Duration,
        leader_wait: Duration,
        metrics: GatewayMetrics,
        spawner: &Spawner,
    ) -> Self {
        let (queue, jobs) = mpsc::channel(MAX_WAITING_ENVELOPES);
        let answered = Arc::new(Pace::new());
        let caller = Arc::new(Caller { sequencers, metrics, answered: Arc::clone(&answered) });
        let stop = spawner.stop();
        spawner.spawn("forwarder", form_calls(caller, group_wait, jobs, spawner.clone(), stop));
        Self { queue, wait: leader_wait, answered }
    }

    /// How long it takes until those that wait now are answered, at the pace of the last seconds.
    pub(crate) fn time_to_come_back(&self) -> Option<Duration> {
        let waiting = self.queue.max_capacity() - self.queue.capacity();
        self.answered.time_for(waiting as u64)
    }

    /// Forwards an envelope, and waits for what becomes of it.
    pub(crate) async fn forward(&self, envelope: Encoded<RawEnvelope>, promise: bool) -> Forwarded {
        let (answer, answered) = oneshot::channel();
        let envelope = ForwardedEnvelope { envelope, promise };
        let job = Job { envelope, deadline: now() + self.wait, answer };
        self.queue.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotForwarded::Full,
            mpsc::error::TrySendError::Closed(_) => NotForwarded::Stopped,
        })?;
        answered.await.unwrap_or(Err(NotForwarded::Stopped))
    }
}

struct Caller {
    sequencers: HttpClient,
    metrics: GatewayMetrics,
    answered: Arc<Pace>,
}

async fn form_calls(
    caller: Arc<Caller>,
    group_wait: Duration,
    mut jobs: mpsc::Receiver<Job>,
    spawner: Spawner,
    mut stop: Stop,
) {
    let calls = Arc::new(Semaphore::new(PARALLEL_FORWARDS));
    // One that did not fit into the call before.
    let mut left: Option<Job> = None;
    loop {
        let first = match left.take() {
            Some(job) => job,
            None => tokio::select! {
                () = until(&mut stop) => return,
                job = jobs.recv() => match job {
                    Some(job) => job,
                    // Nobody can ask any more: the gateway is ending.
                    None => return until(&mut stop).await,
                },
            },
        };
        let mut bytes = first.bytes();
        let mut group = vec![first];
        let deadline = now() + group_wait;
        while group.len() < MAX_FORWARDED_ENVELOPES {
            let Ok(Some(job)) = timeout_at(deadline, jobs.recv()).await else { break };
            bytes += job.bytes();
            if bytes > MAX_FORWARDED_BYTES {
                left = Some(job);
                break;
            }
            group.push(job);
        }
        // While all places are taken the queue grows, and the next call has more.
        let permit = tokio::select! {
            () = until(&mut stop) => return,
            permit = Arc::clone(&calls).acquire_owned() => match permit {
                Ok(permit) => permit,
                Err(_) => return,
            },
        };
        let (caller, stop) = (Arc::clone(&caller), spawner.stop());
        spawner.run("forwarding", async move {
            caller.deliver(group, stop).await;
            drop(permit);
        });
    }
}

impl Caller {
    /// Makes a call until it is answered by whoever leads, or nobody waits any more.
    async fn deliver(&self, group: Vec<Job>, mut stop: Stop) {
        let mut waiting: VecDeque<Job> = group.into();
        let mut pauses = Backoff::new(FORWARD_RETRY_MS, MAX_FORWARD_RETRY_MS);
        loop {
            let Some(deadline) = waiting.iter().map(|job| job.deadline).max() else { return };
            let call: Vec<ForwardedEnvelope> = waiting.iter().map(|job| job.envelope.clone()).collect();
            let asked = call.len();
            self.metrics.forwarded_items.observe(asked as f64);
            let ended = async {
                until(&mut stop).await;
                sleep(Duration::from_millis(STOP_WAIT_MS)).await;
            };
            let answer = tokio::select! {
                answer = timeout_at(deadline, self.sequencers.send_envelopes(call)) => answer,
                () = ended => return give_up(waiting, &NotForwarded::Stopped),
            };
            let (mut fault, mut told) = (NotForwarded::NoLeader, None);
            match answer.map(|answer| answer.map_err(ReceivedError::from)) {
                Ok(Ok(answers)) if answers.len() == asked => {
                    self.answered.note(asked as u64);
                    let mut again = VecDeque::new();
                    for (job, answer) in waiting.drain(..).zip(answers) {
                        match read(answer) {
                            // Whoever takes over is not there yet, or goes: another one will be.
                            Err(NotForwarded::Refused(refusal)) if is_taking_over(&refusal) => {
                                again.push_back(job);
                            }
                            forwarded => drop(job.answer.send(forwarded)),
                        }
                    }
                    if again.is_empty() {
                        return;
                    }
                    waiting = again;
                }
                Ok(Ok(answers)) => {
                    tracing::warn!(
                        asked,
                        answered = answers.len(),
                        "the sequencer did not answer for each envelope"
                    );
                }
                Ok(Err(ReceivedError::Refused(refusal))) if !refusal.retry => {
                    // It is us: the sequencer's settings do not name this gateway, or its hello came too late.
                    tracing::error!(%refusal, "the sequencer takes no envelopes from this gateway");
                    fault = NotForwarded::GatewayRefused;
                }
                Ok(Err(error)) if error.retry_after().is_some() => {
                    // It leads, and has no room for more of ours: whoever waits in vain hears when there may be some.
                    told = error.retry_after();
                    tracing::debug!(%error, "the sequencer takes no more of this gateway's envelopes now");
                    if let ReceivedError::Refused(refusal) = error {
                        fault = NotForwarded::Refused(refusal);
                    }
                }
                Ok(Err(error)) => tracing::debug!(%error, "no sequencer took the envelopes; trying again"),
                Err(_) => tracing::debug!("no sequencer answered in time"),
            }
            self.metrics.forward_failures.increment();
            if *stop.borrow() {
                return give_up(waiting, &NotForwarded::Stopped);
            }
            let pause = pauses.pause_after(told);
            // Nobody is let wait for a time at which he will be gone.
            let late = if told.is_some() { now() + pause } else { now() };
            let (left, over): (VecDeque<_>, VecDeque<_>) =
                waiting.into_iter().partition(|job| job.deadline > late);
            give_up(over, &fault);
            waiting = left;
            if !waiting.is_empty() {
                sleep(pause).await;
            }
        }
    }
}

/// Whether a sequencer refuses because it is only beginning to lead, or is ending.
fn is_taking_over(refusal: &RpcError) -> bool {
    ["recovering", "shutting_down"].contains(&refusal.reason.as_ref())
}

fn give_up(jobs: VecDeque<Job>, fault: &NotForwarded) {
    for job in jobs {
        drop(job.answer.send(Err(fault.clone())));
    }
}

fn read(answer: ForwardedAnswer) -> Forwarded {
    match answer {
        ForwardedAnswer { sent: Some(sent), .. } => Ok(sent),
        ForwardedAnswer { refused: Some(refusal), .. } => Err(NotForwarded::Refused(refusal.into())),
        ForwardedAnswer { sent: None, refused: None } => Err(NotForwarded::NoLeader),
    }
}
