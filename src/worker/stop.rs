//! Stop: the worker's thread from its start to its end, whatever ends it.
//!
//! What becomes of the timeouts is elsewhere: the command and the report in `lifecycle`, the emptying of the
//! slots in `control`, and a thread that schedules during the stop in `heap/context`.

use super::Worker;
use super::control;
use crate::base::isolate;
use crate::base::logging::warning;
use crate::base::sync::thread;
use crate::executor::Dispatch;
use crate::wheel::Exact;

impl<W: Exact> Worker<W> {
    /// Drops the worker's fields and ends the timer. The executor is dropped before the end is
    /// reported, since its drop is user code. The other fields are dropped after it, so threads
    /// that wait for the end do not wait for them.
    pub(crate) fn end(self) {
        let Self { control, dispatch, ending, .. } = self;
        control.running.abort(); // a defect may have interrupted a run
        dispatch.into_iter().for_each(Dispatch::discard);
        drop(ending);
    }
}

/// Runs the worker's thread from its start to its end. Afterwards the timer is closed and no thread
/// waits for ever, even if `end` panics (see `Ending`).
pub(crate) fn run_thread<W: Exact>(mut worker: Worker<W>) {
    control::mark_worker();
    worker.control.context.alarm.parker().adopt(&thread::current());
    crate::time::timer_slack::fit_to(worker.context().scale.tick_nanos());
    if isolate::panics(|| worker.run()) {
        worker.control.close();
        worker.control.lifecycle.command_return();
        warning!("the worker stopped because of a defect; its timer is closed");
    }
    worker.end();
}
