//! nexus-timer's wheel: no lock and no thread; one thread owns it and polls it.
//!
//! Each producer owns a wheel. Nothing polls it here, so it takes part only where nothing has to
//! run.

use super::{Job, Producer, Rival};
use crate::task::Task;
use nexus_timer::{TimerHandle, Wheel, WheelBuilder};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Timeouts in a chunk of its slab, as in its examples.
const CHUNK: usize = 4096;

pub struct NexusTimer {
    tick: Duration,
}

impl Rival for NexusTimer {
    const NAME: &'static str = "nexus-timer";
    const LACKS: &'static str = "belongs to one thread, which has to poll it; runs no task: gives \
                                 values back, here boxed closures";
    const DETACHES: bool = true;
    const HAS_TICK: bool = true;
    const IS_LOCAL: bool = true;
    type Producer<'a> = Owner;

    fn start(tick: Duration) -> Self {
        Self { tick }
    }

    fn producer(&self) -> Owner {
        let builder = WheelBuilder::new().tick_duration(self.tick).unbounded(CHUNK);
        Owner(builder.build(Instant::now()).expect("the defaults are valid"))
    }
}

pub struct Owner(Wheel<Job>);

impl Producer for Owner {
    /// The crate asserts that no handle is dropped; the timeout of a dropped one goes on.
    type Handle = ManuallyDrop<TimerHandle<Job>>;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle {
        let deadline = Instant::now() + delay;
        ManuallyDrop::new(self.0.schedule(deadline, Box::new(move || task.run())))
    }

    #[inline]
    fn cancel(&mut self, timeout: Self::Handle) {
        drop(self.0.cancel(ManuallyDrop::into_inner(timeout)));
    }

    #[inline]
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
