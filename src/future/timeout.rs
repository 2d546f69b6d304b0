//! `FutureTimeout`: a future with a limit.

use super::sleep::Sleep;
use crate::timer::HashedWheelTimer;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

impl HashedWheelTimer {
    /// Limits a future: returns its output if it completes within `limit` from now, and an error if not.
    /// Each poll polls the future before it checks the limit.
    ///
    /// # Cancellation
    ///
    /// A drop of the returned future, also after the limit, drops the limited one. To go on with that, limit a reference
    /// to it, such as `&mut future` of a pinned one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), wheelwork::BuildError> {
    /// use wheelwork::future::TimeoutError;
    ///
    /// let timer = wheelwork::HashedWheelTimer::builder()
    ///     .tick_duration(Duration::from_millis(1))
    ///     .build()?;
    /// let limit = Duration::from_millis(5);
    /// assert_eq!(timer.timeout(limit, async { 7 }).await, Ok(7));
    /// let never = std::future::pending::<()>();
    /// assert_eq!(timer.timeout(limit, never).await, Err(TimeoutError::Elapsed));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn timeout<F: IntoFuture>(
        &self,
        limit: Duration,
        future: F,
    ) -> FutureTimeout<F::IntoFuture> {
        FutureTimeout { future: future.into_future(), limit: self.sleep(limit) }
    }

    /// Limits a future like [`timeout`](Self::timeout), but until an instant.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// # async fn look_up() -> u32 { 3 }
    /// # async fn ask(_: u32) -> u32 { 4 }
    /// let deadline = timer.now() + Duration::from_secs(5); // for both steps together
    /// let server = timer.timeout_at(deadline, look_up()).await?;
    /// let answer = timer.timeout_at(deadline, ask(server)).await?;
    /// # assert_eq!(answer, 4);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn timeout_at<F: IntoFuture>(
        &self,
        deadline: Instant,
        future: F,
    ) -> FutureTimeout<F::IntoFuture> {
        FutureTimeout { future: future.into_future(), limit: self.sleep_until(deadline) }
    }
}

/// The methods of [`HashedWheelTimer::timeout`] on the future itself. Their names differ from those of tokio-util's
/// `FutureExt`, so both traits can be imported.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), wheelwork::BuildError> {
/// use wheelwork::future::TimedFutureExt;
///
/// let timer = wheelwork::HashedWheelTimer::new()?;
/// let answer = async { 42 }.timeout_on(&timer, Duration::from_secs(1)).await;
/// assert_eq!(answer, Ok(42));
/// # Ok(())
/// # }
/// ```
pub trait TimedFutureExt: Future + Sized {
    /// Limits this future; see [`HashedWheelTimer::timeout`].
    #[cfg_attr(feature = "tracing", track_caller)]
    fn timeout_on(self, timer: &HashedWheelTimer, limit: Duration) -> FutureTimeout<Self> {
        timer.timeout(limit, self)
    }

    /// Limits this future until an instant; see [`HashedWheelTimer::timeout_at`].
    #[cfg_attr(feature = "tracing", track_caller)]
    fn timeout_at_on(self, timer: &HashedWheelTimer, deadline: Instant) -> FutureTimeout<Self> {
        timer.timeout_at(deadline, self)
    }
}

impl<F: Future> TimedFutureExt for F {}

/// Why a future with a limit has no output.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use wheelwork::future::TimeoutError;
///
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// let answer = timer.timeout(Duration::from_secs(5), std::future::pending::<u32>());
/// timer.stop_async().await?;
/// match answer.await {
///     Ok(answer) => println!("{answer}"),
///     Err(TimeoutError::Elapsed) => println!("too late"),
///     Err(error) => assert!(error.was_stopped()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The deadline has passed.
    #[error("the deadline has elapsed")]
    Elapsed,
    /// The timer was stopped before the deadline.
    #[error("the timer is stopped")]
    Stopped,
}

impl TimeoutError {
    /// The error of a limit that has ended.
    pub(super) fn of(sleep: &Sleep) -> Self {
        if sleep.was_stopped() { Self::Stopped } else { Self::Elapsed }
    }

    /// Whether the timer was stopped before the deadline.
    pub fn was_stopped(&self) -> bool {
        *self == Self::Stopped
    }
}

pin_project! {
    /// A future with a limit. Created by [`HashedWheelTimer::timeout`] and
    /// [`timeout_at`](HashedWheelTimer::timeout_at).
    ///
    /// It puts nothing into the timer until its future is pending for the first time. It drops the future
    /// when it is dropped itself, not at the deadline.
    ///
    /// # Examples
    ///
    /// A program that stores the limited future names its type:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::future::{Ready, ready};
    /// use wheelwork::{HashedWheelTimer, future::FutureTimeout};
    ///
    /// struct Request {
    ///     reply: FutureTimeout<Ready<u32>>,
    /// }
    ///
    /// let timer = HashedWheelTimer::new()?;
    /// let request = Request { reply: timer.timeout(Duration::from_secs(2), ready(7)) };
    /// assert_eq!(request.reply.await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "a future does nothing until it is polled"]
    pub struct FutureTimeout<F> {
        #[pin]
        future: F,
        limit: Sleep,
    }
}

impl<F> FutureTimeout<F> {
    /// The instant until which the future may complete.
    pub fn deadline(&self) -> Instant {
        self.limit.deadline()
    }

    /// The future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().future
    }

    /// Returns the future without its limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for FutureTimeout<F> {
    type Output = Result<F::Output, TimeoutError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        ready!(this.limit.poll_ready(cx));
        Poll::Ready(Err(TimeoutError::of(this.limit)))
    }
}
