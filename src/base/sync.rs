//! The switch between the standard library's primitives and those of loom and shuttle, and those that wait
//! at random.
//!
//! Code that shares data between threads imports its primitives from here, so that the models run
//! the real code. The mutex ignores poisoning: user code never runs under a lock, so only a defect
//! of this crate could poison one, and refusing service would make that worse.

pub(crate) use std::sync::Arc; // only counts references; no race depends on it

#[cfg(delays)]
#[path = "../../tests/whole/delayed.rs"]
mod delayed;
#[cfg(any(loom, shuttle))]
mod model;

#[cfg(delays)]
use delayed as imp;
#[cfg(loom)]
use loom::sync as imp;
#[cfg(shuttle)]
use shuttle::sync as imp;
#[cfg(not(any(delays, loom, shuttle)))]
use std::sync as imp;

pub(crate) use imp::{
    MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(not(loom))]
pub(crate) use plain::UnsafeCell;

#[cfg(not(any(delays, loom, shuttle)))]
pub(crate) use crossbeam_queue::{ArrayQueue, SegQueue};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use crossbeam_utils::atomic::AtomicCell;
/// A number that moves in a register, with its neighbour in a struct. An `AtomicUsize` moves through memory, which takes
/// 5 ns if the two were just written one by one.
#[cfg(not(any(loom, shuttle)))]
pub(crate) type AtomicWord = AtomicCell<usize>;
#[cfg(delays)]
pub(crate) use delayed::{ArrayQueue, SegQueue};
#[cfg(any(loom, shuttle))]
pub(crate) use model::{ArrayQueue, AtomicCell, AtomicWord, SegQueue};

#[cfg(loom)]
pub(crate) use model::{thread, thread_local};
#[cfg(shuttle)]
pub(crate) use shuttle::{thread, thread_local};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{thread, thread_local};

use std::sync::{PoisonError, TryLockError};
use std::time::Instant;

/// A mutex that ignores poisoning.
#[derive(Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(delays)]
        delayed::delay();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the guard, or `None` if another thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable for the slow paths: stops, moves of a manual clock, and the idle threads of a pool.
pub(crate) struct Condvar(imp::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(imp::Condvar::new())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until notified or until `limit`. `None` waits without a limit. Loom and shuttle have
    /// no time, so there a limit is ignored.
    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Option<Instant>,
    ) -> MutexGuard<'a, T> {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(limit) = limit {
            let left = limit.saturating_duration_since(Instant::now());
            let waited = self.0.wait_timeout(guard, left);
            return waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let _ = limit;
        self.wait(guard)
    }
}

/// The standard library's cell behind loom's interface.
#[cfg(not(loom))]
mod plain {
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
            access(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
            access(self.0.get())
        }
    }
}

/// Runs a model in every schedule with at most three preemptions. The known bugs of such protocols need
/// no more than three. `LOOM_MAX_PREEMPTIONS` changes the bound.
#[cfg(all(test, loom))]
pub(crate) fn check(model: impl Fn() + Sync + Send + 'static) {
    check_up_to(3, model);
}

/// Like `check`, with another bound. The large models need a smaller one.
#[cfg(all(test, loom))]
pub(crate) fn check_up_to(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = builder.max_branches.max(2_000); // those of one schedule; the longest has 1,000 to 1,100
    builder.check(move || {
        turn();
        model();
    });
}

#[cfg(all(test, loom))]
loom::lazy_static! {
    static ref TURNS: loom::sync::atomic::AtomicUsize = loom::sync::atomic::AtomicUsize::new(0);
}

/// Makes loom try every order of the steps that begin with this call. Loom compares an access only with
/// the last access before it, so a load by one thread hides another thread's load from a later store.
/// Relaxed, so that it adds no ordering that the fences do not already have.
#[cfg(all(test, loom))]
pub(crate) fn turn() {
    TURNS.fetch_add(1, Ordering::Relaxed);
}

/// Spawns a thread of a model, whose first step is a `turn`.
#[cfg(all(test, loom))]
pub(crate) fn spawn<T: 'static>(f: impl FnOnce() -> T + 'static) -> loom::thread::JoinHandle<T> {
    loom::thread::spawn(move || {
        turn();
        f()
    })
}
