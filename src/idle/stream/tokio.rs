//! tokio's `AsyncRead` and `AsyncWrite` for [`IdleStream`].

use super::IdleStream;
use super::signal::Half;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

impl<S: AsyncRead> AsyncRead for IdleStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let before = buffer.filled().len();
        let polled = this.stream.as_mut().poll_read(cx, buffer);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge(Half::Reader, cx, polled, |()| buffer.filled().len() > before, untaken)
    }
}

impl<S: AsyncWrite> AsyncWrite for IdleStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_write(cx, bytes);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge(Half::Writer, cx, polled, |&written| written > 0, untaken)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_write_vectored(cx, slices);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge(Half::Writer, cx, polled, |&written| written > 0, untaken)
    }

    fn is_write_vectored(&self) -> bool {
        self.get_ref().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_flush(cx);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge_flush(cx, polled, untaken)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_shutdown(cx);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge_flush(cx, polled, untaken)
    }
}
