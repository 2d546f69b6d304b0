//! What every handle of one timer shares with its worker.

use crate::alarm::Alarm;
use crate::clock::Timebase;
use crate::inbox::Ask;
use crate::metrics::WorkerMetrics;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::tick::TickScale;

pub(crate) struct Shared {
    pub(crate) time: Timebase,
    pub(crate) scale: TickScale,
    pub(crate) alarm: Alarm,
    pub(crate) metrics: WorkerMetrics,
    pub(crate) quota: Option<Quota>,
    /// A shard has something urgent. Stored with release after that, under no lock; the worker
    /// loads it with acquire and then takes every shard's lock.
    urgent: AtomicBool,
}

impl Shared {
    pub(crate) fn new(time: Timebase, scale: TickScale, limit: Option<usize>) -> Self {
        Self {
            time,
            scale,
            alarm: Alarm::new(),
            metrics: WorkerMetrics::new(),
            quota: limit.map(Quota::new),
            urgent: AtomicBool::new(false),
        }
    }

    /// Passes on what an operation on a timeout with this deadline asks of the worker.
    #[inline]
    pub(crate) fn answer(&self, ask: Ask, deadline: u64) {
        match ask {
            Ask::Nothing => {}
            Ask::Deadline => self.alarm.submitted(deadline),
            Ask::Attention => {
                self.alarm.submitted(deadline);
                self.alarm.call();
            }
        }
    }

    /// As `answer`, for a timeout that has armed itself again.
    pub(crate) fn answer_rearm(&self, ask: Ask, deadline: u64, urgent: bool) {
        if !urgent {
            return self.answer(ask, deadline);
        }
        self.urgent.store(true, Ordering::Release);
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// Whether a shard may have something urgent; for the worker, which then looks.
    #[inline]
    pub(crate) fn take_urgent(&self) -> bool {
        self.is_urgent() && self.urgent.swap(false, Ordering::AcqRel)
    }

    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Acquire)
    }

    /// A timeout that was admitted before is pending again.
    pub(crate) fn begins_again(&self) {
        if let Some(quota) = &self.quota {
            quota.acquire_again();
        }
    }

    /// `count` timeouts are not pending any more.
    #[inline]
    pub(crate) fn ended(&self, count: usize) {
        if let Some(quota) = &self.quota {
            quota.release(count);
        }
    }
}

/// The limit of pending timeouts: one exact counter, which all threads share. It costs a contended
/// cache line, so a timer without a limit has none.
#[repr(align(128))]
pub(crate) struct Quota {
    limit: usize,
    taken: AtomicUsize,
}

impl Quota {
    fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0) }
    }

    /// Relaxed, here and below: the counter guards nothing but itself.
    pub(crate) fn acquire(&self) -> Result<(), usize> {
        let more = |taken| Some(taken + 1).filter(|&n| n <= self.limit);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| self.limit)
    }

    /// For a timeout that was admitted before and is armed again: always granted.
    fn acquire_again(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self, count: usize) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
    }
}
