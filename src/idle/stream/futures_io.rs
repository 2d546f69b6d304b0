//! futures-io's `AsyncRead` and `AsyncWrite` for [`IdleStream`].

use super::IdleStream;
use super::signal::Half;
use futures_io::{AsyncRead, AsyncWrite};
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

impl<S: AsyncRead> AsyncRead for IdleStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_read(cx, buffer);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge(Half::Reader, cx, polled, |&read| read > 0, untaken)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_read_vectored(cx, buffers);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge(Half::Reader, cx, polled, |&read| read > 0, untaken)
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

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_flush(cx);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge_flush(cx, polled, untaken)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let polled = this.stream.as_mut().poll_close(cx);
        let untaken = || (this.untaken)(&this.stream);
        this.monitor.judge_flush(cx, polled, untaken)
    }
}
