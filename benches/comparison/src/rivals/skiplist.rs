//! crossbeam's `SkipMap` ordered by deadline: no mutex around it, and a thread that sleeps.

use super::textbook::Place;
use super::{Facts, Job, Rival, Trait, facts_of};
use crate::task::Task;
use crossbeam_skiplist::SkipMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const NEVER: u64 = u64::MAX;

pub struct Timer {
    /// A value can only be reached by reference, so the job is taken out of a cell.
    entries: SkipMap<Place, Mutex<Option<Job>>>,
    inserted: AtomicU64,
    /// When the thread will look by itself. It is woken only for something sooner, and keeps to a
    /// time that is still to come although its timeout was cancelled. Before its last look the
    /// thread writes this, and a producer inserts before it reads this (SeqCst both), so one of
    /// them sees the other.
    wakes_at: AtomicU64,
    start: Instant,
}

impl Timer {
    fn serve(&self) {
        loop {
            let now = self.now();
            if self.wakes_at.load(Ordering::SeqCst) <= now {
                self.wakes_at.store(NEVER, Ordering::SeqCst);
            }
            let earliest = self.entries.front().map_or(NEVER, |entry| entry.key().0);
            if earliest <= now {
                self.run_due(now);
            } else {
                let planned = self.wakes_at.fetch_min(earliest, Ordering::SeqCst);
                let wakes_at = planned.min(earliest);
                thread::park_timeout(Duration::from_nanos(wakes_at.saturating_sub(now)));
            }
        }
    }

    fn run_due(&self, now: u64) {
        while let Some(entry) = self.entries.front().filter(|entry| entry.key().0 <= now) {
            if entry.remove()
                && let Some(job) = take(entry.value())
            {
                job();
            }
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

fn take(cell: &Mutex<Option<Job>>) -> Option<Job> {
    cell.lock().unwrap_or_else(PoisonError::into_inner).take()
}

pub struct SkipList {
    timer: &'static Timer,
    thread: &'static Thread,
}

impl Rival for SkipList {
    const FACTS: Facts = facts_of(
        "skiplist",
        "O(log n); memory is freed by epochs, later",
        &[Trait::CancelsEnded, Trait::Cap(200_000)],
    );
    type Timer = (Arc<Timer>, Thread);
    type Handle = Place;

    fn start(_tick: Duration) -> Self::Timer {
        let timer = Arc::new(Timer {
            entries: SkipMap::new(),
            inserted: AtomicU64::new(0),
            wakes_at: AtomicU64::new(0),
            start: Instant::now(),
        });
        let served = timer.clone();
        let thread = thread::spawn(move || served.serve());
        (timer, thread.thread().clone())
    }

    fn of((timer, thread): &'static Self::Timer) -> Self {
        Self { timer, thread }
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Place {
        let timer = self.timer;
        let number = timer.inserted.fetch_add(1, Ordering::Relaxed);
        let place = (timer.now() + delay.as_nanos() as u64, number);
        timer.entries.insert(place, Mutex::new(Some(Box::new(move || task.run()))));
        if place.0 < timer.wakes_at.load(Ordering::SeqCst)
            && place.0 < timer.wakes_at.fetch_min(place.0, Ordering::SeqCst)
        {
            self.thread.unpark();
        }
        place
    }

    fn cancel(&mut self, place: Place) {
        if let Some(entry) = self.timer.entries.remove(&place) {
            drop(take(entry.value()));
        }
    }

    fn cancel_ended(&mut self, place: &Place) {
        self.cancel(*place);
    }
}
