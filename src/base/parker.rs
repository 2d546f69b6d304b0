//! A parker: one thread sleeps in it, other threads wake it.
//!
//! It wraps the standard library's park and unpark. Loom and shuttle have no time, so under them it
//! is a flag and a condition variable.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::Parker;

#[cfg(any(loom, shuttle))]
pub(crate) use model::Parker;

#[cfg(not(any(loom, shuttle)))]
mod real {
    use std::sync::OnceLock;
    use std::thread::{self, Thread};
    use std::time::Duration;

    /// Wakes the thread that was given to `adopt`. A wake-up before that is dropped.
    #[derive(Debug)]
    pub(crate) struct Parker(OnceLock<Thread>);

    impl Parker {
        pub(crate) fn new() -> Self {
            Self(OnceLock::new())
        }

        /// Sets the thread to wake. Only the first call counts.
        pub(crate) fn adopt(&self, thread: &Thread) {
            self.0.get_or_init(|| thread.clone());
        }

        /// Whether the caller is the adopted thread.
        pub(crate) fn is_current_thread(&self) -> bool {
            self.0.get().is_some_and(|thread| thread.id() == thread::current().id())
        }

        /// The name of the adopted thread.
        pub(crate) fn thread_name(&self) -> Option<&str> {
            self.0.get()?.name()
        }

        pub(crate) fn unpark(&self) {
            if let Some(thread) = self.0.get() {
                thread.unpark();
            }
        }

        /// Sleeps until woken, or until `limit` has passed. Only the adopted thread may call it. It
        /// may return early, as the standard library's park does.
        pub(crate) fn park(&self, limit: Option<Duration>) {
            match limit {
                Some(limit) => thread::park_timeout(limit),
                None => thread::park(),
            }
        }
    }
}

#[cfg(any(loom, shuttle))]
mod model {
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
}
