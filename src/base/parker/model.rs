//! The parker of the models: a flag and a condition variable.

use crate::base::sync::thread::{self, Thread, ThreadId};
use crate::base::sync::{Condvar, Mutex};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) struct Parker {
    /// Not a type of the model checker, so that the model does not branch here. It is written once,
    /// before any thread reads it.
    adopted: OnceLock<ThreadId>,
    called: Mutex<bool>,
    changed: Condvar,
    /// Whether the thread is in `park`. Written under the lock of `called`.
    parked: AtomicBool,
}

impl std::fmt::Debug for Parker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parker")
    }
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self {
            adopted: OnceLock::new(),
            called: Mutex::new(false),
            changed: Condvar::new(),
            parked: AtomicBool::new(false),
        }
    }

    pub(crate) fn adopt(&self, thread: &Thread) {
        self.adopted.get_or_init(|| thread.id());
    }

    pub(crate) fn is_current_thread(&self) -> bool {
        self.adopted.get() == Some(&thread::current().id())
    }

    /// Models do not name threads.
    pub(crate) fn thread_name(&self) -> Option<&str> {
        None
    }

    pub(crate) fn unpark(&self) {
        *self.called.lock() = true;
        self.changed.notify_one();
    }

    /// Whether a wake-up waits for the thread.
    #[cfg(test)]
    pub(crate) fn is_called(&self) -> bool {
        *self.called.lock()
    }

    /// Whether the thread sleeps and has not been woken.
    #[cfg(asleep)]
    pub(crate) fn is_parked(&self) -> bool {
        let called = self.called.lock();
        self.parked.load(Ordering::Relaxed) && !*called
    }

    /// Sleeps until woken. Models have no time, so a limit passes immediately.
    pub(crate) fn park(&self, limit: Option<Duration>) {
        let mut called = self.called.lock();
        self.parked.store(true, Ordering::Relaxed);
        while !*called && limit.is_none() {
            called = self.changed.wait(called);
        }
        *called = false;
        self.parked.store(false, Ordering::Relaxed);
    }
}
