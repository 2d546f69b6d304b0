//! Tasks: the trait that users implement, closures as tasks, and the type-erased task that `stop` returns.

use super::handle::Timeout;
use super::payload::{Again, Erased, Stored, When};
use super::run::Run;
use crate::intake::{Cancel, Pin};
use crate::time::tick::nanos;
use std::any::{Any, TypeId};
use std::fmt;
use std::time::{Duration, Instant};

/// A task: the code that a timeout runs when it expires. Every `FnOnce() + Send + 'static` closure
/// is one. A closure takes no argument and returns nothing: end it with `;`. [`task_fn`](crate::task::task_fn)
/// makes a task of a closure that takes its [`Run`].
///
/// Implement it for your own type to get a callback on a cancel, or to run again ([`Next`]).
///
/// A closure that returns a value is refused, because nobody would see the value. The compiler says what to
/// do:
///
/// ```compile_fail,E0277
/// # let timer = wheelwork::HashedWheelTimer::new().unwrap();
/// # let (sender, _receiver) = std::sync::mpsc::channel();
/// // error: a task returns nothing, but this closure returns `Result<(), SendError<i32>>`
/// // note: end the closure's last statement with a semicolon: `|| { work(); }`
/// timer.new_timeout(move || sender.send(1), std::time::Duration::ZERO);
/// ```
///
/// # Examples
///
/// ```
/// use wheelwork::task::{Next, Run, TimerTask};
/// use wheelwork::{HashedWheelTimer, Timeout};
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task of a timer",
    note = "a closure is a task if it takes no argument, returns `()`, and is `Send + 'static`",
    note = "for a closure that takes its run, write `wheelwork::task::task_fn(|run| ..)`",
    note = "a closure that takes its run and was bound to a variable needs a type: `|run: &Run<'_>| ..`",
    note = "for a future, spawn it inside the closure, or await `timer.sleep(delay)`"
)]
pub trait TimerTask: Sized + Send + 'static {
    /// Called by the executor, at or after the deadline. Returns whether the timeout goes on.
    /// A panic is caught and counted, and ends the timeout.
    fn run(self, run: &Run<'_>) -> Next<Self>;

    /// Called if the timeout is cancelled, instead of the next `run`. [`Timeout::is_cancelled`] is true by
    /// then. A panic is caught and counted.
    ///
    /// | cancelled | called |
    /// |---|---|
    /// | while pending | on the thread that cancels, before `cancel` returns |
    /// | during a run that returns [`Next::after`] or [`Next::at`] | after the run, on its thread |
    /// | while its job waits in an executor, if `cancel` returned true | on the executor, instead of the run |
    /// | in one of the last two ways, by `cancel_and_take`, which returned `None` | the same |
    /// | while pending, by [`cancel_and_take`](Timeout::cancel_and_take) | not called: the caller gets the task |
    /// | because an executor drops its job | on the thread that drops it |
    /// | by the drop of the last handle of the timer | on the worker |
    /// | the same, if a stop gave up waiting and the timer has ended since | on the thread that drops the handle |
    /// | returned by [`stop`](crate::HashedWheelTimer::stop) | not called |
    ///
    /// It is not called after a run that returns [`Next::done`] or panics. A timeout that `stop` returns is not
    /// cancelled: its task is in the [`Unprocessed`](crate::Unprocessed), and dropping that calls nothing.
    fn cancelled(self, timeout: &Timeout) {
        let _ = timeout;
    }

    /// What the timer knows of the task beforehand. Only this crate can name its type.
    #[doc(hidden)]
    const KIND: Kind = Kind::ANY;
}

/// What a timer knows of a task before it runs. A wrong value would break the protocol of the slots, so
/// only this crate's own tasks use a value other than `ANY`: the type is public, since the trait is, but its
/// module is private, and a constant cannot be written without the name of its type.
///
/// ```compile_fail,E0603
/// use wheelwork::task::{Next, Run, TimerTask};
///
/// struct Mine;
///
/// impl TimerTask for Mine {
///     fn run(self, _run: &Run<'_>) -> Next<Self> {
///         Next::done()
///     }
///
///     const KIND: wheelwork::timeout::task::Kind = <fn() as TimerTask>::KIND;
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// `run` always returns [`Next::done`], and does not ask whether it was cancelled. So a cancel of the run leaves
    /// no trace.
    pub(crate) runs_once: bool,
    /// The task only wakes a waker, or is the watchdog's. It then runs on the worker, even if the timer has an
    /// executor, and a stop cancels it instead of returning it.
    pub(crate) only_wakes: bool,
}

impl Kind {
    pub(crate) const ANY: Self = Self { runs_once: false, only_wakes: false };
    pub(crate) const ONCE: Self = Self { runs_once: true, only_wakes: false };
    pub(crate) const WAKE: Self = Self { runs_once: true, only_wakes: true };
}

/// The result of a run: the timeout ends, or it goes on and runs again. Returned by
/// [`TimerTask::run`](crate::task::TimerTask::run).
///
/// The next run cannot begin before this one has returned, so runs of one timeout never overlap.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::task::{Next, Run, TimerTask};
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// struct Countdown(u32, mpsc::Sender<u32>);
///
/// impl TimerTask for Countdown {
///     fn run(mut self, _run: &Run<'_>) -> Next<Self> {
///         self.0 -= 1;
///         let _ = self.1.send(self.0);
///         if self.0 > 0 { Next::after(self, Duration::from_secs(1)) } else { Next::done() }
///     }
/// }
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let (sender, left) = mpsc::channel();
/// timer.new_timeout(Countdown(3, sender), Duration::from_secs(1))?;
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(left.iter().collect::<Vec<_>>(), [2, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a run returns whether its timeout goes on"]
pub struct Next<T>(pub(super) Again<T>);

impl<T> Next<T> {
    /// Ends the timeout: it has expired.
    pub fn done() -> Self {
        Self(None)
    }

    /// Runs `task` again, `delay` after the end of this run. The timeout and its handles stay the
    /// same, and nothing is allocated. [`Duration::ZERO`] means the next tick.
    ///
    /// If the timeout was cancelled during this run, it is cancelled now: the task's
    /// [`cancelled`](crate::task::TimerTask::cancelled) callback is called on this thread. If the timer was stopped
    /// during this run, `stop` returns the timeout, unless the run has outlasted the end of the timer, on an
    /// executor. In that case, the timeout is cancelled. It is also cancelled if the timer's clock panics at the end of
    /// the run.
    pub fn after(task: T, delay: Duration) -> Self {
        Self(Some((task, When::After(nanos(delay)))))
    }

    /// Runs `task` again at an instant, like [`after`](Self::after). A past instant means the next
    /// tick. `run.deadline() + period` gives a fixed rate, until a run is late by more than a period: the next run is then
    /// in the next tick, and the rate counts from there. [`new_periodic`](crate::HashedWheelTimer::new_periodic) keeps
    /// its phase.
    pub fn at(task: T, deadline: Instant) -> Self {
        Self(Some((task, When::At(deadline))))
    }

    /// Runs `task` again at an instant that is not moved to the next tick, even if the run is missed.
    pub(crate) fn on_beat(task: T, deadline: Instant, missed: bool) -> Self {
        Self(Some((task, When::OnBeat(deadline, missed))))
    }
}

impl<T: TimerTask> Stored for T {
    const ONLY_WAKES: bool = T::KIND.only_wakes;

    #[inline]
    fn run(self, pin: &Pin<Erased>) -> Again<Self> {
        TimerTask::run(self, &Run(pin)).0
    }

    #[inline]
    fn cancelled(self, pin: &Pin<Erased>) {
        TimerTask::cancelled(self, Timeout::of(pin));
    }
}

impl Erased {
    /// A `Task` is erased already. If it became the contents of another `Erased`, a task that goes from timer
    /// to timer would be one level deeper each time.
    #[inline]
    pub(crate) fn new<T: TimerTask>(task: T) -> Self {
        if TypeId::of::<T>() == TypeId::of::<Task>() {
            return Self::of_task(task);
        }
        Self::holding(task)
    }

    /// The inside of a `Task`.
    fn of_task<T: TimerTask>(task: T) -> Self {
        let mut task = Some(task);
        let task = (&mut task as &mut dyn Any).downcast_mut::<Option<Task>>();
        task.and_then(Option::take).expect("`T` is `Task`").0
    }

    /// Returns the task as a value of the type that it was made from.
    ///
    /// # Panics
    ///
    /// If it was made from another type.
    pub(super) fn into_type<T: TimerTask>(self) -> T {
        Task(self).downcast().expect("a task of this type")
    }
}

/// What a closure that is a task returns: nothing. A separate bound, so that the compiler can suggest what to do.
#[diagnostic::on_unimplemented(
    message = "a task returns nothing, but this closure returns `{Self}`",
    label = "returns `{Self}`",
    note = "end the closure's last statement with a semicolon: `|| {{ work(); }}`",
    note = "to ignore a `Result`, write `|| {{ let _ = work(); }}`",
    note = "to run again, implement `TimerTask`, whose `run` returns a `Next`"
)]
pub trait TaskOutput {}

impl TaskOutput for () {}

/// For a closure that never returns, as `|| panic!()`. The type `!` can be named only as the output of a function.
impl TaskOutput for <fn() -> ! as OutputOf>::Type {}

trait OutputOf {
    type Type;
}

impl<R> OutputOf for fn() -> R {
    type Type = R;
}

impl<F, R> TimerTask for F
where
    F: FnOnce() -> R + Send + 'static,
    R: TaskOutput,
{
    #[inline]
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        let _unit = self();
        Next::done()
    }

    const KIND: Kind = Kind::ONCE;
}

/// Turns a closure that takes its [`Run`] into a task: the timeout that expires, its deadline, the time, and whether it
/// was cancelled meanwhile.
///
/// A closure without an argument is a task itself. A task that runs again, or that is told of its cancel,
/// needs your own type that implements [`TimerTask`]: this closure returns nothing, not even a [`Next`].
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
/// use wheelwork::task::task_fn;
/// use wheelwork::{HashedWheelTimer, ManualClock, Timeout};
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
/// clock.advance(Duration::from_secs(30));
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
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::task::{Run, TaskFn, task_fn};
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
}

impl<F> fmt::Debug for TaskFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskFn").finish_non_exhaustive()
    }
}

impl Timeout {
    /// Cancels the timeout as [`cancel`](Self::cancel) does, and returns its task instead of dropping it.
    /// The task's callback ([`TimerTask::cancelled`](crate::task::TimerTask::cancelled)) is not called.
    ///
    /// Use it if the task holds a value, such as a request that is to be answered after all.
    /// [`Task::downcast`] returns a task of a type of yours. A task of any type can be scheduled again.
    ///
    /// `None` if this call did not end the timeout while it was pending:
    ///
    /// | the timeout | the task |
    /// |---|---|
    /// | runs | is in its run, and no further run starts. If it asks for one, it goes to `cancelled` then |
    /// | waits in an executor for a further run | goes to `cancelled` on the executor, without that run |
    /// | waits in an executor for its first run | goes to that run, as above |
    /// | has run, or was cancelled | is gone |
    /// | was returned by [`stop`](crate::HashedWheelTimer::stop) | is in the [`Unprocessed`](crate::Unprocessed) |
    ///
    /// So a type whose value must not be lost also implements [`cancelled`](crate::task::TimerTask::cancelled).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::HashedWheelTimer;
    /// # use wheelwork::task::{Next, Run, TimerTask};
    /// struct Refuse { request: String }
    ///
    /// impl TimerTask for Refuse {
    ///     fn run(self, _run: &Run<'_>) -> Next<Self> {
    ///         println!("too late for {}", self.request);
    ///         Next::done()
    ///     }
    /// }
    ///
    /// let timer = HashedWheelTimer::new()?;
    /// let refuse = Refuse { request: "GET /".to_owned() };
    /// let deadline = timer.new_timeout(refuse, Duration::from_secs(30))?;
    ///
    /// let task = deadline.cancel_and_take().expect("in time");
    /// let Refuse { request } = task.downcast().expect("of this type");
    /// assert_eq!(request, "GET /");
    /// assert!(deadline.is_cancelled() && deadline.cancel_and_take().is_none());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn cancel_and_take(&self) -> Option<Task> {
        match self.cancel_and_count() {
            Cancel::Won(task) => Some(Task(task)),
            Cancel::Denied(_) | Cancel::Lost => None,
        }
    }
}

/// A task whose type is erased, as [`stop`](crate::HashedWheelTimer::stop) and
/// [`cancel_and_take`](Timeout::cancel_and_take) return it. It can be scheduled again, also in another timer. There it
/// is the same task: it does not grow, however often it is handed from timer to timer.
pub struct Task(pub(super) Erased);

impl Task {
    /// Whether the task is of type `T`: whether [`downcast`](Self::downcast) would succeed. Every task is
    /// also of type `Task`.
    pub fn is<T: TimerTask>(&self) -> bool {
        is_of::<T>(&self.0)
    }

    /// Returns the task itself if it is of type `T`, for example to inspect it, or to save it
    /// beyond the program's end.
    ///
    /// # Errors
    ///
    /// The same task, if it is of another type.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::HashedWheelTimer;
    /// # use wheelwork::task::{Next, Run, TimerTask};
    /// struct Remind { user: u64 }
    ///
    /// impl TimerTask for Remind {
    ///     fn run(self, _run: &Run<'_>) -> Next<Self> {
    ///         Next::done()
    ///     }
    /// }
    ///
    /// let [first, second] = [HashedWheelTimer::new()?, HashedWheelTimer::new()?];
    /// first.new_timeout(Remind { user: 7 }, Duration::from_secs(3600))?;
    /// for unprocessed in first.stop()? {
    ///     second.new_timeout_at(unprocessed.into_task(), std::time::Instant::now())?;
    /// }
    /// for unprocessed in second.stop()? {
    ///     let Remind { user } = unprocessed.into_task().downcast().expect("the only task");
    ///     assert_eq!(user, 7);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn downcast<T: TimerTask>(self) -> Result<T, Task> {
        let mut task = None::<T>;
        match (&mut task as &mut dyn Any).downcast_mut::<Option<Task>>() {
            Some(itself) => *itself = Some(self),
            None => self.0.give(&mut task).map_err(Task)?,
        }
        Ok(task.expect("given"))
    }
}

/// Whether a task is of type `T`, as a [`Task`] says.
pub(super) fn is_of<T: TimerTask>(task: &Erased) -> bool {
    let id = TypeId::of::<T>();
    id == TypeId::of::<Task>() || task.is_of(id)
}

impl TimerTask for Task {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        Next(self.0.run(run.0).map(|(task, when)| (Task(task), when)))
    }

    fn cancelled(self, timeout: &Timeout) {
        self.0.cancelled(timeout.pin());
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}
