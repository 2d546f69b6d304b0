//! The futures of the process's timer.

use super::interval::Interval;
use super::sleep::Sleep;
use super::timeout::FutureTimeout;
use crate::timeout::Period;
use crate::timer::global::global;
use crate::wheel::ZeroDurationError;
use std::time::{Duration, Instant};

/// A future that is ready `delay` from now, on the [global](crate::global) timer. See
/// [`HashedWheelTimer::sleep`](crate::HashedWheelTimer::sleep).
///
/// # Panics
///
/// At the first use, if the timer's thread does not start. So does every function here.
///
/// # Examples
///
/// ```
/// # use std::time::{Duration, Instant};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use wheelwork::future::sleep;
///
/// let begin = Instant::now();
/// sleep(Duration::from_millis(5)).await; // no runtime's timer, and no handle
/// assert!(begin.elapsed() >= Duration::from_millis(5));
/// # }
/// ```
#[doc(alias("delay_for"))]
#[cfg_attr(feature = "tracing", track_caller)]
pub fn sleep(delay: Duration) -> Sleep {
    global().sleep(delay)
}

/// A future that is ready at an instant, on the [global](crate::global) timer. See
/// [`HashedWheelTimer::sleep_until`](crate::HashedWheelTimer::sleep_until).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use wheelwork::future::sleep_until;
///
/// let due = wheelwork::global().now() + Duration::from_millis(5);
/// sleep_until(due).await;
/// assert!(wheelwork::global().now() >= due);
/// # }
/// ```
#[cfg_attr(feature = "tracing", track_caller)]
pub fn sleep_until(deadline: Instant) -> Sleep {
    global().sleep_until(deadline)
}

/// Limits a future, on the [global](crate::global) timer. See
/// [`HashedWheelTimer::timeout`](crate::HashedWheelTimer::timeout).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use wheelwork::future::{TimeoutError, timeout};
///
/// let never = std::future::pending::<()>();
/// assert_eq!(timeout(Duration::from_millis(5), never).await, Err(TimeoutError::Elapsed));
/// # }
/// ```
#[cfg_attr(feature = "tracing", track_caller)]
pub fn timeout<F: IntoFuture>(limit: Duration, future: F) -> FutureTimeout<F::IntoFuture> {
    global().timeout(limit, future)
}

/// Limits a future until an instant, on the [global](crate::global) timer. See
/// [`HashedWheelTimer::timeout_at`](crate::HashedWheelTimer::timeout_at).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use wheelwork::future::timeout_at;
///
/// let deadline = wheelwork::global().now() + Duration::from_secs(5);
/// assert_eq!(timeout_at(deadline, async { 42 }).await, Ok(42));
/// # }
/// ```
#[cfg_attr(feature = "tracing", track_caller)]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> FutureTimeout<F::IntoFuture> {
    global().timeout_at(deadline, future)
}

/// Ticks at a period, on the [global](crate::global) timer. See
/// [`HashedWheelTimer::interval`](crate::HashedWheelTimer::interval).
///
/// # Errors
///
/// If the period is zero.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use wheelwork::future::interval;
///
/// let mut beat = interval(Duration::from_millis(5))?;
/// beat.tick().await;
/// # Ok(())
/// # }
/// ```
#[cfg_attr(feature = "tracing", track_caller)]
pub fn interval(period: impl Into<Period>) -> Result<Interval, ZeroDurationError> {
    global().interval(period)
}
