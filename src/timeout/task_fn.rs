//! `task_fn`: a closure that sees its run.

use super::next::Next;
use super::run::Run;
use super::task::{Kind, TaskOutput, TimerTask};
use std::fmt;

/// Makes a task of a closure that takes its [`Run`]: the timeout that expires, its deadline, and the time.
///
/// A closure without an argument is a task itself. A task that runs again, or that is told of its cancel,
/// is a type of your own that implements [`TimerTask`]: this closure returns nothing, also no [`Next`].
///
/// Write the closure in the call. If it was bound to a variable before, the compiler needs its type:
/// `let task = |run: &Run<'_>| ..`.
///
/// # Examples
///
/// The entry of a map ends with its timeout, unless another timeout has replaced it meanwhile:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, ManualClock, Timeout, task_fn};
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let ends = Arc::new(Mutex::new(HashMap::<&str, Timeout>::new()));
///
/// let all = ends.clone();
/// let end = task_fn(move |run| {
///     let mut ends = all.lock().unwrap();
///     if ends.get("anna") == Some(&run.timeout()) {
///         ends.remove("anna");
///     }
/// });
/// let timeout = timer.new_timeout(end, Duration::from_secs(30))?;
/// ends.lock().unwrap().insert("anna", timeout);
///
/// clock.advance_through(Duration::from_secs(30));
/// assert!(ends.lock().unwrap().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn task_fn<F, R>(task: F) -> TaskFn<F>
where
    F: FnOnce(&Run<'_>) -> R + Send + 'static,
    R: TaskOutput,
{
    TaskFn(task)
}

/// A closure that sees its run, as a task. Created by [`task_fn`].
///
/// # Examples
///
/// A stop returns the closure:
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, Run, TaskFn, task_fn};
///
/// fn report(run: &Run<'_>) {
///     println!("late by {:?}", run.now() - run.deadline());
/// }
///
/// let timer = HashedWheelTimer::new()?;
/// timer.new_timeout(task_fn(report as fn(&Run<'_>)), Duration::from_secs(30))?;
/// for unprocessed in timer.stop()? {
///     let task = unprocessed.downcast::<TaskFn<fn(&Run<'_>)>>().expect("the only task");
///     let _again: fn(&Run<'_>) = task.into_inner();
/// }
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct TaskFn<F>(F);

impl<F> TaskFn<F> {
    /// The closure.
    pub fn into_inner(self) -> F {
        self.0
    }
}

impl<F, R> TimerTask for TaskFn<F>
where
    F: FnOnce(&Run<'_>) -> R + Send + 'static,
    R: TaskOutput,
{
    #[inline]
    fn run(self, run: &Run<'_>) -> Next<Self> {
        let _unit = (self.0)(run);
        Next::done()
    }

    const KIND: Kind = Kind::ONCE;
}

impl<F> fmt::Debug for TaskFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskFn").finish_non_exhaustive()
    }
}
