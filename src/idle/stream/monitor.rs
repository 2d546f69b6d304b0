//! `Monitor`: the watch of one stream, which turns a reported silence into an error.

use super::pauser::StreamWatch;
use super::signal::{Half, Listener, Signal, Silence};
use super::timed_out::TimedOut;
use crate::base::sync::Arc;
use crate::idle::kind::IdleKind;
use std::io;
use std::task::{Context, Poll};

pub(super) struct Monitor {
    /// Dropped first, so that no report wakes a waker that is about to be dropped.
    listener: Listener,
    pub(super) watch: StreamWatch,
}

impl Monitor {
    pub(super) fn new(watch: StreamWatch, signal: Arc<Signal>) -> Self {
        Self { listener: Listener::new(signal), watch }
    }

    /// Judges a poll of the stream: progress is recorded, and waiting ends with an error if the stream is
    /// idle. `progressed` says whether a result moved any bytes.
    #[inline]
    pub(super) fn judge<R>(
        &mut self,
        half: Half,
        cx: &Context<'_>,
        polled: Poll<io::Result<R>>,
        progressed: impl FnOnce(&R) -> bool,
    ) -> Poll<io::Result<R>> {
        match polled {
            Poll::Ready(result) => {
                if result.as_ref().is_ok_and(progressed) {
                    self.record(half);
                }
                Poll::Ready(result)
            }
            Poll::Pending => match self.wait(half, cx) {
                Some(idle) => Poll::Ready(Err(idle.into())),
                None => Poll::Pending,
            },
        }
    }

    #[inline]
    fn record(&self, half: Half) {
        match half {
            Half::Reader => self.watch.record_read(),
            Half::Writer => self.watch.record_write(),
        }
    }

    /// Registers the task's waker, then looks for a silence that is not over.
    #[inline]
    fn wait(&mut self, half: Half, cx: &Context<'_>) -> Option<TimedOut> {
        let silences = self.listener.wait(half, cx.waker())?;
        let mut reported = IdleKind::SILENCES.into_iter().zip(silences);
        reported.find_map(|(kind, silence)| {
            let Silence { since, silent_for } = silence?;
            let still = self.watch.activity().reading().is_silent_since(kind, since);
            still.then_some(TimedOut { kind, silent_for })
        })
    }
}
