//! Stopping a timer, dropping its last handle, and what becomes of the pending timeouts.

mod going_on;
mod last_handle;
mod limits;
mod races;
mod returned;

use crate::common::Record;
use wheelwork::Timeout;
use wheelwork::task::{Next, Run, TimerTask};

struct Told(Record<&'static str>);

impl TimerTask for Told {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.0.push("run");
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.push("cancelled");
    }
}
