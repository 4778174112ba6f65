//! Yamux over encrypted TCP, with larger writes.
//!
//! Yamux flushes after each of its frames of at most 16 KiB. Each flush becomes a Noise frame with a checksum of its
//! own, and a write to the socket. Here a flush waits until the connection has been polled once more for data to send:
//! data queued meanwhile goes into the same frame, of up to 64 KiB.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use libp2p::yamux;

/// Unchanged Yamux over a stream that batches.
#[derive(Clone, Debug, Default)]
pub(super) struct Batched(yamux::Config);

/// A stream whose flushes wait for one more poll.
#[derive(Debug)]
pub(super) struct Batching<S> {
    inner: S,
    /// Set when a flush was requested and nothing was written since.
    is_put_off: bool,
    /// Set when something was written that was not flushed.
    is_dirty: bool,
}

impl<S> Batching<S> {
    fn new(inner: S) -> Self {
        Self { inner, is_put_off: false, is_dirty: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Batching<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Batching<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_put_off = false;
        self.is_dirty = true;
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_dirty && !self.is_put_off {
            self.is_put_off = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.is_put_off = false;
        self.is_dirty = false;
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

impl UpgradeInfo for Batched {
    type Info = <yamux::Config as UpgradeInfo>::Info;
    type InfoIter = <yamux::Config as UpgradeInfo>::InfoIter;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.protocol_info()
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<S> for Batched {
    type Output = yamux::Muxer<Batching<S>>;
    type Error = io::Error;
    type Future = <yamux::Config as InboundConnectionUpgrade<Batching<S>>>::Future;

    fn upgrade_inbound(self, stream: S, info: Self::Info) -> Self::Future {
        self.0.upgrade_inbound(Batching::new(stream), info)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<S> for Batched {
    type Output = yamux::Muxer<Batching<S>>;
    type Error = io::Error;
    type Future = <yamux::Config as OutboundConnectionUpgrade<Batching<S>>>::Future;

    fn upgrade_outbound(self, stream: S, info: Self::Info) -> Self::Future {
        self.0.upgrade_outbound(Batching::new(stream), info)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::task::Waker;

    use super::*;

    /// Counts flushes.
    #[derive(Default)]
    struct Sink {
        bytes: usize,
        flushes: usize,
    }

    impl AsyncWrite for Sink {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.bytes += bytes.len();
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn frames_that_follow_at_once_share_a_flush_and_the_last_is_flushed() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut stream = Batching::new(Sink::default());
        for _ in 0..3 {
            assert!(Pin::new(&mut stream).poll_write(&mut cx, &[0; 10]).is_ready());
            assert!(Pin::new(&mut stream).poll_flush(&mut cx).is_pending());
        }
        assert_eq!((stream.inner.bytes, stream.inner.flushes), (30, 0));
        assert!(Pin::new(&mut stream).poll_flush(&mut cx).is_ready());
        assert!(Pin::new(&mut stream).poll_flush(&mut cx).is_ready(), "nothing is left to wait for");
        assert_eq!(stream.inner.flushes, 2);
        assert!(Pin::new(&mut stream).poll_write(&mut cx, &[0; 10]).is_ready());
        assert!(Pin::new(&mut stream).poll_flush(&mut cx).is_pending(), "what is written later waits again");
    }
}
