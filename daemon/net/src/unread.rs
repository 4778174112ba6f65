//! A stream with a timeout for writing: a client that sends requests and reads no answer holds no connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream on which a write fails once the other side has accepted no bytes for `patience`.
pub struct Unread<S> {
    stream: S,
    patience: Duration,
    /// End of the timeout, while a write is pending.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Unread<S> {
    /// Wraps a stream with this timeout for a pending write.
    pub fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, until: None }
    }

    /// Applies the timeout to the outcome of an attempt to write.
    fn watch<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let patience = self.patience;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(patience)));
        until.as_mut().poll(context).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the answer is not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn an_answer_that_nobody_reads_ends_the_connection_and_one_that_is_read_does_not() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut stream = Unread::new(ours, Duration::from_secs(60));
        let reader = tokio::spawn(async move {
            theirs.read_exact(&mut [0; 16]).await.unwrap();
            theirs
        });
        stream.write_all(&[7; 16]).await.unwrap();
        let _theirs = reader.await.unwrap();
        stream.patience = Duration::from_millis(1);
        stream.write_all(&[7; 4]).await.unwrap();
        assert_eq!(stream.write_all(&[7; 1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
