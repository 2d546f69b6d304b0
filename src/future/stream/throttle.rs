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
    /// [`TimedStreamExt::throttle_on`](super::TimedStreamExt::throttle_on).
    ///
    /// # Examples
    ///
    /// A program that stores the stream names its type:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::{future::poll_fn, pin::Pin};
    /// # use futures_core::Stream;
    /// use wheelwork::{HashedWheelTimer, future::{Interval, Throttle, TimedStreamExt}};
    ///
    /// struct Feed {
    ///     updates: Pin<Box<Throttle<Interval>>>,
    /// }
    ///
    /// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let updates = timer.interval(Duration::from_millis(1))?;
    /// let mut feed = Feed { updates: Box::pin(updates.throttle_on(&timer, Duration::from_millis(5))) };
    /// let first = poll_fn(|cx| feed.updates.as_mut().poll_next(cx)).await;
    /// let second = poll_fn(|cx| feed.updates.as_mut().poll_next(cx)).await;
    /// assert!(second > first);
    /// # Ok(())
    /// # }
    /// ```
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
