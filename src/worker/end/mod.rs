//! End: closes a timer, empties its slots and reports that. Also runs the worker's thread, from its start to its
//! end.
//!
//! Concepts:
//!
//! - A *closed* timer admits no timeout, and its worker leaves its loop (`Worker::run`).
//! - To *empty* the slots is to end all pending timeouts: they are returned, or cancelled if nobody is left to
//!   collect them. To *finish* the timer is to empty the slots and to report the end. The worker's thread does it once,
//!   at its end, for whatever reason (`Ending`). If a build fails, there is no
//!   worker, and the builder's thread does it.
//! - A timeout is *unprocessed* if the emptying has returned it.
//!
//! | state | where | says | a test that fails without it |
//! |---|---|---|---|
//! | CLOSED | `intake/shared` | a stop, the drop of the last handle, or the end of the worker has closed the timer | `rule_01_admission_against_close` |
//! | CANCELS | `intake/shared` | the last handle was dropped, also after a stop that gave up waiting | `rule_01_a_drop_leaves_no_timeout_uncollected` |
//! | EMPTIED | `intake/shared` | the worker has begun to empty the slots | `rule_01_close_against_a_run_that_goes_on` |
//! | finished | `progress` | the unprocessed timeouts are reported | `rule_09_two_threads_stop_one_timer` |
//! | `process` | `control` | where the worker's thread exists | `tests/fork.rs` |
//! | `ON_A_WORKER` | `control` | this thread must not wait for a worker | `rule_09_workers_do_not_wait_for_each_other` |
//!
//! Internal timeouts, those that only wake a waker, and the wakers that wait for the end come after the report, so that
//! no stop waits for them (`Control::end`).
//!
//! **Closing against a producer.** The closing thread does not wait for a producer that is about to arm a slot.
//! Instead, the producer checks afterwards whether the timer was closed:
//!
//! | step | a producer | the closing thread, then the emptying thread |
//! |---|---|---|
//! | 1 | arms the slot | sets CLOSED |
//! | 2 | fence (`Chunk::announce_new`) | fence |
//! | 3 | if CLOSED: takes the timeout back, unless it has ended | empties all slots |
//!
//! One of the two fences comes first. If the producer's does, the emptying finds the slot armed. If the other
//! does, the producer sees CLOSED. Both can happen. Then the slot's word decides, and the timeout is either
//! refused or returned. A timeout that has run by then and has gone on is not refused: the producer cancels it.
//! The worker claims nothing after it has seen CLOSED.
//!
//! **Emptying against a run that goes on.** Such a timeout was admitted before. It goes back into its slot even
//! if the timer is closed, and the emptying finds it there. If the emptying has begun, its runner cancels it. The
//! steps are the same, with EMPTIED in place of CLOSED: the worker sets it, and its fence comes before the first slot.
//!
//! **Who collects.** The worker, which finishes the timer, reads CANCELS again under the lock of `progress`. The drop
//! of the last handle takes that lock after it has set CANCELS. So exactly one of the two gets the unprocessed
//! timeouts.
//!
//! - `control`: the state that the timer's handles share with the worker
//! - `emptying`: ends what is pending, and returns it in the order of deadlines
//! - `progress`: the report, and the threads that wait for it

mod control;
mod emptying;
mod progress;

pub(crate) use control::{Control, Ending};

use super::Worker;
use crate::base::catch_panic;
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
        control.running.end(); // a defect may have interrupted a run
        drop(ending); // first, so that no stop with a limit waits for the drop of the executor
        dispatch.into_iter().for_each(Dispatch::discard);
    }
}

/// Runs the worker's thread from its start to its end. Afterwards the timer is closed and no thread
/// waits for ever, even if `end` panics (see `Ending`).
pub(crate) fn run_thread<W: Exact>(mut worker: Worker<W>) {
    control::mark_worker();
    worker.control.shared.alarm.parker().adopt(&thread::current());
    crate::time::timer_slack::fit_to(worker.control.shared.gate.scale.tick_nanos());
    if catch_panic::panics(|| worker.run()) {
        worker.control.shared.gate.close();
        warning!("the worker stopped because of a defect; its timer is closed");
    }
    worker.end();
}
