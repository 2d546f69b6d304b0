//! `Interval`: ticks at a period.

use super::sleep::Sleep;
use crate::time::tick::NEVER;
use crate::timeout::Period;
use crate::timer::HashedWheelTimer;
use crate::wheel::ZeroDurationError;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// A tick that is taken later than this is late, like in tokio. A tick of the timer is another bound, because
/// the wake-up itself can be up to a tick late.
const LEAST_SLACK: Duration = Duration::from_millis(5);

impl HashedWheelTimer {
    /// Ticks at a period: a [`Duration`], or a [`Period`] with further settings. The first tick is one
    /// period from now, unless the `Period` has another initial delay.
    ///
    /// [`MissedTickBehavior`](crate::MissedTickBehavior) decides how missed ticks are handled. A tick is
    /// missed if it is already due when the tick before it is taken. With `Delay`, a tick that is taken late, by
    /// more than 5 ms and more than a tick of the timer, also moves the following ones: the period then counts from the
    /// time at which the tick is taken. A fixed delay always counts from that time.
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
    /// use wheelwork::{HashedWheelTimer, MissedTickBehavior, Period};
    ///
    /// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// let every = Duration::from_millis(5);
    /// let at_once = Period::fixed_rate_with(every, MissedTickBehavior::Skip)
    ///     .initial_delay(Duration::ZERO);
    /// let mut ticks = timer.interval(at_once)?;
    /// let first = ticks.tick().await.expect("the timer runs");
    /// let second = ticks.tick().await.expect("the timer runs");
    /// assert!(second >= first + every);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn interval(&self, period: impl Into<Period>) -> Result<Interval, ZeroDurationError> {
        let period = period.into();
        let delay = period.initial_delay.unwrap_or(period.every);
        let time = &self.gate().time;
        self.interval_at(time.instant_at(time.poll_deadline_after(delay)), period)
    }

    /// Ticks like [`interval`](Self::interval). The first tick is at the instant `first`.
    ///
    /// # Errors
    ///
    /// If the period is zero.
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn interval_at(
        &self,
        first: Instant,
        period: impl Into<Period>,
    ) -> Result<Interval, ZeroDurationError> {
        let period = period.into();
        if period.every.is_zero() {
            return Err(ZeroDurationError);
        }
        Ok(Interval { sleep: self.sleep_until(first), period })
    }
}

/// Ticks at a period. Created by [`HashedWheelTimer::interval`] and
/// [`interval_at`](HashedWheelTimer::interval_at).
///
/// With the feature `stream`, it is a stream of its ticks.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let timer = wheelwork::HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let mut beat = timer.interval(Duration::from_millis(2))?;
/// for _ in 0..3 {
///     let due = beat.tick().await.expect("the timer runs");
///     assert!(due <= timer.now());
/// }
/// beat.reset_after(Duration::from_secs(60)); // a long pause
/// timer.stop_async().await?;
/// assert_eq!(beat.tick().await, None);
/// assert!(beat.was_stopped());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Interval {
    /// Until the next tick.
    sleep: Sleep,
    period: Period,
}

impl Interval {
    /// Waits for the next tick. Returns the instant at which the tick was due, or `None` if the timer
    /// is stopped. At most one tick follows a stop: one that is due when it is polled.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, no tick is lost.
    pub async fn tick(&mut self) -> Option<Instant> {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick, like [`tick`](Self::tick).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Poll};
    /// use wheelwork::future::Interval;
    ///
    /// /// A part of a future that also polls a socket. Returns true if it is time for a ping.
    /// fn is_ping_due(pings: &mut Interval, cx: &mut Context<'_>) -> bool {
    ///     matches!(pings.poll_tick(cx), Poll::Ready(Some(_)))
    /// }
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// # let mut pings = timer.interval(std::time::Duration::from_secs(60))?;
    /// # assert!(!is_ping_due(&mut pings, &mut Context::from_waker(std::task::Waker::noop())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        ready!(self.sleep.poll_ready(cx));
        if self.sleep.was_stopped() {
            return Poll::Ready(None);
        }
        let (gate, due) = (self.sleep.gate(), self.sleep.deadline());
        let slack = Duration::from_nanos(gate.scale.tick_nanos()).max(LEAST_SLACK);
        let next = self.period.next(due, gate.time.now_instant(), slack);
        // If the timer is stopped, there is no next tick, because the next poll may come after any deadline.
        let next = next.filter(|_| !gate.is_closed());
        self.sleep.reset_to(next.map_or(NEVER, |next| gate.time.nanos_at(next)));
        Poll::Ready(Some(due))
    }

    /// The instant of the next tick. Without a meaning once the timer is stopped.
    pub fn next_tick(&self) -> Instant {
        self.sleep.deadline()
    }

    /// The period, and how missed ticks are handled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// use wheelwork::{MissedTickBehavior, Period};
    ///
    /// let every_minute = Period::fixed_rate_with(Duration::from_secs(60), MissedTickBehavior::Skip);
    /// let ticks = timer.interval(every_minute)?;
    /// assert_eq!(ticks.period(), every_minute);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn period(&self) -> Period {
        self.period
    }

    /// Moves the next tick to now: it is ready at the next poll, and a task that waits is woken. The following ticks
    /// count from it.
    pub fn reset_immediately(&mut self) {
        self.sleep.reset_after(Duration::ZERO);
    }

    /// Moves the next tick to one period from now.
    pub fn reset(&mut self) {
        self.sleep.reset_after(self.period.every);
    }

    /// Moves the next tick to `delay` from now.
    pub fn reset_after(&mut self, delay: Duration) {
        self.sleep.reset_after(delay);
    }

    /// Moves the next tick to an instant.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let mut ticks = timer.interval(Duration::from_secs(60))?;
    /// let soon = timer.now() + Duration::from_secs(1);
    /// ticks.reset_at(soon);
    /// assert_eq!(ticks.next_tick(), soon);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset_at(&mut self, next: Instant) {
        self.sleep.reset(next);
    }

    /// Whether the timer was stopped before the next tick. The interval then has no further tick, unless
    /// a reset moves it to an instant that has passed.
    pub fn was_stopped(&self) -> bool {
        self.sleep.was_stopped()
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Interval {
    type Item = Instant;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Instant>> {
        self.poll_tick(cx)
    }
}
