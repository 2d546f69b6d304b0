//! `Limited`: the socket of a connection, which tells the connection's state what passes.
//!
//! hyper reads and writes it, and after an upgrade the user does. In a tunnel it registers the wakers of both halves
//! itself, because the connection's task has ended then.

use super::allowance::Flood;
use super::desk::Desk;
use super::inbound::Http2;
use super::state::{Cold, Conn, Flags, Writing};
use super::turn::Turn;
use crate::error::LimitPassed;
use crate::limit::Limit;
use crate::listener::Socket;
use crate::time::after;
use pin_project_lite::pin_project;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// RFC 9110 section 15.5.9.
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A connection's place in the server. Its drop ends the connection.
pub(crate) struct Member {
    pub(crate) conn: Arc<Conn>,
    desk: Arc<Desk>,
}

impl Member {
    pub(crate) fn enter(desk: &Arc<Desk>, conn: Arc<Conn>) -> Self {
        desk.enter(&conn);
        Self { conn, desk: desk.clone() }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.conn.leave();
        self.desk.leave(&self.conn);
    }
}

#[derive(Clone, Copy, Debug)]
enum Half {
    Reader,
    Writer,
}

pin_project! {
    pub(crate) struct Limited<S> {
        // Dropped first, so that the socket is closed when the server counts one connection less.
        #[pin]
        stream: S,
        // `None` on HTTP/1, when the first bytes were read.
        extra: Option<Box<Extra>>,
        // In a tunnel.
        turn: Turn,
        member: Member,
    }
}

struct Extra {
    /// The bytes that told the protocol, and are to be read again.
    prefix: Vec<u8>,
    /// HTTP/2 only.
    http2: Option<Http2>,
}

impl<S> Limited<S> {
    pub(crate) fn new(stream: S, member: Member) -> Self {
        Self { stream, extra: None, turn: Turn::default(), member }
    }

    /// Gives back the bytes that told the protocol.
    pub(crate) fn begin(&mut self, prefix: Vec<u8>, is_http2: bool) {
        let http2 = is_http2.then(|| Http2::new(&self.member.conn));
        self.extra = Some(Box::new(Extra { prefix, http2 }));
    }
}

impl<S: Socket> Limited<S> {
    /// Reads the bytes again that told the protocol. Those of HTTP/2 are the preface, and those of HTTP/1 were noted before.
    /// Returns whether there were any.
    fn read_prefix(extra: &mut Option<Box<Extra>>, buffer: &mut ReadBuf<'_>) -> bool {
        let Some(Extra { prefix, http2 }) = extra.as_deref_mut() else { return false };
        let taken = prefix.len().min(buffer.remaining());
        if taken == 0 {
            return false;
        }
        buffer.put_slice(&prefix[..taken]);
        prefix.drain(..taken);
        if prefix.is_empty() {
            *prefix = Vec::new();
            if http2.is_none() {
                *extra = None;
            }
        }
        true
    }

    /// A write has ended, or would wait. One that never waits must fail, too, after its tunnel was cut.
    #[inline]
    fn end_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let conn = &self.member.conn;
        let is_cut = conn.has(Flags::ABORT) && conn.has(Flags::TUNNEL);
        if polled.is_pending() || is_cut { self.waits(Half::Writer, cx) } else { polled }
    }

    /// A read or a write would wait. TLS has a buffer of its own, so a flush or a shutdown may write, too.
    #[inline]
    fn waits<T>(self: Pin<&mut Self>, half: Half, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if matches!(half, Half::Writer) && !self.member.conn.has(Flags::TUNNEL) {
            self.member.conn.write_blocked(self.stream.untaken());
        }
        if self.member.conn.has(Flags::ABORT | Flags::TUNNEL | Flags::DUE) {
            return self.waits_in_vain(half, cx);
        }
        Poll::Pending
    }

    #[cold]
    fn waits_in_vain<T>(
        mut self: Pin<&mut Self>,
        half: Half,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        let conn = self.member.conn.clone();
        if conn.has(Flags::DUE) {
            self.as_mut().look();
        }
        if conn.take(Flags::FAREWELL) != 0 {
            match conn.aborted_by() {
                Limit::Response | Limit::ResponseRate => self.stream.reset_on_drop(),
                _ => self.as_mut().say_farewell(cx),
            }
        }
        if conn.has(Flags::TUNNEL) {
            conn.register_half(half, cx.waker(), || self.stream.untaken());
            let has_turn = conn.has(Flags::TUNNEL_NEWS) && !conn.has(Flags::ABORT);
            if has_turn && self.as_mut().project().turn.poll_for(&conn, cx).is_ready() {
                conn.attend_tunnel();
            }
        }
        match conn.has(Flags::ABORT) {
            true => Poll::Ready(Err(LimitPassed(conn.aborted_by()).into())),
            false => Poll::Pending,
        }
    }

    /// Looks whether h2 reads, and whether the client takes bytes, before the task judges.
    fn look(self: Pin<&mut Self>) {
        let this = self.project();
        let conn = &this.member.conn;
        let http2 = this.extra.as_mut().and_then(|extra| extra.http2.as_mut());
        let Some(http2) = http2 else { return };
        if http2.read_in != conn.polls.load(Ordering::Relaxed) {
            conn.reads_nothing();
        }
        if this.stream.untaken().is_some_and(|untaken| http2.taking.goes_on(untaken)) {
            conn.client_takes();
        }
    }

    /// Says in one write why the connection ends, if no other write is half done.
    fn say_farewell(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let this = self.project();
        if this.member.conn.writing() == Writing::Waits {
            return;
        }
        let _ = match this.extra.as_ref().and_then(|extra| extra.http2.as_ref()) {
            Some(Http2 { frames, .. }) => {
                let limit = this.member.conn.aborted_by();
                this.stream.poll_write(cx, &goaway(frames.last_stream, limit))
            }
            None => this.stream.poll_write(cx, REQUEST_TIMEOUT),
        };
    }

    /// Follows the frames of HTTP/2 that were written.
    #[inline]
    fn follow(
        extra: &mut Option<Box<Extra>>,
        conn: &Arc<Conn>,
        slices: &[IoSlice<'_>],
        written: &Poll<io::Result<usize>>,
    ) {
        let http2 = extra.as_mut().and_then(|extra| extra.http2.as_mut());
        let (Some(http2), &Poll::Ready(Ok(mut left))) = (http2, written) else { return };
        let (written, mut is_opened) = (left, false);
        http2.allowance.wrote(written);
        for slice in slices {
            let taken = slice.len().min(left);
            is_opened |= http2.frames.window.wrote(&slice[..taken]);
            left -= taken;
        }
        let data = std::mem::take(&mut http2.frames.window.data);
        http2.taking.wrote(written, data > 0);
        if data > 0 {
            conn.data_sent(data);
            conn.touch_tunnels();
        }
        if is_opened {
            conn.window_opened();
        }
    }

    /// Ends a connection with too many control frames.
    #[cold]
    fn refuse<T>(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.member.conn.cut_off(Limit::ControlFrames);
        self.say_farewell(cx);
        Poll::Ready(Err(LimitPassed(Limit::ControlFrames).into()))
    }

    /// Notes the result of a write.
    #[inline]
    fn wrote(conn: &Arc<Conn>, written: &Poll<io::Result<usize>>) {
        let &Poll::Ready(Ok(bytes @ 1..)) = written else { return };
        if conn.has(Flags::TUNNEL) {
            conn.touch();
        } else if conn.writing() != Writing::Free {
            conn.write_progressed(bytes);
        }
    }
}

impl Conn {
    /// A write waits, and perhaps did before. Counts what the client has taken, while the system accepted nothing.
    #[cold]
    fn write_blocked(self: &Arc<Self>, untaken: Option<u64>) {
        let now = self.now();
        let writing = self.writing();
        let mut control = self.control();
        let bounds = self.write_bounds(&control);
        let cold = control.cold_mut();
        if writing == Writing::Free {
            cold.untaken = None; // of another response
        }
        let taken = cold.look(untaken, now);
        cold.write.wait(now, 0);
        let deadline = cold.write.deadline(&bounds);
        // Streams of HTTP/2 that wait may have waited for that.
        let records = if taken > 0 { control.records() } else { Vec::new() };
        drop(control);
        records.iter().for_each(|record| record.client_took(now));
        if writing != Writing::Waits {
            self.set_writing(Writing::Waits);
            self.arm(deadline);
        }
    }

    #[cold]
    fn write_progressed(&self, bytes: usize) {
        let now = self.now();
        self.control().cold_mut().accepted(bytes as u64, now);
    }

    /// Everything was written. The window of the rate goes on until the request ends.
    #[cold]
    fn write_flushed(self: &Arc<Self>) {
        let now = self.now();
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            self.control().cold_mut().write.pause(now);
            self.set_writing(Writing::Measured);
            return;
        }
        // The rest of a response whose body has ended before.
        self.control().cold_mut().write.clear();
        self.idle_since.store(now, Ordering::Relaxed);
        self.set_writing(Writing::Free);
        self.arm(after(now, self.idle_limit()));
    }

    /// Registers the waker of a half of a tunnel. A writer that still waits finds what the client has taken meanwhile.
    fn register_half(&self, half: Half, waker: &Waker, untaken: impl FnOnce() -> Option<u64>) {
        let mut control = self.control();
        let slot = match half {
            Half::Reader => &mut control.waker,
            Half::Writer => {
                let cold = control.cold_mut();
                if cold.look(untaken(), 0) > 0 {
                    self.touch();
                }
                &mut cold.writer
            }
        };
        if !slot.as_ref().is_some_and(|previous| previous.will_wake(waker)) {
            *slot = Some(waker.clone());
        }
    }

    /// Ends the tunnel if it is over. Returns whether it is. If a byte has come since the check, ensures that the next
    /// check is not too late.
    pub(crate) fn attend_tunnel(self: &Arc<Self>) -> bool {
        let news = self.take(Flags::TUNNEL_NEWS);
        let end = after(self.idle_since.load(Ordering::Relaxed), self.limits().tunnel);
        let limit = if news & Flags::LOST != 0 {
            Limit::Timer
        } else if news & Flags::DUE != 0 && self.now() >= end {
            Limit::Tunnel
        } else {
            self.arm(end);
            return false;
        };
        self.cut_off(limit);
        true
    }
}

impl Cold {
    /// The system has accepted bytes. They have moved when the client takes them, if that is known.
    fn accepted(&mut self, bytes: u64, now: u64) {
        let moved = match &mut self.untaken {
            Some(untaken) => {
                *untaken = untaken.saturating_add(bytes);
                0
            }
            None => bytes,
        };
        self.write.progress(moved, now);
    }

    /// Counts what the client has taken since the last look, and returns it.
    fn look(&mut self, untaken: Option<u64>, now: u64) -> u64 {
        let before = std::mem::replace(&mut self.untaken, untaken);
        let (Some(before), Some(untaken)) = (before, untaken) else { return 0 };
        let taken = before.saturating_sub(untaken);
        if taken > 0 {
            self.write.progress(taken, now);
            self.flow.sent += taken;
        }
        taken
    }
}

/// GOAWAY (RFC 9113 sections 6.8 and 7): ENHANCE_YOUR_CALM for a header that does not end and for too
/// many control frames, otherwise NO_ERROR.
fn goaway(last_stream: u32, limit: Limit) -> [u8; 17] {
    const ENHANCE_YOUR_CALM: u8 = 0xb;
    let mut frame = [0; 17];
    frame[2] = 8;
    frame[3] = 7;
    frame[9..13].copy_from_slice(&last_stream.to_be_bytes());
    let is_hostile = matches!(limit, Limit::Header | Limit::ControlFrames);
    frame[16] = if is_hostile { ENHANCE_YOUR_CALM } else { 0 };
    frame
}

impl<S: Socket> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.member.conn.has(Flags::ABORT) {
            return self.waits(Half::Reader, cx); // what comes now is too late, even if a read never waits
        }
        let before = buffer.filled().len();
        let mut this = self.as_mut().project();
        let conn = &this.member.conn;
        if Self::read_prefix(this.extra, buffer) {
            return Poll::Ready(Ok(()));
        }
        let mut http2 = this.extra.as_mut().and_then(|extra| extra.http2.as_mut());
        if let Some(http2) = &mut http2 {
            http2.read_in = conn.polls.load(Ordering::Relaxed);
        }
        let polled = this.stream.as_mut().poll_read(cx, buffer);
        match polled {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                if conn.has(Flags::NEWS) {
                    conn.set(Flags::TOLD);
                }
                match conn.came(http2, &buffer.filled()[before..]) {
                    Ok(()) => polled,
                    Err(Flood) => self.refuse(cx),
                }
            }
            Poll::Pending => {
                if conn.has(Flags::NEWS) && !conn.has(Flags::TOLD) && this.stream.has_unread() {
                    conn.set(Flags::BEHIND);
                }
                self.waits(Half::Reader, cx)
            }
            polled => polled,
        }
    }
}

impl<S: Socket> AsyncWrite for Limited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.as_mut().project();
        let polled = this.stream.as_mut().poll_write(cx, bytes);
        Self::wrote(&this.member.conn, &polled);
        Self::follow(this.extra, &this.member.conn, &[IoSlice::new(bytes)], &polled);
        self.end_write(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.as_mut().project();
        let polled = this.stream.as_mut().poll_write_vectored(cx, slices);
        Self::wrote(&this.member.conn, &polled);
        Self::follow(this.extra, &this.member.conn, slices, &polled);
        self.end_write(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper and h2 flush when they have written everything.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.as_mut().project();
        let polled = this.stream.poll_flush(cx);
        let conn = &this.member.conn;
        if polled.is_ready() && conn.writing() != Writing::Free && !conn.has(Flags::ENDS) {
            conn.write_flushed();
        }
        if polled.is_pending() { self.waits(Half::Writer, cx) } else { polled }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.member.conn.set(Flags::ENDS);
        let polled = self.as_mut().project().stream.poll_shutdown(cx);
        if polled.is_pending() { self.waits(Half::Writer, cx) } else { polled }
    }
}
