//! How a future that sleeps becomes a timeout: it is polled once, with a waker that runs the task.

use crate::task::Task;
use std::pin::Pin;
use std::task::Context;

pub(super) fn poll_once<F: Future>(future: Pin<&mut F>, task: impl Task) {
    let waker = task.waker();
    if future.poll(&mut Context::from_waker(&waker)).is_ready() {
        waker.wake();
    }
}
