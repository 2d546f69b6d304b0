//! Methods on streams: limits and rates.

// The files:
//   timeout   an error if the next item does not come in time
//   throttle  at most one item per interval
//   debounce  the last item before a pause
//   chunks    items in chunks, each within a time
//   fused     the source of each, which is not polled after its end
mod chunks;
mod debounce;
mod fused;
mod throttle;
mod timeout;

pub use chunks::ChunksTimeout;
pub use debounce::Debounce;
pub use throttle::Throttle;
pub use timeout::StreamTimeout;

use crate::timer::HashedWheelTimer;
use fused::Fused;
use futures_core::Stream;
use std::time::Duration;

/// Time limits, rates and chunks for streams. The names of the methods differ from those of tokio-stream's
/// `StreamExt`, so both traits can be imported.
///
/// [`Debounce`] and [`ChunksTimeout`] check their deadline before they take a further item. So even if a task polls
/// late, the next item neither replaces nor joins one whose time is up. An item's time begins with the poll that takes
/// it. All are fused: after the end of the stream they yield `None`, and do not poll it again.
///
/// After a stop of the timer, no item is delayed: [`Throttle`] yields each one, [`Debounce`] the latest one that is
/// ready, and [`ChunksTimeout`] a chunk of those that are ready. [`StreamTimeout`] reports the stop once.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::{future::poll_fn, pin::pin};
/// use futures_core::Stream;
/// use wheelwork::{HashedWheelTimer, future::TimedStreamExt};
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let ticks = timer.interval(Duration::from_millis(1))?;
/// let mut slow_ticks = pin!(ticks.throttle_on(&timer, Duration::from_millis(5)));
/// let first = poll_fn(|cx| slow_ticks.as_mut().poll_next(cx)).await;
/// let second = poll_fn(|cx| slow_ticks.as_mut().poll_next(cx)).await;
/// assert!(second > first);
/// # Ok(())
/// # }
/// ```
pub trait TimedStreamExt: Stream + Sized {
    /// Yields an error if the next item does not come within `limit` after the last one, or after this
    /// call. The stream continues after an error. There is at most one error between two items. An item that is
    /// ready comes before the error, even if the poll is late.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::{future::poll_fn, pin::pin};
    /// # use futures_core::Stream;
    /// use wheelwork::future::TimedStreamExt;
    ///
    /// # let timer = wheelwork::HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let slow = timer.interval(Duration::from_secs(60))?;
    /// let mut items = pin!(slow.timeout_on(&timer, Duration::from_millis(2)));
    /// let item = poll_fn(|cx| items.as_mut().poll_next(cx)).await;
    /// assert!(item.expect("the stream goes on").is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    fn timeout_on(self, timer: &HashedWheelTimer, limit: Duration) -> StreamTimeout<Self> {
        let (stream, sleep) = (Fused::new(self), timer.sleep(limit));
        StreamTimeout { stream, sleep, limit, reported: false, repeats: false }
    }

    /// Yields an error like [`timeout_on`](Self::timeout_on), and then another one each time that `limit` has passed
    /// without an item. A limit of zero means each tick of the timer.
    #[cfg_attr(feature = "tracing", track_caller)]
    fn timeout_repeating_on(
        self,
        timer: &HashedWheelTimer,
        limit: Duration,
    ) -> StreamTimeout<Self> {
        StreamTimeout { repeats: true, ..self.timeout_on(timer, limit) }
    }

    /// Yields the items in chunks: of `most` items, or of those that have come within `limit` after the first
    /// one of the chunk. No chunk is empty, and a `most` of zero counts as one. With a limit of zero, a chunk has one
    /// item. The stream's end yields the rest.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::{future::poll_fn, pin::pin};
    /// # use futures_core::Stream;
    /// use wheelwork::future::{DelayQueue, TimedStreamExt};
    ///
    /// # let timer = wheelwork::HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let mut events = DelayQueue::new(&timer);
    /// "abc".chars().for_each(|event| drop(events.insert(event, Duration::ZERO)));
    /// let mut chunks = pin!(events.chunks_timeout_on(&timer, 2, Duration::from_secs(1)));
    /// for size in [2, 1] {
    ///     let chunk = poll_fn(|cx| chunks.as_mut().poll_next(cx)).await.expect("a chunk");
    ///     assert_eq!(chunk.len(), size);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    fn chunks_timeout_on(
        self,
        timer: &HashedWheelTimer,
        most: usize,
        limit: Duration,
    ) -> ChunksTimeout<Self> {
        let (stream, sleep, most) = (Fused::new(self), timer.sleep(limit), most.max(1));
        ChunksTimeout { stream, items: Vec::new(), most, sleep, limit }
    }

    /// Yields at most one item per `interval`. It takes one item ahead, so that the stream's end is not delayed. The
    /// others wait in the stream, and none is lost.
    #[cfg_attr(feature = "tracing", track_caller)]
    fn throttle_on(self, timer: &HashedWheelTimer, interval: Duration) -> Throttle<Self> {
        let (stream, sleep) = (Fused::new(self), timer.sleep(Duration::ZERO));
        Throttle { stream, next: None, sleep, interval }
    }

    /// Yields an item once no other item has followed it for `quiet`, and drops items that another one
    /// follows sooner. At the end of the stream, it yields the last item immediately.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::{future::poll_fn, pin::pin};
    /// # use futures_core::Stream;
    /// use wheelwork::future::{DelayQueue, TimedStreamExt};
    ///
    /// # let timer = wheelwork::HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let mut keys = DelayQueue::new(&timer);
    /// "abc".chars().for_each(|key| drop(keys.insert(key, Duration::ZERO))); // in quick succession
    /// let mut pauses = pin!(keys.debounce_on(&timer, Duration::from_millis(5)));
    /// let last = poll_fn(|cx| pauses.as_mut().poll_next(cx)).await.expect("the last one");
    /// assert_eq!(last.value, 'c');
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    fn debounce_on(self, timer: &HashedWheelTimer, quiet: Duration) -> Debounce<Self> {
        Debounce { stream: Fused::new(self), latest: None, sleep: timer.sleep(quiet), quiet }
    }
}

impl<S: Stream> TimedStreamExt for S {}
