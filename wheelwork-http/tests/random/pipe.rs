//! A socket within the process, whose bytes arrive at once.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use wheelwork_http::Socket;

/// The bytes that a connection holds on the way.
pub(crate) const BUFFER: usize = 160 * 1024;

/// The server's end.
pub(crate) struct Pipe {
    stream: DuplexStream,
    taking: Arc<Taking>,
}

/// What the client takes. The server's end lives as long as this has two owners.
#[derive(Default)]
pub(crate) struct Taking {
    /// A shutdown waits for the client, as that of TLS does if the system takes no more bytes.
    is_waited_for: bool,
    untaken: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Pipe {
    /// With the client's end.
    pub(crate) fn new(is_waited_for: bool) -> (DuplexStream, Arc<Taking>, Self) {
        let (ours, stream) = duplex(BUFFER);
        let taking = Arc::new(Taking { is_waited_for, ..Taking::default() });
        (ours, taking.clone(), Self { stream, taking })
    }

    fn wrote(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = polled {
            self.taking.untaken.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        polled
    }
}

impl Taking {
    pub(crate) fn took(&self, bytes: usize) {
        self.untaken.fetch_sub(bytes as u64, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap().take();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Socket for Pipe {
    fn untaken(&self) -> Option<u64> {
        self.taking.is_waited_for.then(|| self.taking.untaken.load(Ordering::Relaxed))
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.untaken().is_some_and(|untaken| untaken > 0) {
            *self.taking.waker.lock().unwrap() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
