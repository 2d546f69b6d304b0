//! The timers under comparison, each behind the same few functions.
//!
//! A process measures one rival once and exits, so none of them is ever shut down. The feature
//! `rivals` adds those that bring dependencies of their own.
//!
//! | file | what |
//! |---|---|
//! | `facts.rs`, `rivals.csv` | what is known of each without running it |
//! | `wheelwork.rs` | this project's timer |
//! | `sleeps.rs` | futures that sleep, as timeouts and in tasks |
//! | `others.rs`, `delay_queue.rs` | timers of other crates |
//! | `textbook.rs`, `ordered.rs` | what one would write oneself |

#[cfg(feature = "rivals")]
pub mod delay_queue;
mod facts;
#[cfg(feature = "rivals")]
pub mod ordered;
#[cfg(feature = "rivals")]
pub mod others;
pub mod sleeps;
#[cfg(feature = "rivals")]
pub mod textbook;
pub mod wheelwork;

pub use facts::*;
pub use sleeps::Sleep;

use crate::task::Task;
use std::time::Duration;

/// A boxed task. Boxing one without captures allocates nothing.
#[cfg(feature = "rivals")]
type Job = Box<dyn FnOnce() + Send>;

/// A timer that has started, for each thread that calls this.
pub type Timer<R> = &'static (dyn Fn() -> R + Sync);

/// Never taken down: that takes long for some, and the process ends anyway.
fn forever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// What one thread does with a timer.
pub trait Rival: Sized + 'static {
    type Handle: 'static;

    /// Starts the timer and all threads that it needs.
    fn start(tick: Duration) -> Timer<Self>;

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle;

    fn cancel(&mut self, handle: Self::Handle);

    /// Cancels a timeout that has run. Called only if the rival has [`Trait::CancelsEnded`].
    fn cancel_ended(&mut self, _handle: &Self::Handle) {
        unreachable!("the plan leaves it out");
    }

    /// Schedules and cancels at once. Some rivals need no allocation for that.
    fn schedule_and_cancel<T: Task>(&mut self, task: T, delay: Duration) {
        let handle = self.schedule(task, delay);
        self.cancel(handle);
    }

    /// Moves the deadline: by a cancel and a new timeout, unless a rival can do better.
    fn reschedule<T: Task>(
        &mut self,
        handle: Self::Handle,
        task: T,
        delay: Duration,
    ) -> Self::Handle {
        self.cancel(handle);
        self.schedule(task, delay)
    }
}
