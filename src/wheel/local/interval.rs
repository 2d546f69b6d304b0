//! `LocalInterval`: ticks at a period.

use super::sleep::LocalSleep;
use crate::time::tick::next_beat;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// Ticks at a period. Created by [`LocalTimer::interval`](super::LocalTimer::interval).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::wheel::{LocalInterval, LocalTimer};
///
/// async fn beat(mut ticks: LocalInterval) {
///     loop {
///         let due = ticks.tick().await;
///         println!("a beat, due at {due:?}");
///     }
/// }
/// # let timer = LocalTimer::new();
/// # drop(beat(timer.interval(Duration::from_secs(1))?));
/// # Ok::<(), wheelwork::wheel::ZeroDurationError>(())
/// ```
#[derive(Debug)]
pub struct LocalInterval {
    /// Until the next tick.
    pub(super) sleep: LocalSleep,
    pub(super) period: Duration,
}

impl LocalInterval {
    /// Waits for the next tick. Returns the instant at which it was due.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, no tick is lost.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick, like [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.poll_ready(cx));
        let (due, now) = (self.sleep.deadline(), self.sleep.timer().now());
        match next_beat(due, now, self.period) {
            Some(next) => self.sleep.reset(next),
            None => self.sleep.reset_after(Duration::MAX),
        }
        Poll::Ready(due)
    }

    /// The instant of the next tick.
    pub fn next_tick(&self) -> Instant {
        self.sleep.deadline()
    }

    /// The period.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Moves the next tick to one period from now.
    pub fn reset(&mut self) {
        self.sleep.reset_after(self.period);
    }
}
