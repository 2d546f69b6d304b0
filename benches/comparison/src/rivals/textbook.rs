//! The textbook timer: an ordered structure under one mutex, and a thread that sleeps until the
//! earliest is due.

use super::{Job, Producer};
use crate::task::Task;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An ordered structure. Deadlines are nanoseconds since the timer's start.
pub trait Structure: Default + Send + 'static {
    type Key: Copy + 'static;

    fn insert(&mut self, deadline: u64, job: Job) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<Job>;
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
    /// When the thread will look by itself. It is woken only for something sooner, and keeps to a
    /// time that is still to come although its timeout was cancelled: so many timeouts that are
    /// each cancelled at once cost one wake-up.
    wakes_at: u64,
}

impl<S: Structure> Textbook<S> {
    pub fn start() -> Arc<Self> {
        let timer = Arc::new(Self {
            state: Mutex::default(),
            sooner: Condvar::new(),
            start: Instant::now(),
        });
        let served = timer.clone();
        thread::spawn(move || served.serve());
        timer
    }

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

    fn schedule(&self, delay: Duration, job: Job) -> S::Key {
        self.insert(delay, |_state| job)
    }

    fn reschedule<T: Task>(&self, key: S::Key, task: T, delay: Duration) -> S::Key {
        self.insert(delay, |structure| structure.remove(key).unwrap_or_else(|| job(task)))
    }

    fn insert(&self, delay: Duration, job: impl FnOnce(&mut S) -> Job) -> S::Key {
        let deadline = self.now() + delay.as_nanos() as u64;
        let mut state = self.lock();
        let job = job(&mut state.structure);
        let key = state.structure.insert(deadline, job);
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

    fn cancel(&self, key: S::Key) {
        let removed = self.lock().structure.remove(key);
        drop(removed);
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

impl<S: Structure> Producer for &Textbook<S> {
    type Handle = S::Key;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> S::Key {
        Textbook::schedule(self, delay, job(task))
    }

    #[inline]
    fn cancel(&mut self, key: S::Key) {
        Textbook::cancel(self, key);
    }

    #[inline]
    fn cancel_ended(&mut self, key: &S::Key) {
        Textbook::cancel(self, *key);
    }

    #[inline]
    fn reschedule<T: Task>(&mut self, key: S::Key, task: T, delay: Duration) -> S::Key {
        Textbook::reschedule(self, key, task, delay)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Job, Structure};
    use std::sync::{Arc, Mutex};

    /// What every structure has to do: give back in order what is due, and not what was removed.
    pub fn check<S: Structure>() {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let job = |name: u64| -> Job {
            let ran = ran.clone();
            Box::new(move || ran.lock().unwrap().push(name))
        };
        let mut structure = S::default();
        assert_eq!(structure.earliest(), None);
        let keys: Vec<_> = [30, 10, 20, 40, 15].map(|at| structure.insert(at, job(at))).into();
        assert!(structure.remove(keys[1]).is_some());
        assert!(structure.remove(keys[1]).is_none(), "removed once");
        assert_eq!(structure.earliest(), Some(15));
        while let Some(job) = structure.pop_due(30) {
            job();
        }
        assert_eq!(*ran.lock().unwrap(), [15, 20, 30]);
        assert_eq!(structure.earliest(), Some(40));
        assert!(structure.remove(keys[0]).is_none(), "it has expired");
    }

    /// A flood of cancels leaves room for what is alive.
    pub fn check_many<S: Structure>() {
        let mut structure = S::default();
        let kept = structure.insert(5_000, Box::new(|| ()));
        for at in 0..10_000 {
            let key = structure.insert(at * 7919 % 10_000, Box::new(|| ()));
            assert!(structure.remove(key).is_some());
        }
        assert_eq!(structure.earliest(), Some(5_000));
        assert!(structure.pop_due(4_999).is_none());
        assert!(structure.remove(kept).is_some());
        assert_eq!(structure.earliest(), None);
    }
}
