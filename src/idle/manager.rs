//! `Manager`: the part of an idle manager that all of its shards share.

use super::event::{Answer, Idle};
use super::kind::IdleKind;
use super::policy::Scale;
use super::timestamp::Timestamp;
use super::verdict::CheckTime;
use crate::base::catch_panic;
use crate::base::sync::{AtomicU64, Ordering};
use crate::time::tick::{TickScale, instant_after};
use crate::timer::HashedWheelTimer;
use std::time::Instant;

/// Runs the callback for a batch. Returns the number of panics.
pub(super) type Deliver<T> = dyn Fn(&mut [Idle<T>]) -> u64 + Send + Sync;

/// The part of an idle manager that all of its shards share.
pub(super) struct Manager<T> {
    pub(super) timer: HashedWheelTimer,
    pub(super) origin: Instant,
    pub(super) ticks: TickScale,
    pub(super) deliver: Box<Deliver<T>>,
    /// Whether the checks and the callback run on the worker even if the timer has an executor.
    pub(super) on_worker: bool,
    /// The bits of the factor. Relaxed: a thread that lowers it takes the lock of each shard
    /// afterwards.
    scale: AtomicU64,
    /// The number of callback calls that panicked. Relaxed, like `reported`: no other data depends on it.
    pub(super) panicked: AtomicU64,
    /// The number of reports of each kind.
    pub(super) reported: [AtomicU64; IdleKind::EVERY.len()],
}

impl<T> Manager<T> {
    pub(super) fn new(timer: HashedWheelTimer, deliver: Box<Deliver<T>>, on_worker: bool) -> Self {
        Self {
            origin: timer.started_at(),
            ticks: timer.gate().scale,
            timer,
            deliver,
            on_worker,
            scale: AtomicU64::new(Scale::ONE.0.to_bits()),
            panicked: AtomicU64::new(0),
            reported: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    pub(super) fn scale(&self) -> Scale {
        Scale(f64::from_bits(self.scale.load(Ordering::Relaxed)))
    }

    /// Returns the previous scale.
    pub(super) fn set_scale(&self, scale: Scale) -> Scale {
        Scale(f64::from_bits(self.scale.swap(scale.0.to_bits(), Ordering::Relaxed)))
    }

    pub(super) fn count_reports(&self, batch: &[Idle<T>]) {
        let is_report = |idle: &&Idle<T>| !matches!(idle.answer, None | Some(Answer::Progressed));
        for idle in batch.iter().filter(is_report) {
            self.reported[idle.event().kind as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::new(self.origin, self.timer.now())
    }

    /// The current time for reports that must be made even if the timer's clock panics. In that case it
    /// is before all activity, so the reports show no silence.
    pub(super) fn now_contained(&self) -> u64 {
        catch_panic::contained(|| self.now().nanos()).unwrap_or(0)
    }

    pub(super) fn check_time_at(&self, instant: Instant) -> CheckTime {
        CheckTime { now: Timestamp::new(self.origin, instant).nanos(), scale: self.scale() }
    }

    /// The instant at which a tick begins. For a tick that never comes, it is far away.
    pub(super) fn start_of(&self, tick: u64) -> Instant {
        instant_after(self.origin, self.ticks.start_of(tick))
    }
}
