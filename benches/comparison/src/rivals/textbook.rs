//! The textbook timer: an ordered structure under one mutex, and a thread that sleeps until the
//! earliest is due.

use super::{Facts, Job, Rival};
use crate::task::Task;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A deadline in nanoseconds since the timer's start, and a number that makes equal ones distinct.
pub type Place = (u64, u64);

pub trait Structure: Default + Send + 'static {
    const FACTS: Facts;
    type Key: Copy + 'static;

    fn insert(&mut self, place: Place, job: Job) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<Job>;
    /// The earliest deadline.
    fn earliest(&mut self) -> Option<u64>;
    fn pop_due(&mut self, now: u64) -> Option<Job>;
}

/// So many jobs leave the structure under one lock.
const BATCH: usize = 1024;
const NEVER: u64 = u64::MAX;

pub struct Textbook<S> {
    state: Mutex<State<S>>,
    sooner: Condvar,
    start: Instant,
}

#[derive(Default)]
struct State<S> {
    structure: S,
    inserted: u64,
    /// When the thread will look by itself. It is woken only for something sooner, and keeps to a
    /// time that is still to come although its timeout was cancelled: so many timeouts that are
    /// each cancelled at once cost one wake-up.
    wakes_at: u64,
}

impl<S: Structure> Textbook<S> {
    fn serve(&self) {
        let mut due = Vec::with_capacity(BATCH);
        loop {
            let mut state = self.lock();
            let now = self.now();
            while due.len() < BATCH
                && let Some(job) = state.structure.pop_due(now)
            {
                due.push(job);
            }
            if due.is_empty() {
                self.sleep(state, now);
            } else {
                drop(state);
                due.drain(..).for_each(|job| job());
            }
        }
    }

    fn sleep(&self, mut state: MutexGuard<'_, State<S>>, now: u64) {
        let earliest = state.structure.earliest().unwrap_or(NEVER);
        let planned = if state.wakes_at > now { state.wakes_at } else { NEVER };
        state.wakes_at = earliest.min(planned);
        let limit = Duration::from_nanos(state.wakes_at - now);
        let woken = self.sooner.wait_timeout(state, limit);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }

    fn insert(&self, delay: Duration, job: impl FnOnce(&mut S) -> Job) -> S::Key {
        let deadline = self.now() + delay.as_nanos() as u64;
        let mut state = self.lock();
        let job = job(&mut state.structure);
        state.inserted += 1;
        let place = (deadline, state.inserted);
        let key = state.structure.insert(place, job);
        let sooner = deadline < state.wakes_at;
        if sooner {
            state.wakes_at = deadline;
        }
        drop(state);
        if sooner {
            self.sooner.notify_one();
        }
        key
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

fn job(task: impl Task) -> Job {
    Box::new(move || task.run())
}

impl<S: Structure> Rival for &'static Textbook<S> {
    const FACTS: Facts = S::FACTS;
    type Timer = Arc<Textbook<S>>;
    type Handle = S::Key;

    fn start(_tick: Duration) -> Self::Timer {
        let timer = Arc::new(Textbook {
            state: Mutex::<State<S>>::default(),
            sooner: Condvar::new(),
            start: Instant::now(),
        });
        let served = timer.clone();
        thread::spawn(move || served.serve());
        timer
    }

    fn of(timer: &'static Self::Timer) -> Self {
        timer
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> S::Key {
        self.insert(delay, |_structure| job(task))
    }

    fn cancel(&mut self, key: S::Key) {
        let removed = self.lock().structure.remove(key);
        drop(removed);
    }

    fn cancel_ended(&mut self, key: &S::Key) {
        self.cancel(*key);
    }

    fn reschedule<T: Task>(&mut self, key: S::Key, task: T, delay: Duration) -> S::Key {
        self.insert(delay, |structure| structure.remove(key).unwrap_or_else(|| job(task)))
    }
}
