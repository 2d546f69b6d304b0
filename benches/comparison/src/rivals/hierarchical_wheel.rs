//! hierarchical_hash_wheel_timer's thread, told through its channel.
//!
//! Timeouts are named by the caller: here by a number, which costs less than the crate's usual
//! random identifier.

use super::{Facts, PLAIN, Rival};
use crate::task::Task;
use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{OneShotClosureState, PeriodicClosureState, Timer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Once = OneShotClosureState<u64>;
type Again = PeriodicClosureState<u64>;

pub struct Sender {
    timer: TimerRef<u64, Once, Again>,
    next_id: u64,
}

impl Rival for Sender {
    const FACTS: Facts = Facts {
        name: "hierarchical_hash_wheel_timer",
        lacks: "schedule and cancel only send a message, in a queue without a bound, and do not \
                say whether they were in time; spins before what is due; delays cut to whole \
                milliseconds; no reschedule",
        cancels_ended: true,
        ..PLAIN
    };
    /// With the number of its senders so far.
    type Timer = (TimerWithThread<u64, Once, Again>, AtomicU64);
    type Handle = u64;

    fn start(_tick: Duration) -> Self::Timer {
        (TimerWithThread::new().expect("a thread can be started"), AtomicU64::new(0))
    }

    fn of((timer, senders): &'static Self::Timer) -> Self {
        let number = senders.fetch_add(1, Ordering::Relaxed);
        Self { timer: timer.timer_ref(), next_id: number << 40 }
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.timer.schedule_once(delay, Once::new(id, move |_id| task.run()));
        id
    }

    fn cancel(&mut self, id: u64) {
        self.timer.cancel(&id);
    }

    fn cancel_ended(&mut self, id: &u64) {
        self.timer.cancel(id);
    }
}
