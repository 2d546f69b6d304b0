//! At most one item per interval.

use super::fused::Fused;
use crate::future::Sleep;
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
    pub struct Throttle<S: Stream> {
        #[pin]
        pub(super) stream: Fused<S>,
        pub(super) next: Option<S::Item>,
        // Ends when the next item may come.
        pub(super) sleep: Sleep,
        pub(super) interval: Duration,
    }
}

impl<S: Stream> Throttle<S> {
    /// Returns the stream, and the item that was taken from it and waits.
    pub fn into_inner(self) -> (S, Option<S::Item>) {
        (self.stream.into_inner(), self.next)
    }
}

impl<S: Stream> Stream for Throttle<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if this.next.is_none() {
            *this.next = ready!(this.stream.poll_next(cx));
        }
        if this.next.is_some() {
            ready!(this.sleep.poll_ready(cx));
            this.sleep.reset_after(*this.interval);
        }
        Poll::Ready(this.next.take())
    }
}
