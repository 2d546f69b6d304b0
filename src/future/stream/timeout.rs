//! An error if the next item does not come in time.

use super::fused::Fused;
use crate::base::catch_panic::panics;
use crate::future::{Sleep, TimeoutError};
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

pin_project! {
    /// A stream with a limit for each item. Created by
    /// [`TimedStreamExt::timeout_on`](super::TimedStreamExt::timeout_on).
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
    /// use wheelwork::{HashedWheelTimer, future::{Interval, StreamTimeout, TimedStreamExt}};
    ///
    /// struct Feed {
    ///     updates: Pin<Box<StreamTimeout<Interval>>>,
    /// }
    ///
    /// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let updates = timer.interval(Duration::from_secs(60))?;
    /// let mut feed = Feed { updates: Box::pin(updates.timeout_on(&timer, Duration::from_millis(2))) };
    /// let update = poll_fn(|cx| feed.updates.as_mut().poll_next(cx)).await;
    /// assert!(update.expect("the stream goes on").is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct StreamTimeout<S> {
        #[pin]
        pub(super) stream: Fused<S>,
        pub(super) sleep: Sleep,
        pub(super) limit: Duration,
        // Whether an error was yielded since the last item, or the clock panicked at that item.
        pub(super) reported: bool,
        // Whether more errors follow.
        pub(super) repeats: bool,
    }
}

impl<S> StreamTimeout<S> {
    /// Returns the stream without its limit.
    pub fn into_inner(self) -> S {
        self.stream.into_inner()
    }
}

impl<S: Stream> Stream for StreamTimeout<S> {
    type Item = Result<S::Item, TimeoutError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if let Poll::Ready(item) = this.stream.poll_next(cx) {
            if item.is_some() && !this.sleep.was_stopped() {
                // If the clock panics, the item is not lost, and the wait for the next one has no limit.
                *this.reported = panics(|| this.sleep.reset_after(*this.limit));
            }
            return Poll::Ready(item.map(Ok));
        }
        if *this.reported {
            return Poll::Pending;
        }
        ready!(this.sleep.poll_ready(cx));
        if *this.repeats && !this.sleep.was_stopped() {
            if this.limit.is_zero() {
                // After a delay of zero, the stream would never be pending.
                let gate = this.sleep.gate();
                let tick = gate.scale.tick_at(gate.time.now_or_later());
                let next = gate.scale.start_of(tick + 1);
                this.sleep.reset_to(next);
            } else {
                this.sleep.reset_after(*this.limit);
            }
            return Poll::Ready(Some(Err(TimeoutError::Elapsed)));
        }
        *this.reported = true;
        Poll::Ready(Some(Err(TimeoutError::of(this.sleep))))
    }
}
