//! The textbook timer: an ordered structure, and a thread that sleeps until the earliest is due.

use super::{Job, Rival, Timer, forever};
use crate::task::Task;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A deadline in nanoseconds since the timer's start, and a number that makes equal ones distinct.
pub type Place = (u64, u64);

/// An ordered structure that threads share.
pub trait Shared: Default + Send + Sync + 'static {
    type Key: Copy + 'static;

    fn insert(&self, place: Place, job: Job) -> Self::Key;
    fn remove(&self, key: Self::Key) -> Option<Job>;
    /// Moves a job, or inserts a new one if it has left.
    fn reinsert(&self, key: Self::Key, place: Place, new: impl FnOnce() -> Job) -> Self::Key;
    /// The earliest deadline.
    fn earliest(&self) -> Option<u64>;
    /// Moves jobs that are due into the empty `due`, up to [`BATCH`].
    fn take_due(&self, now: u64, due: &mut Vec<Job>);
}

/// The most jobs that leave the structure at once.
pub const BATCH: usize = 1024;
const NEVER: u64 = u64::MAX;

pub struct Textbook<S> {
    shared: S,
    inserted: AtomicU64,
    /// When the thread will look by itself. It is woken only for something sooner, and keeps to a
    /// time that is still to come although its timeout was cancelled: so any number of timeouts that are
    /// each cancelled at once cost one wake-up. Before its last look the thread writes this, and a
    /// producer inserts before it reads this (SeqCst both), so one of them sees the other.
    wakes_at: AtomicU64,
    start: Instant,
    thread: OnceLock<Thread>,
}

impl<S: Shared> Textbook<S> {
    fn serve(&self) {
        let mut due = Vec::with_capacity(BATCH);
        loop {
            let now = self.now();
            if self.wakes_at.load(Ordering::SeqCst) <= now {
                self.wakes_at.store(NEVER, Ordering::SeqCst);
            }
            self.shared.take_due(now, &mut due);
            if due.is_empty() {
                let earliest = self.shared.earliest().unwrap_or(NEVER);
                let wakes_at = self.wakes_at.fetch_min(earliest, Ordering::SeqCst).min(earliest);
                thread::park_timeout(Duration::from_nanos(wakes_at.saturating_sub(now)));
            }
            due.drain(..).for_each(|job| job());
        }
    }

    fn insert(&self, delay: Duration, insert: impl FnOnce(Place) -> S::Key) -> S::Key {
        let number = self.inserted.fetch_add(1, Ordering::Relaxed);
        let deadline = self.now() + delay.as_nanos() as u64;
        let key = insert((deadline, number));
        if deadline < self.wakes_at.load(Ordering::SeqCst)
            && deadline < self.wakes_at.fetch_min(deadline, Ordering::SeqCst)
        {
            self.thread.wait().unpark();
        }
        key
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

fn job(task: impl Task) -> Job {
    Box::new(move || task.run())
}

impl<S: Shared> Rival for &'static Textbook<S> {
    type Handle = S::Key;

    fn start(_tick: Duration) -> Timer<Self> {
        let textbook = forever(Textbook {
            shared: S::default(),
            inserted: AtomicU64::new(0),
            wakes_at: AtomicU64::new(0),
            start: Instant::now(),
            thread: OnceLock::new(),
        });
        let thread = thread::spawn(|| textbook.serve());
        textbook.thread.get_or_init(|| thread.thread().clone());
        forever(|| textbook)
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> S::Key {
        self.insert(delay, |place| self.shared.insert(place, job(task)))
    }

    fn cancel(&mut self, key: S::Key) {
        drop(self.shared.remove(key));
    }

    fn cancel_ended(&mut self, key: &S::Key) {
        self.cancel(*key);
    }

    fn reschedule<T: Task>(&mut self, key: S::Key, task: T, delay: Duration) -> S::Key {
        self.insert(delay, |place| self.shared.reinsert(key, place, || job(task)))
    }
}
