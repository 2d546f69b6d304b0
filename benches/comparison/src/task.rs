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

impl<F: FnOnce() + Clone + Send + Sync + 'static> Task for F {
    fn run(self) {
        self();
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

/// A task that captures `WORDS` words and does nothing. Two are as large as an `Arc` and an id: what most
/// closures of users capture.
pub fn captures<const WORDS: usize>() -> impl Task {
    let words = [1u64; WORDS];
    move || _ = black_box(words)
}
