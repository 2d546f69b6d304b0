//! The last item before a pause.

use super::fused::Fused;
use crate::future::Sleep;
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The most items that one poll takes, so that a stream that is always ready does not block its thread.
const ITEMS_PER_POLL: usize = 64;

pin_project! {
    /// A stream of the items that a pause follows. Created by
    /// [`TimedStreamExt::debounce_on`](super::TimedStreamExt::debounce_on).
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
    /// use wheelwork::{HashedWheelTimer, future::{Debounce, DelayQueue, TimedStreamExt}};
    ///
    /// struct Editor {
    ///     pauses: Pin<Box<Debounce<DelayQueue<char>>>>,
    /// }
    ///
    /// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let mut keys = DelayQueue::new(&timer);
    /// keys.insert('a', Duration::ZERO);
    /// let mut editor = Editor { pauses: Box::pin(keys.debounce_on(&timer, Duration::from_millis(5))) };
    /// let last = poll_fn(|cx| editor.pauses.as_mut().poll_next(cx)).await.expect("a key");
    /// assert_eq!(last.value, 'a');
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct Debounce<S: Stream> {
        #[pin]
        pub(super) stream: Fused<S>,
        pub(super) latest: Option<S::Item>,
        // Ends when the pause after the latest item is long enough.
        pub(super) sleep: Sleep,
        pub(super) quiet: Duration,
    }
}

impl<S: Stream> Stream for Debounce<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        for _ in 0..ITEMS_PER_POLL {
            if this.latest.is_some() && this.sleep.is_elapsed() {
                return Poll::Ready(this.latest.take());
            }
            match this.stream.as_mut().poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    *this.latest = Some(item);
                    this.sleep.reset_after(*this.quiet);
                }
                Poll::Ready(None) => return Poll::Ready(this.latest.take()),
                Poll::Pending => {
                    if this.latest.is_none() {
                        return Poll::Pending;
                    }
                    ready!(this.sleep.poll_ready(cx));
                    return Poll::Ready(this.latest.take());
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
