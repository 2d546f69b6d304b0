//! Until when a worker sleeps, which the check of the whole timer asks. No user's build has it.

use super::Alarm;
use crate::HashedWheelTimer;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// The end of the worker's sleep; 0 while it is awake. Not an atomic of shuttle, since no race depends on it.
#[derive(Debug, Default)]
pub(crate) struct Asleep(AtomicU64);

impl Asleep {
    /// The worker sleeps until this time, or until the drop of the guard.
    pub(crate) fn until(&self, time: u64) -> impl Drop + '_ {
        self.0.store(time, SeqCst);
        Awake(self)
    }
}

struct Awake<'a>(&'a Asleep);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, SeqCst);
    }
}

impl Alarm {
    /// `None` while the worker is awake. A worker that was woken, and has not run since, still counts as asleep, except
    /// under shuttle.
    fn asleep_until(&self) -> Option<u64> {
        #[cfg(shuttle)]
        if !self.parker.is_parked() {
            return None;
        }
        Some(self.asleep.0.load(SeqCst)).filter(|&until| until > 0)
    }
}

impl HashedWheelTimer {
    /// The time after the timer's start until which its worker sleeps.
    #[doc(hidden)]
    pub fn asleep_until(&self) -> Option<Duration> {
        self.shared().alarm.asleep_until().map(Duration::from_nanos)
    }
}
