//! One timeout of the timer for each connection.

use crate::Touch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wheelwork::{CancelOnDrop, HashedWheelTimer, Next, RefusalReason, Run, TimerTask};

/// What the manager keeps for each connection, with the timeout in place of a seat.
struct Pulse {
    started: Instant,
    idle: Duration,
    read: AtomicU64,
    _wrote: AtomicU64,
    _connection: u64,
}

struct Look(Arc<Pulse>);

impl TimerTask for Look {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        let last = Duration::from_nanos(self.0.read.load(Ordering::Relaxed));
        let due = self.0.started + last + self.0.idle;
        if due > run.now() { Next::at(self, due) } else { Next::done() }
    }
}

pub(crate) struct Single {
    pulse: Arc<Pulse>,
    _timeout: CancelOnDrop,
}

pub(crate) fn watch(timer: &HashedWheelTimer, idle: Duration) -> Result<Single, RefusalReason> {
    let pulse = Arc::new(Pulse {
        started: Instant::now(),
        idle,
        read: AtomicU64::new(0),
        _wrote: AtomicU64::new(0),
        _connection: 0,
    });
    let look = Look(pulse.clone());
    let timeout = timer.new_timeout(look, idle)?;
    Ok(Single { pulse, _timeout: timeout.cancel_on_drop() })
}

impl Touch for Single {
    fn touch_at(&self, now: Instant) {
        let since = now.saturating_duration_since(self.pulse.started);
        self.pulse.read.store(since.as_nanos() as u64, Ordering::Relaxed);
    }
}
