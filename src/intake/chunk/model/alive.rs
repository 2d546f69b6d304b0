//! Notices a use of a chunk after its end, in the models.

use crate::base::sync::Arc;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, Weak};

/// The number of chunks that are not freed.
pub(super) static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Keeps the memory of the last chunks after their end.
static MEMORY: Mutex<Vec<Weak<dyn Any + Send + Sync>>> = Mutex::new(Vec::new());

/// A part of each chunk, by which a use after its end is noticed.
pub(in crate::intake) struct Alive(AtomicBool);

impl Default for Alive {
    fn default() -> Self {
        ALIVE.fetch_add(1, Relaxed);
        Self(AtomicBool::new(true))
    }
}

impl Alive {
    pub(in crate::intake) fn keep_memory_of(chunk: &Arc<impl Any + Send + Sync>) {
        let mut memory = MEMORY.lock().unwrap();
        if memory.len() == 64 {
            memory.drain(..32);
        }
        let chunk: Arc<dyn Any + Send + Sync> = chunk.clone();
        memory.push(Arc::downgrade(&chunk));
    }

    pub(in crate::intake) fn check(&self) {
        assert!(self.0.load(Relaxed), "a chunk was used after it was freed");
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
        ALIVE.fetch_sub(1, Relaxed);
    }
}
