//! The timeouts in each bucket of the wheel.
//!
//! A timer does not tell what its buckets hold. But its rule is known: a timeout is due in the first tick
//! that begins at or after its deadline, and tick n belongs to bucket n modulo the number of buckets. So
//! the program counts its own deadlines by that rule. It counts timeouts that are still queued, and no
//! dead entries.

use super::{BUCKETS, TICK};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, RescheduleError, Timeout};

pub(crate) struct Fill {
    started_at: Instant,
    buckets: Vec<AtomicU32>,
}

impl Fill {
    pub(super) fn new(timer: &HashedWheelTimer) -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU32::new(0)).collect();
        Self { started_at: timer.started_at(), buckets }
    }

    /// The number of timeouts in each bucket.
    pub(crate) fn counts(&self) -> Vec<u32> {
        self.buckets.iter().map(|count| count.load(Relaxed)).collect()
    }

    /// The bucket of the tick that has begun last.
    pub(crate) fn hand(&self, now: Instant) -> usize {
        let ticks = now.saturating_duration_since(self.started_at).as_nanos() / TICK.as_nanos();
        ticks as usize % BUCKETS
    }

    fn bucket(&self, deadline: Instant) -> &AtomicU32 {
        let nanos = deadline.saturating_duration_since(self.started_at).as_nanos();
        &self.buckets[nanos.div_ceil(TICK.as_nanos()) as usize % BUCKETS]
    }

    pub(super) fn enter(&self, deadline: Instant) {
        self.bucket(deadline).fetch_add(1, Relaxed);
    }

    pub(super) fn leave(&self, deadline: Instant) {
        self.bucket(deadline).fetch_sub(1, Relaxed);
    }
}

/// A timeout that is counted in its bucket. Dropping it leaves the timeout in the timer.
pub(super) struct Counted {
    timeout: Timeout,
    deadline: Instant,
}

/// Does nothing but leave its bucket.
struct Leave(Arc<Fill>);

impl TimerTask for Leave {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.leave(run.deadline());
        Next::done()
    }
}

impl Counted {
    /// Schedules a timeout, unless the timer is stopped.
    pub(super) fn schedule(
        timer: &HashedWheelTimer,
        fill: &Arc<Fill>,
        delay: Duration,
    ) -> Option<Self> {
        let deadline = timer.now() + delay;
        fill.enter(deadline);
        match timer.new_timeout_at(Leave(fill.clone()), deadline) {
            Ok(timeout) => Some(Self { timeout, deadline }),
            Err(_) => {
                fill.leave(deadline);
                None
            }
        }
    }

    pub(super) fn cancel(self, fill: &Fill) {
        if self.timeout.cancel() {
            fill.leave(self.deadline);
        }
    }

    /// Moves the deadline to `delay` from now. Fails if the timeout has ended.
    pub(super) fn push_back(
        &mut self,
        fill: &Fill,
        delay: Duration,
    ) -> Result<(), RescheduleError> {
        let deadline = self.timeout.now() + delay;
        fill.enter(deadline);
        let moved = self.timeout.reschedule_at(deadline);
        fill.leave(if moved.is_ok() { self.deadline } else { deadline });
        if moved.is_ok() {
            self.deadline = deadline;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_counts_in_the_bucket_of_the_tick_in_which_it_is_due() {
        let fill = Fill::new(&HashedWheelTimer::new().expect("a timer"));
        let start = fill.started_at;
        let nanosecond = Duration::from_nanos(1);
        for (deadline, bucket) in [
            (start, 0),
            (start + nanosecond, 1),
            (start + 5 * TICK, 5),
            (start + 5 * TICK + nanosecond, 6),
            (start + (BUCKETS as u32 + 7) * TICK, 7),
        ] {
            fill.enter(deadline);
            assert_eq!(fill.counts().iter().position(|&count| count > 0), Some(bucket));
            fill.leave(deadline);
        }
        assert_eq!(fill.hand(start + 5 * TICK + nanosecond), 5);
    }
}
