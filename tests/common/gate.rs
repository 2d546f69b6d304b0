//! A task that blocks until the test releases it.

use std::sync::mpsc::{Receiver, Sender, channel};

/// Holds a task of `blocking_task` until it is opened or dropped.
pub struct Gate {
    entered: Receiver<()>,
    _closed: Sender<()>,
}

/// A task that blocks its thread, and its gate.
pub fn blocking_task() -> (impl FnOnce() + Send + 'static, Gate) {
    let (enter, entered) = channel();
    let (_closed, opened) = channel::<()>();
    let task = move || {
        let _ = enter.send(());
        let _ = opened.recv(); // ends with an error once the gate is gone
    };
    (task, Gate { entered, _closed })
}

impl Gate {
    /// Waits until the task runs.
    pub fn wait(&self) {
        self.entered.recv().expect("the task was not dropped");
    }

    /// Lets the task go on.
    pub fn open(self) {}
}
