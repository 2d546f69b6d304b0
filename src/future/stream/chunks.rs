//! Items in chunks, each within a time.

use super::fused::Fused;
use crate::future::Sleep;
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

pin_project! {
    /// A stream of chunks. Created by
    /// [`TimedStreamExt::chunks_timeout_on`](super::TimedStreamExt::chunks_timeout_on).
    ///
    /// # Examples
    ///
    /// A program that stores the stream names its type:
    ///
    /// ```
    /// # use std::{pin::Pin, time::Duration};
    /// use wheelwork::{HashedWheelTimer, future::{ChunksTimeout, Interval, TimedStreamExt}};
    ///
    /// struct Batches {
    ///     chunks: Pin<Box<ChunksTimeout<Interval>>>,
    /// }
    ///
    /// let timer = HashedWheelTimer::new()?;
    /// let ticks = timer.interval(Duration::from_secs(1))?;
    /// let chunks = ticks.chunks_timeout_on(&timer, 100, Duration::from_secs(10));
    /// let batches = Batches { chunks: Box::pin(chunks) };
    /// # drop(batches.chunks);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct ChunksTimeout<S: Stream> {
        #[pin]
        pub(super) stream: Fused<S>,
        pub(super) items: Vec<S::Item>,
        pub(super) most: usize,
        // Ends `limit` after the first item of the chunk.
        pub(super) sleep: Sleep,
        pub(super) limit: Duration,
    }
}

impl<S: Stream> ChunksTimeout<S> {
    /// Returns the stream, and the items of the chunk that has begun.
    pub fn into_inner(self) -> (S, Vec<S::Item>) {
        (self.stream.into_inner(), self.items)
    }
}

impl<S: Stream> Stream for ChunksTimeout<S> {
    type Item = Vec<S::Item>;

    /// A poll takes at most one chunk, so a stream that is always ready does not block its thread for longer.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<S::Item>>> {
        let mut this = self.project();
        while this.items.len() < *this.most && (this.items.is_empty() || !this.sleep.is_elapsed()) {
            match this.stream.as_mut().poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    this.items.push(item);
                    if this.items.len() == 1 {
                        this.sleep.reset_after(*this.limit); // last, because the clock may panic
                    }
                }
                Poll::Ready(None) => break,
                Poll::Pending if this.items.is_empty() => return Poll::Pending,
                Poll::Pending => {
                    ready!(this.sleep.poll_ready(cx));
                    break;
                }
            }
        }
        let chunk = std::mem::take(this.items);
        Poll::Ready(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }
}
