//! Methods on streams: limits and rates.

// The files:
//   timeout   an error if the next item does not come in time
//   throttle  at most one item per interval
//   debounce  the last item before a pause
mod debounce;
mod throttle;
mod timeout;

pub use debounce::Debounce;
pub use throttle::Throttle;
pub use timeout::StreamTimeout;

use crate::timer::HashedWheelTimer;
use futures_core::Stream;
use std::time::Duration;

/// Time limits and rates for streams.
///
/// If the timer is stopped, no item is held back any longer: [`Throttle`] and [`Debounce`] pass each
/// item on at once, and [`StreamTimeout`] reports the stop once.
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
/// let mut slow_ticks = pin!(ticks.throttle(&timer, Duration::from_millis(5)));
/// let first = poll_fn(|cx| slow_ticks.as_mut().poll_next(cx)).await;
/// let second = poll_fn(|cx| slow_ticks.as_mut().poll_next(cx)).await;
/// assert!(second > first);
/// # Ok(())
/// # }
/// ```
pub trait TimedStreamExt: Stream + Sized {
    /// Yields an error if the next item does not come within `limit` after the last one, or after this
    /// call. The stream goes on: the next error comes at the earliest after the next item.
    fn timeout(self, timer: &HashedWheelTimer, limit: Duration) -> StreamTimeout<Self> {
        StreamTimeout::new(self, timer, limit)
    }

    /// Yields at most one item per `interval`. It does not poll the stream in between, so items wait
    /// in the stream and none is lost.
    fn throttle(self, timer: &HashedWheelTimer, interval: Duration) -> Throttle<Self> {
        Throttle::new(self, timer, interval)
    }

    /// Yields an item once no other has followed it for `quiet`, and drops those that were followed by
    /// another. At the end of the stream, the last item comes at once.
    fn debounce(self, timer: &HashedWheelTimer, quiet: Duration) -> Debounce<Self> {
        Debounce::new(self, timer, quiet)
    }
}

impl<S: Stream> TimedStreamExt for S {}
