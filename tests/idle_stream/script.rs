//! A stream whose polls return what the test says. It registers no waker.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;
use wheelwork::idle::Outgoing;

/// The results of the next polls. All polls after them are pending.
#[derive(Debug, Default)]
pub struct Script {
    pub results: VecDeque<io::Result<usize>>,
    /// The polls, by name.
    pub polls: Vec<&'static str>,
    /// What the peer has not taken.
    pub untaken: Option<u64>,
}

impl Script {
    /// Each poll moves the next of these numbers of bytes.
    pub fn moving<const N: usize>(bytes: [usize; N]) -> Self {
        Self { results: bytes.map(Ok).into(), ..Self::default() }
    }

    fn next(&mut self, name: &'static str) -> Poll<io::Result<usize>> {
        self.polls.push(name);
        self.results.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Outgoing for Script {
    fn untaken(&self) -> Option<u64> {
        self.untaken
    }
}

impl tokio::io::AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.next("read").map_ok(|read| buffer.put_slice(&[0; 64][..read]))
    }
}

impl tokio::io::AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.next("write")
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.next("write_vectored")
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.next("flush").map_ok(drop)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.next("shutdown").map_ok(drop)
    }
}

impl futures_io::AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.next("read")
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.next("read_vectored")
    }
}

impl futures_io::AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.next("write")
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.next("write_vectored")
    }

    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.next("flush").map_ok(drop)
    }

    fn poll_close(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.next("close").map_ok(drop)
    }
}
