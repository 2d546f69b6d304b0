//! What the model checkers lack, built on their primitives.

use super::{AtomicUsize, Mutex, Ordering};
use std::collections::VecDeque;

#[cfg(loom)]
pub(crate) mod thread {
    pub(crate) use loom::thread::*;

    /// Loom has no time.
    pub(crate) fn sleep(_time: std::time::Duration) {
        yield_now();
    }
}

/// Loom's macro does not accept `const`.
#[cfg(loom)]
macro_rules! local {
    ($(#[$doc:meta])* static $name:ident: $of:ty = const $value:block;) => {
        loom::thread_local! { $(#[$doc])* static $name: $of = $value; }
    };
}
#[cfg(loom)]
pub(crate) use local as thread_local;

/// A cell that any thread can change, built on the model checkers' primitives.
pub(crate) struct AtomicCell<T>(Mutex<T>);

impl<T: Default> AtomicCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn store(&self, value: T) {
        let previous = std::mem::replace(&mut *self.0.lock(), value);
        drop(previous);
    }

    pub(crate) fn load(&self) -> T
    where
        T: Copy,
    {
        *self.0.lock()
    }
}

/// A relaxed number.
pub(crate) struct AtomicWord(AtomicUsize);

impl AtomicWord {
    pub(crate) fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }

    pub(crate) fn store(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// An unbounded queue built on the model checkers' primitives.
pub(crate) struct SegQueue<T>(Mutex<VecDeque<T>>);

impl<T> SegQueue<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    pub(crate) fn push(&self, value: T) {
        self.0.lock().push_back(value);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// A bounded queue built on the model checkers' primitives.
pub(crate) struct ArrayQueue<T>(Mutex<VecDeque<T>>, usize);

impl<T> ArrayQueue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Mutex::new(VecDeque::new()), capacity)
    }

    pub(crate) fn push(&self, value: T) -> Result<(), T> {
        let mut queue = self.0.lock();
        if queue.len() == self.1 {
            return Err(value);
        }
        queue.push_back(value);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.1
    }
}
