//! What the tests under random schedules share: how many schedules they try, and a task's thread.

use shuttle::sync::{Condvar, Mutex};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

/// How many schedules are tried: `WHEELWORK_SHUTTLE_ITERATIONS`.
pub fn iterations() -> usize {
    let iterations = std::env::var("WHEELWORK_SHUTTLE_ITERATIONS").ok();
    iterations.map_or(1000, |n| n.parse().expect("a number of iterations"))
}

/// A task's thread waits here until it is woken.
#[derive(Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

impl Bell {
    pub fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(&self.clone().into()))
    }

    pub fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }

    pub fn block_on<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> F::Output {
        loop {
            if let Poll::Ready(output) = self.poll(future) {
                return output;
            }
            self.wait();
        }
    }
}
