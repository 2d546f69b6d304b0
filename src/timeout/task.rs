//! A task, and how it is held until it runs.
//!
//! A task runs by value, but waits behind a pointer of one type for all. Between the two stands what
//! holds it: `Held` takes the task out of its box for a run and puts it back if the timeout goes on,
//! so that costs no allocation; `Moved`, for closures, which run once, is no larger than the task.

use super::handle::{BoxedTask, ErasedTask, Run, Timeout};
use super::next::Next;
use std::any::Any;
use std::fmt;

/// What a timeout does when it expires. Every `FnOnce() + Send + 'static` closure is one.
///
/// Implement it for a type of your own to see the [`Run`], to be told of a cancel, or to have the
/// timeout go on ([`Next`]).
///
/// # Examples
///
/// ```
/// use wheelwork::{HashedWheelTimer, Next, Run, Timeout, TimerTask};
/// use std::{sync::mpsc, time::Duration};
///
/// struct Close(mpsc::Sender<&'static str>);
///
/// impl TimerTask for Close {
///     fn run(self, _run: &Run<'_>) -> Next<Self> {
///         let _ = self.0.send("closed");
///         Next::done()
///     }
///     fn cancelled(self, _timeout: &Timeout) {
///         let _ = self.0.send("kept open");
///     }
/// }
///
/// let (sender, events) = mpsc::channel();
/// let timer = HashedWheelTimer::new()?;
/// let timeout = timer.new_timeout(Close(sender), Duration::from_secs(30))?;
/// assert!(timeout.cancel());
/// assert_eq!(events.recv()?, "kept open");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TimerTask: Sized + Send + 'static {
    /// Called at or after the deadline, by the executor. The answer says whether the timeout goes on.
    /// A panic is caught and counted, and ends the timeout.
    fn run(self, run: &Run<'_>) -> Next<Self>;

    /// Called instead of `run` if the timeout is cancelled: on the thread that cancels it, before
    /// `cancel` returns. A panic is caught and counted.
    fn cancelled(self, timeout: &Timeout) {
        let _ = timeout;
    }

    /// Whether `run` never asks for another run.
    #[doc(hidden)]
    const RUNS_ONCE: bool = false;
}

impl<F: FnOnce() + Send + 'static> TimerTask for F {
    #[inline]
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self();
        Next::done()
    }

    const RUNS_ONCE: bool = true;
}

/// A task of a type that is no longer known: what [`stop`](crate::HashedWheelTimer::stop) gives back.
/// It can be scheduled in another timer.
pub struct Task(pub(super) BoxedTask);

impl Task {
    /// The task itself, if it is of type `T`: to look at it, or to keep it beyond the program's end.
    ///
    /// # Errors
    ///
    /// The same task, if it is of another type.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, Next, Run, TimerTask};
    /// struct Remind { user: u64 }
    ///
    /// impl TimerTask for Remind {
    ///     fn run(self, _run: &Run<'_>) -> Next<Self> {
    ///         Next::done()
    ///     }
    /// }
    ///
    /// let timer = HashedWheelTimer::new()?;
    /// timer.new_timeout(Remind { user: 7 }, Duration::from_secs(3600))?;
    /// for unprocessed in timer.stop()? {
    ///     let due = unprocessed.deadline();
    ///     if let Ok(Remind { user }) = unprocessed.into_task().downcast() {
    ///         println!("user {user} is still to be reminded at {due:?}");
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn downcast<T: TimerTask>(self) -> Result<T, Task> {
        let mut task: Option<T> = None;
        self.0.give(&mut task).map_err(Task)?;
        Ok(task.expect("given"))
    }
}

impl TimerTask for Task {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.run(run).map(Task)
    }

    fn cancelled(self, timeout: &Timeout) {
        self.0.cancelled(timeout);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

/// How a task is boxed.
pub(crate) trait Hold<T>: ErasedTask + Sized + 'static {
    fn hold(task: T) -> Self;
    /// The task, which has not run.
    fn release(self) -> T;
}

/// Gives a held task to whoever knows its type.
fn give<T: 'static, H: Hold<T>>(held: Box<H>, into: &mut dyn Any) -> Result<(), BoxedTask> {
    match into.downcast_mut::<Option<T>>() {
        Some(into) => {
            *into = Some(held.release());
            Ok(())
        }
        None => Err(held),
    }
}

/// A task that may run again in the same box. Empty only during a run.
pub(crate) struct Held<T>(Option<T>);

impl<T: TimerTask> Hold<T> for Held<T> {
    fn hold(task: T) -> Self {
        Self(Some(task))
    }

    fn release(self) -> T {
        self.0.expect("empty only during a run")
    }
}

impl<T: TimerTask> ErasedTask for Held<T> {
    fn run(mut self: Box<Self>, run: &Run<'_>) -> Next<BoxedTask> {
        let Some(task) = self.0.take() else { return Next::done() };
        task.run(run).map(|task| {
            self.0 = Some(task);
            self as BoxedTask
        })
    }

    fn cancelled(mut self: Box<Self>, timeout: &Timeout) {
        if let Some(task) = self.0.take() {
            task.cancelled(timeout);
        }
    }

    fn give(self: Box<Self>, into: &mut dyn Any) -> Result<(), BoxedTask> {
        give(self, into)
    }
}

/// A task that leaves its box when it runs: one that runs once, or has no size, which needs no
/// allocation anyway.
pub(crate) struct Moved<T>(T);

impl<T: TimerTask> Hold<T> for Moved<T> {
    #[inline]
    fn hold(task: T) -> Self {
        Self(task)
    }

    fn release(self) -> T {
        self.0
    }
}

impl<T: TimerTask> ErasedTask for Moved<T> {
    #[inline]
    fn run(self: Box<Self>, run: &Run<'_>) -> Next<BoxedTask> {
        self.0.run(run).map(|task| Box::new(Self(task)) as BoxedTask)
    }

    fn cancelled(self: Box<Self>, timeout: &Timeout) {
        self.0.cancelled(timeout);
    }

    fn give(self: Box<Self>, into: &mut dyn Any) -> Result<(), BoxedTask> {
        give(self, into)
    }
}
