//! A connection's bytes. Whoever does not take his answers is not read, and loses the connection when his patience
//! is used up.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use blindfold_runtime::{Instant, now};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

use crate::{
    answers::Outbox,
    limits::{MAX_WEBSOCKET_READ_BYTES_PER_SECOND, MIN_WRITTEN_BYTES_PER_SECOND, WEBSOCKET_READ_BYTES},
};

/// A stream with a time-out for writing. Waiting to write uses up patience, bytes written give it back at
/// [`MIN_WRITTEN_BYTES_PER_SECOND`]: taking a byte now and then does not keep a connection.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    stream: S,
    outbox: Arc<Outbox>,
    patience: Duration,
    left: Duration,
    blocked: Option<Blocked>,
    reader: Option<Waker>,
    /// A WebSocket is read in small pieces with pauses, so that its answers keep up with its calls.
    pause: Option<Pin<Box<Sleep>>>,
    unpaced: usize,
    given_up: bool,
}

#[derive(Debug)]
struct Blocked {
    since: Instant,
    /// What was written stands in a buffer of TLS, which does not empty.
    flushing: bool,
    timeout: Pin<Box<Sleep>>,
}

impl<S> Wire<S> {
    pub(crate) fn new(stream: S, outbox: Arc<Outbox>, patience: Duration) -> Self {
        Self {
            stream,
            outbox,
            patience,
            left: patience,
            blocked: None,
            reader: None,
            pause: None,
            unpaced: 0,
            given_up: false,
        }
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// What became of a write.
    fn wrote(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Pending = written else {
            self.unblock();
            if let Poll::Ready(Ok(bytes)) = written {
                self.outbox.written(bytes);
                let micros = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000)
                    / MIN_WRITTEN_BYTES_PER_SECOND;
                self.left = self.left.saturating_add(Duration::from_micros(micros)).min(self.patience);
            }
            return written;
        };
        self.wait(false, context).map(Err)
    }

    /// The other side takes nothing: uses up patience until it is gone.
    fn wait(&mut self, flushing: bool, context: &mut Context<'_>) -> Poll<io::Error> {
        let left = self.left;
        let blocked = self.blocked.get_or_insert_with(|| {
            let since = now();
            Blocked { since, flushing, timeout: Box::pin(tokio::time::sleep_until(since + left)) }
        });
        std::task::ready!(blocked.timeout.as_mut().poll(context));
        self.given_up = true;
        self.wake_reader();
        Poll::Ready(gave_up())
    }

    /// The other side has taken something.
    fn unblock(&mut self) {
        if let Some(blocked) = self.blocked.take() {
            self.left = self.left.saturating_sub(blocked.since.elapsed());
            self.wake_reader();
        }
    }
}

fn gave_up() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other side does not read its answers")
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.given_up {
            return Poll::Ready(Err(gave_up()));
        }
        // Else every request of somebody who reads nothing would become an answer that waits.
        if self.blocked.is_some() {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        std::task::ready!(self.outbox.poll_may_read(context));
        if !self.outbox.is_websocket() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let mut piece =
            ReadBuf::new(buffer.initialize_unfilled_to(buffer.remaining().min(WEBSOCKET_READ_BYTES)));
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
        let bytes = piece.filled().len();
        buffer.advance(bytes);
        self.unpaced = self.unpaced.saturating_add(bytes);
        if self.unpaced >= WEBSOCKET_READ_BYTES {
            let micros = u64::try_from(std::mem::take(&mut self.unpaced))
                .unwrap_or(u64::MAX)
                .saturating_mul(1_000_000);
            let pause = Duration::from_micros(micros / MAX_WEBSOCKET_READ_BYTES_PER_SECOND);
            self.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.given_up {
            return Poll::Ready(Err(gave_up()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.given_up {
            return Poll::Ready(Err(gave_up()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.given_up {
            return Poll::Ready(Err(gave_up()));
        }
        let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(context) else {
            return self.wait(true, context).map(Err);
        };
        if self.blocked.as_ref().is_some_and(|blocked| blocked.flushing) {
            self.unblock();
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use blindfold_runtime::spawn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(200);

    fn wire(buffer: usize, patience: Duration) -> (Wire<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(buffer);
        (Wire::new(ours, Arc::default(), patience), theirs)
    }

    #[tokio::test]
    async fn who_does_not_read_is_dropped_and_not_read_meanwhile() {
        let (ours, mut theirs) = wire(16, PATIENCE);
        let (mut read, mut write) = tokio::io::split(ours);
        theirs.write_all(b"call").await.expect("fits");
        let started = now();
        let writing = spawn(async move { write.write_all(&[0; 100]).await });
        tokio::task::yield_now().await;
        let fault = read.read(&mut [0; 4]).await.expect_err("not read");
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
        let fault = writing.await.expect("ends").expect_err("nobody reads");
        assert_eq!((fault.kind(), started.elapsed() >= PATIENCE), (io::ErrorKind::TimedOut, true));
    }

    #[tokio::test]
    async fn a_byte_now_and_then_does_not_keep_a_connection() {
        let (mut ours, mut theirs) = wire(16, PATIENCE);
        let reading = spawn(async move {
            let mut taken = 0;
            while theirs.read_u8().await.is_ok() {
                taken += 1;
                tokio::time::sleep(PATIENCE / 4).await;
            }
            taken
        });
        let fault = ours.write_all(&[0; 1_000]).await.expect_err("too slow");
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
        drop(ours);
        assert!(reading.await.expect("ends") < 30);
    }

    /// TLS takes what is written into a buffer, and cannot empty that.
    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_what_is_flushed_is_dropped_too() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut ours = Wire::new(tokio::io::BufWriter::with_capacity(1_000, ours), Arc::default(), PATIENCE);
        ours.write_all(&[0; 100]).await.expect("it fits into the buffer");
        let started = now();
        let fault = ours.flush().await.expect_err("nobody reads");
        assert_eq!((fault.kind(), started.elapsed() >= PATIENCE), (io::ErrorKind::TimedOut, true));
        assert!(ours.write_all(&[0; 100]).await.is_err(), "once and for all");
    }

    #[tokio::test]
    async fn who_reads_at_the_least_rate_gets_everything() {
        // More than a slow machine's pauses.
        let (mut ours, mut theirs) = wire(1 << 16, Duration::from_secs(10));
        let reading = spawn(async move {
            let (mut taken, mut buffer) = (0, vec![0; 1 << 16]);
            loop {
                match theirs.read(&mut buffer).await {
                    Ok(0) | Err(_) => return taken,
                    Ok(bytes) => taken += bytes,
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        ours.write_all(&vec![0; 1 << 20]).await.expect("quick enough");
        drop(ours);
        assert_eq!(reading.await.expect("ends"), 1 << 20);
    }
}
