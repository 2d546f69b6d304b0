//! hierarchical_hash_wheel_timer's thread, told through its channel.
//!
//! Timeouts are named by the caller: here by a number, which costs less than the crate's usual
//! random identifier.

use super::{Producer, Rival};
use crate::task::Task;
use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{OneShotClosureState, PeriodicClosureState, Timer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Once = OneShotClosureState<u64>;
type Again = PeriodicClosureState<u64>;

pub struct HierarchicalWheel {
    timer: TimerWithThread<u64, Once, Again>,
    producers: AtomicU64,
}

impl Rival for HierarchicalWheel {
    const NAME: &'static str = "hierarchical_hash_wheel_timer";
    const LACKS: &'static str = "schedule and cancel only send a message, in a queue without a \
                                 bound, and do not say whether they were in time; spins before \
                                 what is due; delays cut to whole milliseconds; no reschedule";
    const DETACHES: bool = true;
    const CANCELS_ENDED: bool = true;
    type Producer<'a> = Sender;

    fn start(_tick: Duration) -> Self {
        let timer = TimerWithThread::new().expect("a thread can be started");
        Self { timer, producers: AtomicU64::new(0) }
    }

    fn producer(&self) -> Sender {
        let number = self.producers.fetch_add(1, Ordering::Relaxed);
        Sender { timer: self.timer.timer_ref(), next_id: number << 40 }
    }
}

pub struct Sender {
    timer: TimerRef<u64, Once, Again>,
    next_id: u64,
}

impl Producer for Sender {
    type Handle = u64;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.timer.schedule_once(delay, Once::new(id, move |_id| task.run()));
        id
    }

    #[inline]
    fn cancel(&mut self, id: u64) {
        self.timer.cancel(&id);
    }

    #[inline]
    fn cancel_ended(&mut self, id: &u64) {
        self.timer.cancel(id);
    }
}
