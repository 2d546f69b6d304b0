//! At most one item per interval.

use crate::future::Sleep;
use crate::timer::HashedWheelTimer;
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

pin_project! {
    /// A stream with a limited rate. Created by
    /// [`TimedStreamExt::throttle`](super::TimedStreamExt::throttle).
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct Throttle<S> {
        #[pin]
        stream: S,
        // Ends when the next item may come.
        sleep: Sleep,
        interval: Duration,
    }
}

impl<S> Throttle<S> {
    #[cfg_attr(feature = "tracing", track_caller)]
    pub(super) fn new(stream: S, timer: &HashedWheelTimer, interval: Duration) -> Self {
        Self { stream, sleep: timer.sleep(Duration::ZERO), interval }
    }

    /// Returns the stream without its limit.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> Stream for Throttle<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        ready!(this.sleep.poll_ready(cx));
        let item = ready!(this.stream.poll_next(cx));
        if item.is_some() {
            this.sleep.reset_after(*this.interval);
        }
        Poll::Ready(item)
    }
}
