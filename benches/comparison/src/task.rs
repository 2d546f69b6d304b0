//! What timeouts do when they expire; the same for every rival.

use std::hint::black_box;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// A task that any rival can run: called, or woken.
pub trait Task: Clone + Send + Sync + 'static {
    fn run(self);

    /// A waker that runs it. One allocation, as for a boxed closure with captures.
    fn waker(self) -> Waker {
        Waker::from(Arc::new(RunOnWake(self)))
    }
}

pub struct RunOnWake<T>(pub T);

impl<T: Task> Wake for RunOnWake<T> {
    fn wake(self: Arc<Self>) {
        self.0.clone().run();
    }
}

/// Captures nothing and does nothing.
#[derive(Clone)]
pub struct Nothing;

impl Task for Nothing {
    fn run(self) {}

    fn waker(self) -> Waker {
        Waker::noop().clone()
    }
}

/// Captures so many words and does nothing.
#[derive(Clone, Copy)]
pub struct Captures<const WORDS: usize>(pub [u64; WORDS]);

impl<const WORDS: usize> Task for Captures<WORDS> {
    fn run(self) {
        black_box(self.0);
    }
}

/// As large as an `Arc` and an id: what most closures of users capture.
pub const TWO_WORDS: Captures<2> = Captures([1, 2]);
