//! Runs futures on a manual clock: whenever all of them wait, the clock moves to what is due next.
//!
//! The futures stay on the calling thread. Their wakers may be called on any thread: a waker puts the number of
//! its future into a queue, once until the next poll.

use crate::base::sync::{Arc, AtomicBool, Ordering, SegQueue};
use crate::time::ManualClock;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// The number of the future that was passed to `run`.
const MAIN: u64 = 0;

/// While nothing is pending in the timers, another thread may schedule something without waking a future.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl ManualClock {
    /// Runs a future to its end. Whenever it waits, the clock moves to what is due next, like
    /// [`advance_to_next`](Self::advance_to_next). So a test needs no step size, and an hour of sleeps takes
    /// no time.
    ///
    /// The future is polled on this thread, and need not be `Send`. It may await anything that wakes it. But
    /// time does not wait for other threads or for I/O: if the future awaits a socket with a limit, the limit
    /// may elapse first. Time does wait for the jobs of executors. If nothing is pending in the timers, this call waits
    /// until another thread wakes the future. If nothing ever wakes it, the call does not return.
    ///
    /// # Panics
    ///
    /// If the future panics, or if this is called in a task on the worker or on an executor of a timer, because such a
    /// task cannot wait for the time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use wheelwork::{HashedWheelTimer, ManualClock};
    ///
    /// /// Tries at 0, 100 and 300 ms, and so on, ten times at most.
    /// async fn retry(timer: &HashedWheelTimer, mut attempt: impl FnMut() -> bool) -> Option<u32> {
    ///     let mut pause = Duration::from_millis(100);
    ///     for number in 1..=10 {
    ///         if attempt() {
    ///             return Some(number);
    ///         }
    ///         let mut sleep = timer.sleep(pause);
    ///         (&mut sleep).await;
    ///         if sleep.was_stopped() {
    ///             break; // each further sleep would be ready at once
    ///         }
    ///         pause *= 2;
    ///     }
    ///     None
    /// }
    ///
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let works_at_last = || clock.elapsed() >= Duration::from_millis(250);
    /// assert_eq!(clock.run(retry(&timer, works_at_last)), Some(3));
    /// assert_eq!(clock.elapsed(), Duration::from_millis(300));
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn run<F: IntoFuture>(&self, future: F) -> F::Output {
        self.run_with(|_| future.into_future())
    }

    /// Like [`run`](Self::run), for a future that spawns others: the closure gets a handle to the tasks of
    /// this run. The clock moves when all of them wait. Tasks that are left at the end of the future are
    /// dropped.
    ///
    /// # Panics
    ///
    /// If a future panics, and in a task of a timer, as `run` does.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let report = clock.run_with(async |tasks| {
    ///     let flush = timer.clone();
    ///     let flushed = tasks.spawn(async move {
    ///         flush.sleep(Duration::from_secs(3600)).await;
    ///         "flushed"
    ///     });
    ///     timer.sleep(Duration::from_secs(1)).await; // the other one still waits
    ///     flushed.await
    /// });
    /// assert_eq!((report, clock.elapsed()), ("flushed", Duration::from_secs(3600)));
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn run_with<F: Future>(&self, begin: impl FnOnce(Tasks) -> F) -> F::Output {
        assert!(
            self.may_wait(),
            "a manual clock cannot run in a task of a timer: call it on another thread"
        );
        let woken = Arc::new(Woken { numbers: SegQueue::new(), thread: thread::current() });
        let waiting = RefCell::new(Some(HashMap::new()));
        let tasks = Tasks(Rc::new(State { woken: woken.clone(), waiting, last: Cell::new(MAIN) }));
        let _ending = Ending(&tasks);
        let mut main = pin!(begin(tasks.clone()));
        let waker = TaskWaker::new(MAIN, &woken);
        loop {
            while let Some(number) = woken.numbers.pop() {
                if number != MAIN {
                    tasks.poll(number);
                } else if let Poll::Ready(output) = waker.poll(main.as_mut()) {
                    return output;
                }
            }
            // One of these futures may run the jobs, so it is polled while others run.
            let jobs_run = !self.wait_for_jobs();
            let is_idle = || woken.numbers.is_empty();
            if !jobs_run && !self.advance_if(is_idle) && is_idle() {
                thread::park_timeout(LOOK_AGAIN);
            }
        }
    }
}

/// A handle to the tasks of one [`ManualClock::run_with`], which spawns more of them.
///
/// # Examples
///
/// ```
/// use wheelwork::ManualClock;
///
/// let sum = ManualClock::new().run_with(async |tasks| {
///     let parts = [1, 2, 3].map(|n| tasks.spawn(async move { n * n }));
///     let mut sum = 0;
///     for part in parts {
///         sum += part.await;
///     }
///     sum
/// });
/// assert_eq!(sum, 14);
/// ```
#[derive(Clone)]
pub struct Tasks(Rc<State>);

struct State {
    woken: Arc<Woken>,
    /// The spawned tasks, by number. `None` after the end of the run.
    waiting: RefCell<Option<HashMap<u64, Task>>>,
    last: Cell<u64>,
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Arc<TaskWaker>,
}

impl Tasks {
    /// Spawns a future, which need not be `Send`, but must be `'static`: move clones into it. It is first polled
    /// when the current one waits. A drop of the returned handle detaches it. After the end of the run, the future is
    /// dropped.
    pub fn spawn<F>(&self, future: F) -> Spawned<F::Output>
    where
        F: IntoFuture<IntoFuture: 'static, Output: 'static>,
    {
        let outcome = Rc::new(Outcome { output: Cell::new(None), waiting: Cell::new(None) });
        let (result, future) = (outcome.clone(), future.into_future());
        let future = Box::pin(async move {
            result.output.set(Some(future.await));
            result.waiting.take().into_iter().for_each(Waker::wake);
        });
        if let Some(waiting) = &mut *self.0.waiting.borrow_mut() {
            let number = self.0.last.get() + 1;
            self.0.last.set(number);
            let waker = TaskWaker::new(number, &self.0.woken);
            waiting.insert(number, Task { future, waker });
        }
        Spawned(outcome)
    }

    /// Polls a spawned task. It is out of the map meanwhile, because it may spawn others.
    fn poll(&self, number: u64) {
        let Some(mut task) = self.with_waiting(|waiting| waiting.remove(&number)).flatten() else {
            return; // it has ended
        };
        if task.waker.poll(task.future.as_mut()).is_pending() {
            self.with_waiting(|waiting| waiting.insert(number, task));
        }
    }

    fn with_waiting<R>(&self, act: impl FnOnce(&mut HashMap<u64, Task>) -> R) -> Option<R> {
        self.0.waiting.borrow_mut().as_mut().map(act)
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

/// Drops the tasks that are left at the end of a run, also after a panic. A task may hold a `Tasks`, which
/// would keep it for ever.
struct Ending<'a>(&'a Tasks);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let left = self.0.0.waiting.borrow_mut().take();
        drop(left); // a drop may spawn
    }
}

/// The output of a task of [`Tasks::spawn`], as a future. Its drop detaches the task.
///
/// # Examples
///
/// ```
/// use wheelwork::ManualClock;
/// use wheelwork::future::Spawned;
///
/// let answer = ManualClock::new().run_with(async |tasks| {
///     let answer: Spawned<u32> = tasks.spawn(async { 42 });
///     drop(tasks.spawn(async { println!("goes on by itself") }));
///     answer.await
/// });
/// assert_eq!(answer, 42);
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct Spawned<T>(Rc<Outcome<T>>);

struct Outcome<T> {
    output: Cell<Option<T>>,
    waiting: Cell<Option<Waker>>,
}

impl<T> Future for Spawned<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.0.output.take() {
            Some(output) => Poll::Ready(output),
            None => {
                drop(self.0.waiting.replace(Some(cx.waker().clone())));
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").finish_non_exhaustive()
    }
}

struct Woken {
    /// The numbers of the futures to poll, in the order in which they were woken.
    numbers: SegQueue<u64>,
    /// The thread that polls them.
    thread: Thread,
}

struct TaskWaker {
    number: u64,
    /// Whether the number is in the queue.
    queued: AtomicBool,
    woken: Arc<Woken>,
}

impl TaskWaker {
    /// A waker for a new future, which is woken for its first poll.
    fn new(number: u64, woken: &Arc<Woken>) -> Arc<Self> {
        let new = Arc::new(Self { number, queued: AtomicBool::new(false), woken: woken.clone() });
        new.wake_by_ref();
        new
    }

    fn poll<F: Future + ?Sized>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        // Acquire: the poll sees what came before each wake that found the number in the queue.
        self.queued.swap(false, Ordering::AcqRel);
        future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.woken.numbers.push(self.number);
            self.woken.thread.unpark();
        }
    }
}
