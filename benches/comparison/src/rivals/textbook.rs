//! The textbook timer: an ordered structure, and a thread that sleeps until the earliest is due.

use super::{Job, Rival};
use crate::task::Task;
use std::sync::Arc;
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

/// So many jobs leave the structure at once.
pub const BATCH: usize = 1024;
const NEVER: u64 = u64::MAX;

struct Textbook<S> {
    shared: S,
    inserted: AtomicU64,
    /// When the thread will look by itself. It is woken only for something sooner, and keeps to a
    /// time that is still to come although its timeout was cancelled: so many timeouts that are
    /// each cancelled at once cost one wake-up. Before its last look the thread writes this, and a
    /// producer inserts before it reads this (SeqCst both), so one of them sees the other.
    wakes_at: AtomicU64,
    start: Instant,
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

    fn place(&self, delay: Duration) -> Place {
        let number = self.inserted.fetch_add(1, Ordering::Relaxed);
        (self.now() + delay.as_nanos() as u64, number)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

pub struct Timer<S> {
    textbook: Arc<Textbook<S>>,
    thread: Thread,
}

impl<S: Shared> Timer<S> {
    fn wake_for(&self, place: Place) {
        let wakes_at = &self.textbook.wakes_at;
        if place.0 < wakes_at.load(Ordering::SeqCst)
            && place.0 < wakes_at.fetch_min(place.0, Ordering::SeqCst)
        {
            self.thread.unpark();
        }
    }
}

fn job(task: impl Task) -> Job {
    Box::new(move || task.run())
}

impl<S: Shared> Rival for &'static Timer<S> {
    type Timer = Timer<S>;
    type Handle = S::Key;

    fn start(_tick: Duration) -> Timer<S> {
        let (inserted, wakes_at) = (AtomicU64::new(0), AtomicU64::new(0));
        let textbook = Textbook { shared: S::default(), inserted, wakes_at, start: Instant::now() };
        let textbook = Arc::new(textbook);
        let served = textbook.clone();
        let thread = thread::spawn(move || served.serve());
        Timer { textbook, thread: thread.thread().clone() }
    }

    fn of(timer: &'static Timer<S>) -> Self {
        timer
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> S::Key {
        let place = self.textbook.place(delay);
        let key = self.textbook.shared.insert(place, job(task));
        self.wake_for(place);
        key
    }

    fn cancel(&mut self, key: S::Key) {
        drop(self.textbook.shared.remove(key));
    }

    fn cancel_ended(&mut self, key: &S::Key) {
        self.cancel(*key);
    }

    fn reschedule<T: Task>(&mut self, key: S::Key, task: T, delay: Duration) -> S::Key {
        let place = self.textbook.place(delay);
        let key = self.textbook.shared.reinsert(key, place, || job(task));
        self.wake_for(place);
        key
    }
}
