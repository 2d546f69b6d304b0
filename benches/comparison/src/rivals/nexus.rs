//! nexus-timer's wheel: no lock and no thread; one thread owns it and polls it.
//!
//! Each thread owns a wheel. Nothing polls it here, so it takes part only where nothing has to run.

use super::{Facts, Job, PLAIN, Rival};
use crate::task::Task;
use nexus_timer::{TimerHandle, Wheel, WheelBuilder};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Timeouts in a chunk of its slab, as in its examples.
const CHUNK: usize = 4096;

pub struct Owner(Wheel<Job>);

impl Rival for Owner {
    const FACTS: Facts = Facts {
        name: "nexus-timer",
        lacks: "belongs to one thread, which has to poll it; runs no task: gives values back, here \
                boxed closures",
        has_tick: true,
        is_local: true,
        ..PLAIN
    };
    /// The tick.
    type Timer = Duration;
    /// The crate asserts that no handle is dropped; the timeout of a dropped one goes on.
    type Handle = ManuallyDrop<TimerHandle<Job>>;

    fn start(tick: Duration) -> Duration {
        tick
    }

    fn of(tick: &'static Duration) -> Self {
        let builder = WheelBuilder::new().tick_duration(*tick).unbounded(CHUNK);
        Self(builder.build(Instant::now()).expect("the defaults are valid"))
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle {
        let deadline = Instant::now() + delay;
        ManuallyDrop::new(self.0.schedule(deadline, Box::new(move || task.run())))
    }

    fn cancel(&mut self, timeout: Self::Handle) {
        drop(self.0.cancel(ManuallyDrop::into_inner(timeout)));
    }

    fn reschedule<T: Task>(
        &mut self,
        timeout: Self::Handle,
        _task: T,
        delay: Duration,
    ) -> Self::Handle {
        let timeout = ManuallyDrop::into_inner(timeout);
        ManuallyDrop::new(self.0.reschedule(timeout, Instant::now() + delay))
    }
}
