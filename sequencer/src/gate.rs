//! A bounded way onto the blocking threads for what members and hint publishers send.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::refusal::SubmissionError;

/// At most `threads` computations at a time and `queue_items` waiting; whoever comes on top is refused at once.
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new(threads: usize, queue_items: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(threads.saturating_add(queue_items).min(Semaphore::MAX_PERMITS))),
            threads: Arc::new(Semaphore::new(threads)),
        }
    }

    /// A place in the queue, held by whatever computes for it.
    pub(crate) fn enter(&self) -> Result<tokio::sync::OwnedSemaphorePermit, SubmissionError> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| SubmissionError::Overloaded)
    }

    /// Runs `work` on a blocking thread when one is free.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SubmissionError> {
        let place = self.enter()?;
        let thread =
            Arc::clone(&self.threads).acquire_owned().await.map_err(|_| SubmissionError::ShuttingDown)?;
        blindfold_runtime::blocking(move || {
            let result = work();
            drop((place, thread));
            result
        })
        .await
        .map_err(|_| SubmissionError::ShuttingDown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_the_queue_full_is_refused() {
        let gate = Arc::new(Gate::new(1, 1));
        let first = gate.enter().unwrap();
        let second = gate.enter().unwrap();
        assert_eq!(gate.run(|| 1).await, Err(SubmissionError::Overloaded));
        drop((first, second));
        assert_eq!(gate.run(|| 1).await, Ok(1));
    }
}
