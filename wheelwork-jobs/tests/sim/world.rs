//! Virtual time, and tasks that run in one thread in a random order.
//!
//! A task belongs to a process, which can be paused and killed. Which of the tasks that are ready is
//! polled next, the seed decides. When none is, the time moves to the next sleep that ends. So a seed
//! gives the same history each time, and an hour passes in milliseconds.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

type TaskId = u64;
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A process of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process(pub(crate) u32);

/// Where a task runs: it ends with its process, and with its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) process: Process,
    thread: u64,
}

impl Home {
    pub(crate) fn of(process: Process) -> Self {
        Self { process, thread: 0 }
    }

    /// A new thread of the same process.
    pub(crate) fn thread(self) -> Self {
        Self { thread: world(World::number), ..self }
    }
}

/// So many polls without any progress of time are taken for a loop that never ends.
const MOST_POLLS: u64 = 1_000_000;

struct World {
    now: Instant,
    tasks: BTreeMap<TaskId, (Home, Option<Running>)>,
    ready: Arc<Ready>,
    /// Who sleeps, and until when. The number tells sleeps apart that end together.
    sleeps: BTreeMap<(Instant, u64), Waker>,
    paused: BTreeSet<Process>,
    current: Option<Home>,
    last_number: u64,
}

#[derive(Default)]
struct Ready(Mutex<BTreeSet<TaskId>>);

impl Ready {
    fn tasks(&self) -> std::sync::MutexGuard<'_, BTreeSet<TaskId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TaskWaker(TaskId, Arc<Ready>);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.1.tasks().insert(self.0);
    }
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new());
}

fn world<T>(f: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(f)
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            now,
            tasks: BTreeMap::new(),
            ready: Arc::default(),
            sleeps: BTreeMap::new(),
            paused: BTreeSet::new(),
            current: None,
            last_number: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Takes out one of the ready tasks, chosen at random.
    fn next_ready(&mut self) -> Option<(TaskId, Home, Running)> {
        let mut ready = self.ready.tasks();
        ready.retain(|id| self.tasks.contains_key(id));
        let runs = |id: &&TaskId| !self.paused.contains(&self.tasks[*id].0.process);
        let count = ready.iter().filter(runs).count();
        if count == 0 {
            return None;
        }
        let id = *ready.iter().filter(runs).nth(fastrand::usize(..count))?;
        ready.remove(&id);
        let (home, future) = self.tasks.get_mut(&id)?;
        future.take().map(|future| (id, *home, future))
    }

    /// Moves the time to the end of the next sleep.
    fn advance(&mut self) -> bool {
        let Some(((at, _), waker)) = self.sleeps.pop_first() else { return false };
        self.now = self.now.max(at);
        waker.wake();
        while let Some(entry) = self.sleeps.first_entry().filter(|e| e.key().0 <= self.now) {
            entry.remove().wake();
        }
        true
    }

    /// Takes out the tasks of some homes. The caller drops them, when the world is not borrowed.
    #[must_use]
    fn take(&mut self, of: impl Fn(Home) -> bool) -> Vec<Option<Running>> {
        let ids = self.tasks.iter().filter(|(_, (home, _))| of(*home)).map(|(id, _)| *id);
        let ids: Vec<_> = ids.collect();
        ids.iter().filter_map(|id| self.tasks.remove(id)).map(|(_, future)| future).collect()
    }
}

/// Runs a task of the process 0 in a new world, until it has ended.
pub(crate) fn run<T: Send + 'static>(
    seed: u64,
    main: impl Future<Output = T> + Send + 'static,
) -> T {
    fastrand::seed(seed);
    world(|world| *world = World::new());
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    spawn(Home::of(Process(0)), async move {
        let value = main.await;
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    });
    let taken = || result.lock().unwrap_or_else(PoisonError::into_inner).take();
    let _cleared = Cleared;
    let mut polls = (Instant::now(), 0);
    loop {
        if let Some(value) = taken() {
            return value;
        }
        let next = world(World::next_ready);
        match next {
            Some((id, home, future)) => poll(id, home, future),
            None => assert!(world(World::advance), "the history stands still: nobody sleeps"),
        }
        polls = if polls.0 == now() { (polls.0, polls.1 + 1) } else { (now(), 0) };
        assert!(polls.1 < MOST_POLLS, "tasks wake each other without end");
    }
}

/// Drops all tasks at the end of a history, also after a panic: while the world is still there.
struct Cleared;

impl Drop for Cleared {
    fn drop(&mut self) {
        drop(world(|world| world.take(|_| true)));
        drop(world(|world| mem::take(&mut world.sleeps)));
    }
}

fn poll(id: TaskId, home: Home, mut future: Running) {
    let ready = world(|world| {
        world.current = Some(home);
        world.ready.clone()
    });
    let waker = Waker::from(Arc::new(TaskWaker(id, ready)));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    // Who has ended meanwhile is dropped here, and not while the world is borrowed.
    let ended = world(|world| {
        world.current = None;
        if polled.is_pending()
            && let Some((_, slot)) = world.tasks.get_mut(&id)
        {
            *slot = Some(mem::replace(&mut future, Box::pin(async {})));
        } else {
            world.tasks.remove(&id);
        }
        future
    });
    drop(ended);
}

pub(crate) fn now() -> Instant {
    world(|world| world.now)
}

/// The home of the task that runs now. Outside of the tasks, that of the process 0.
pub(crate) fn home() -> Home {
    world(|world| world.current).unwrap_or(Home::of(Process(0)))
}

pub(crate) fn spawn(home: Home, task: impl Future<Output = ()> + Send + 'static) -> TaskId {
    world(|world| {
        let id = world.number();
        world.tasks.insert(id, (home, Some(Box::pin(task))));
        world.ready.tasks().insert(id);
        id
    })
}

/// Ends a task. False if it has ended.
pub(crate) fn abort(id: TaskId) -> bool {
    let task = world(|world| world.tasks.remove(&id));
    task.is_some()
}

/// Ends the other tasks of a thread.
pub(crate) fn end_thread(home: Home) {
    drop(world(|world| world.take(|other| other == home)));
}

/// Ends a process: nothing of it runs again.
pub(crate) fn kill(process: Process) {
    resume(process);
    drop(world(|world| world.take(|home| home.process == process)));
}

/// Nothing of a process runs until it is resumed.
pub(crate) fn pause(process: Process) {
    world(|world| world.paused.insert(process));
}

pub(crate) fn resume(process: Process) {
    world(|world| world.paused.remove(&process));
}

pub(crate) async fn sleep(time: Duration) {
    sleep_until(now() + time).await;
}

pub(crate) fn sleep_until(at: Instant) -> Sleep {
    Sleep { at, number: None }
}

pub(crate) struct Sleep {
    at: Instant,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        world(|world| {
            if world.now >= at {
                return Poll::Ready(());
            }
            let number = *self.number.get_or_insert_with(|| world.number());
            world.sleeps.insert((at, number), cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            drop(world(|world| world.sleeps.remove(&(self.at, number))));
        }
    }
}

/// `None` if the future takes longer.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut end) = (pin!(future), pin!(sleep(limit)));
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}
