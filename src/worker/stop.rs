//! Stop: how the worker's thread ends, whatever ends it.

use super::Worker;
use super::control;
use crate::base::isolate;
use crate::base::logging::warning;
use crate::base::sync::thread;
use crate::executor::Dispatch;
use crate::wheel::Exact;

impl<W: Exact> Worker<W> {
    /// Drops what the worker owns, and ends the timer. The executor goes first: its drop is a user's
    /// code, and nobody who waits for the end should wait for more than it.
    pub(crate) fn end(self) {
        let Self { control, dispatch, ending, .. } = self;
        control.end_run(); // also after a run that was not seen to its end
        dispatch.into_iter().for_each(Dispatch::discard);
        drop(ending);
    }
}

/// The thread's whole life. Whatever ends the worker, even within `end`, its timer is closed then, and
/// nobody waits for ever (see `Ending`).
pub(crate) fn live<W: Exact>(mut worker: Worker<W>) {
    control::mark_worker();
    worker.control.context.alarm.parker().adopt(&thread::current());
    crate::time::timer_slack::fit_to(worker.context().scale.tick_nanos());
    if isolate::panics(|| worker.run()) {
        worker.control.close();
        worker.control.lifecycle.command_return();
        warning!("the worker stopped by a defect; its timer is closed");
    }
    worker.end();
}
