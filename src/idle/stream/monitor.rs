//! `Monitor`: the watch of one stream, which turns a reported silence into an error.
//!
//! A stream that has written nothing may still make progress: the peer takes bytes that the system holds. So before a
//! silence of writes is an error, the stream is asked what is not taken. If that has changed since the last look, the
//! silence is over. A write discards the last look. The next look finds progress if bytes are left, because
//! nobody knows when the peer took the rest. So a peer that takes nothing more is noticed at the second report.

use super::pauser::StreamWatch;
use super::signal::{Half, Listener, Signal, Silence, Silences};
use super::timed_out::TimedOut;
use crate::base::sync::Arc;
use crate::idle::kind::IdleKind;
use std::io;
use std::task::{Context, Poll};

pub(super) struct Monitor {
    /// Dropped first, so that no report wakes a waker that is about to be dropped.
    listener: Listener,
    pub(super) watch: StreamWatch,
    /// A flush or a shutdown waits, so its end is the end of the waiting write.
    flush_waits: bool,
    /// What the peer had not taken at the last look, its low bits. 0 after a write, and if it had taken all.
    untaken: u32,
}

impl Monitor {
    pub(super) fn new(watch: StreamWatch, signal: Arc<Signal>) -> Self {
        Self { listener: Listener::new(signal), watch, flush_waits: false, untaken: 0 }
    }

    /// Judges a read or a write: progress is recorded, and waiting ends with an error if the stream is idle. `untaken`
    /// returns how much the peer has not taken.
    #[inline]
    pub(super) fn judge(
        &mut self,
        half: Half,
        cx: &Context<'_>,
        polled: Poll<io::Result<usize>>,
        untaken: impl FnOnce() -> Option<u64>,
    ) -> Poll<io::Result<usize>> {
        if polled.is_pending() {
            if half == Half::Writer {
                self.watch.record_waiting_write();
            }
            return self.wait(half, cx, untaken);
        }
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.record(half);
        }
        polled
    }

    /// Judges a flush or a shutdown. Their results are no progress, but while they wait, a write waits.
    #[inline]
    pub(super) fn judge_flush(
        &mut self,
        cx: &Context<'_>,
        polled: Poll<io::Result<()>>,
        untaken: impl FnOnce() -> Option<u64>,
    ) -> Poll<io::Result<()>> {
        if polled.is_pending() {
            self.flush_waits = true;
            self.watch.record_waiting_write();
            return self.wait(Half::Writer, cx, untaken);
        }
        if std::mem::take(&mut self.flush_waits) {
            self.watch.end_waiting_write();
        }
        polled
    }

    #[inline]
    fn record(&mut self, half: Half) {
        match half {
            Half::Reader => self.watch.record_read(),
            Half::Writer => {
                self.flush_waits = false;
                self.untaken = 0;
                self.watch.record_write();
            }
        }
    }

    /// Registers the task's waker, then looks for a reason to fail.
    #[inline]
    fn wait<R>(
        &mut self,
        half: Half,
        cx: &Context<'_>,
        untaken: impl FnOnce() -> Option<u64>,
    ) -> Poll<io::Result<R>> {
        let silences = self.listener.wait(half, cx.waker());
        match silences.and_then(|silences| self.failure(silences, untaken)) {
            Some(timed_out) => Poll::Ready(Err(timed_out.into())),
            None => Poll::Pending,
        }
    }

    /// The reason to fail. Progress that only the system sees is recorded here.
    #[cold]
    fn failure(
        &mut self,
        silences: Silences,
        untaken: impl FnOnce() -> Option<u64>,
    ) -> Option<TimedOut> {
        let found = self.silence(silences)?;
        if found.kind == IdleKind::Reader || found.kind == IdleKind::Age {
            return Some(found); // no write would end it
        }
        let untaken = untaken().unwrap_or(0) as u32;
        if std::mem::replace(&mut self.untaken, untaken) == untaken {
            return Some(found);
        }
        self.watch.record_taken();
        self.silence(silences)
    }

    /// The silence that is not over, or the age.
    fn silence(&self, silences: Silences) -> Option<TimedOut> {
        let reading = self.watch.reading();
        let mut reported = IdleKind::LIMITED.into_iter().zip(silences);
        reported.find_map(|(kind, silence)| {
            let Silence { since, silent_for, first } = silence?;
            let fails = match kind {
                IdleKind::Age => !(first && reading.paused),
                kind => reading.is_silent_since(kind, since),
            };
            fails.then_some(TimedOut { kind, silent_for })
        })
    }
}
