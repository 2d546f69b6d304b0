//! An error if the next item does not come in time.

use crate::future::{Sleep, TimeoutError};
use crate::timer::HashedWheelTimer;
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

pin_project! {
    /// A stream with a limit for each item. Created by
    /// [`TimedStreamExt::timeout`](super::TimedStreamExt::timeout).
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct StreamTimeout<S> {
        #[pin]
        stream: S,
        sleep: Sleep,
        limit: Duration,
        // Whether an error was yielded since the last item.
        reported: bool,
    }
}

impl<S> StreamTimeout<S> {
    #[cfg_attr(feature = "tracing", track_caller)]
    pub(super) fn new(stream: S, timer: &HashedWheelTimer, limit: Duration) -> Self {
        Self { stream, sleep: timer.sleep(limit), limit, reported: false }
    }

    /// Returns the stream without its limit.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> Stream for StreamTimeout<S> {
    type Item = Result<S::Item, TimeoutError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if let Poll::Ready(item) = this.stream.poll_next(cx) {
            if item.is_some() && !this.sleep.was_stopped() {
                this.sleep.reset_after(*this.limit);
                *this.reported = false;
            }
            return Poll::Ready(item.map(Ok));
        }
        if *this.reported {
            return Poll::Pending;
        }
        ready!(this.sleep.poll_ready(cx));
        *this.reported = true;
        Poll::Ready(Some(Err(TimeoutError::of(this.sleep))))
    }
}
