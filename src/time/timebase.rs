//! A timer's clock together with its origin, the instant that the timer counts nanoseconds from.

use super::clock::{Clock, Follower, Pace};
use super::jobs::Jobs;
use super::quick;
use super::tick::{DEADLINE_STEP, NEVER, instant_after, nanos};
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::Arc;
use std::time::{Duration, Instant};

/// A timer's clock and origin.
pub(crate) struct Timebase {
    /// `None` is the system clock, read without an indirect call.
    clock: Option<Arc<dyn Clock>>,
    origin: Instant,
    /// The origin in the quick clock's nanoseconds.
    quick_origin: u64,
    /// The jobs of the timer's executor. They are counted only if the clock may stand still.
    jobs: Jobs,
}

impl Timebase {
    pub(crate) fn starting_now(clock: Option<Arc<dyn Clock>>) -> Self {
        let earliest = quick::start();
        let origin = read(&clock);
        debug_assert!(clock.is_some() || earliest <= origin);
        let quick_origin = quick::nanos_at(origin);
        Self { clock, origin, quick_origin, jobs: Jobs::new() }
    }

    pub(crate) fn attach(&self, follower: Follower) -> Pace {
        self.clock.as_ref().map_or(Pace::RealTime, |clock| clock.attach(follower))
    }

    pub(crate) fn now_instant(&self) -> Instant {
        read(&self.clock)
    }

    /// The current time for the worker, which never reaches the end of time: `Duration::MAX` means never. `None` if the
    /// clock panics.
    #[inline]
    pub(crate) fn now_contained(&self) -> Option<u64> {
        let now = match &self.clock {
            None => Instant::now(),
            Some(clock) => catch_panic::contained(|| clock.now())?,
        };
        Some(self.nanos_at(now).min(NEVER - DEADLINE_STEP))
    }

    /// The current time for threads that schedule. It is never behind that of the worker, and at most
    /// about 10 µs ahead of it.
    #[inline]
    pub(crate) fn now_or_later(&self) -> u64 {
        match &self.clock {
            None => quick::now().saturating_sub(self.quick_origin),
            Some(clock) => self.nanos_at(clock.now()),
        }
    }

    /// The deadline `delay` from now, for threads that schedule.
    #[inline]
    pub(crate) fn deadline_after(&self, delay: Duration) -> u64 {
        self.now_or_later().saturating_add(nanos(delay))
    }

    /// The deadline of a future `delay` from now. A delay of zero means the exact current time, so that the future is
    /// ready at its first poll. The time that `deadline_after` takes for now may be ahead of the clock, and the future
    /// would wait for a tick.
    #[inline]
    pub(crate) fn poll_deadline_after(&self, delay: Duration) -> u64 {
        if delay.is_zero() { self.nanos_at(self.now_instant()) } else { self.deadline_after(delay) }
    }

    /// The time until `deadline`; zero if it has passed.
    pub(crate) fn left_until(&self, deadline: u64) -> Duration {
        self.instant_at(deadline).saturating_duration_since(self.now_instant())
    }

    /// Whether the clock has reached `deadline`. Reads the system clock only if the quick clock, which is
    /// never behind it, has reached `deadline`.
    #[inline(always)] // ten instructions of a polled sleep, wherever its callers are compiled
    pub(crate) fn has_reached(&self, deadline: u64) -> bool {
        match &self.clock {
            None => self.now_or_later() >= deadline && self.nanos_at(Instant::now()) >= deadline,
            Some(clock) => self.nanos_at(clock.now()) >= deadline,
        }
    }

    /// Like `has_reached`, but a clock that panics may have reached `deadline`.
    pub(crate) fn may_have_reached(&self, deadline: u64) -> bool {
        catch_panic::contained(|| self.has_reached(deadline)).unwrap_or(true)
    }

    /// Whether the clock may stand still.
    #[inline]
    pub(crate) fn may_stand_still(&self) -> bool {
        self.clock.is_some()
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Counts a job that the worker hands to the executor.
    #[inline]
    pub(crate) fn job_begins(&self) {
        if self.may_stand_still() {
            self.jobs.begin();
        }
    }

    /// Counts the end of a job: it has run, or was dropped.
    #[inline]
    pub(crate) fn job_ends(&self) {
        if self.may_stand_still() {
            self.jobs.end();
        }
    }

    /// Nanoseconds from the origin to `instant`; 0 if `instant` is earlier.
    #[inline]
    pub(crate) fn nanos_at(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.origin))
    }

    pub(crate) fn instant_at(&self, nanos: u64) -> Instant {
        instant_after(self.origin, nanos)
    }
}

/// Any thread may hold the last reference to a clock, the worker and a pool thread included. So a
/// panic in its drop is caught here.
impl Drop for Timebase {
    fn drop(&mut self) {
        let clock = self.clock.take();
        if clock.is_some() && catch_panic::panics(|| drop(clock)) {
            warning!("the clock panicked when it was dropped");
        }
    }
}

#[inline]
fn read(clock: &Option<Arc<dyn Clock>>) -> Instant {
    match clock {
        None => Instant::now(),
        Some(clock) => clock.now(),
    }
}
