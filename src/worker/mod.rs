//! The worker: one thread that looks for new timeouts, expires those that are due, sweeps, and sleeps until
//! the next tick in which something may be due.
//!
//! The worker owns the wheel. Other threads meet it in the slots (`intake/slot`), the pending queue
//! (`intake/pending`), the alarm that wakes it (`intake/alarm`), the requests and times of `intake/shared`, the table
//! and the pools of chunks, and the end of the timer (`end`). The protocol of each is at the head of its file. On the
//! system's clock, until it ends, and outside tasks and executors, the worker only uses `try_lock`, and tries again
//! later if another thread has the lock. (The exception is the lock of a chunk's reference to itself, held for a clone
//! of an `Arc`.) It waits for another thread only at a pool of chunks: if it pops while that thread's push to the same
//! place, or pop at the end of a block, is in progress, or if it pushes while that thread's push adds memory.
//!
//! A *pass* is one turn of the loop in `Worker::run`. `run_thread` is the thread from its start to its end.
//!
//! - `chunks`: the chunks of the timer, and by when the worker looks at each
//! - `look`: takes in the pending queue, looks at chunks for due timeouts, gives these out, and files near ones in the
//!   wheel
//! - `tick_queue`: the due timeouts of one tick, in the order of scheduling
//! - `expire`: hands due timeouts to the executor
//! - `sweep_and_release`: sweeps dead entries out of the wheel (`wheel/sweep` says when), and releases vacant chunks
//! - `warnings`: warns of refusals, of a backlog, and of timeouts that run late
//! - `sleep`: drops dead entries that would be next, and sleeps until the next live one
//! - `end`: how the timer ends: closing, emptying, the report, and who waits for it

pub(crate) mod chunks;
mod end;
mod expire;
mod look;
mod sleep;
mod sweep_and_release;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod tick_queue;
mod warnings;

pub(crate) use end::{Control, Ending};

use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Ordering, fence, thread};
use crate::executor::Dispatch;
use crate::intake::shared::Gate;
use crate::intake::{Chunk, Collected, WorkerTable};
use crate::time::{Pace, timer_slack};
use crate::timeout::{Erased, Shared};
use crate::wheel::{Batch, Exact, Filing};
use chunks::Chunks;
use end::mark_worker;
use look::Look;
use sleep::Sleep;
use sweep_and_release::Tidy;
use tick_queue::TickQueue;
use warnings::Warnings;

/// The worker's state. `W` is the structure of the wheel.
pub(crate) struct Worker<W> {
    /// Before `chunks`, whose drop takes all chunks out of the table: the end closes them there.
    control: Ending,
    filing: Filing<W>,
    dispatch: Option<Dispatch>,
    pace: Pace,
    chunks: Chunks<Erased>,
    look: Look,
    due: TickQueue,
    /// Free slots that are not given back yet.
    freed: Collected<Erased>,
    /// The index of the slot that was prefetched last.
    prefetched: u32,
    tidy: Tidy,
    sleep: Sleep,
    /// The tick of the last pass.
    last_pass: u64,
    /// The last time that the clock returned. Clocks do not go back, so it is never in the future.
    known: u64,
    /// Whether the clock panicked in this pass.
    blind: bool,
    warnings: Warnings,
}

impl<W: Exact> Worker<W> {
    pub(crate) fn new(
        control: Ending,
        table: WorkerTable<Chunk<Erased>>,
        mut wheel: W,
        dispatch: Option<Dispatch>,
        pace: Pace,
    ) -> Self {
        // Tick 0 begins at the origin, and a zero delay means the next tick after that.
        wheel.take_next(0, &mut Batch::default(), |_| ());
        Self {
            control,
            filing: Filing::new(wheel),
            dispatch,
            pace,
            chunks: Chunks::new(table),
            look: Look::default(),
            due: TickQueue::default(),
            freed: Collected::default(),
            prefetched: 0,
            tidy: Tidy::default(),
            sleep: Sleep::default(),
            last_pass: 0,
            known: 0,
            blind: false,
            warnings: Warnings::default(),
        }
    }

    /// Runs the worker's thread from its start to its end. Afterwards the timer is closed and no thread waits for ever, even
    /// if a drop panics (see `Ending`). The executor, which is user code, is dropped last, so that no stop with a limit waits
    /// for that.
    pub(crate) fn run_thread(mut self) {
        mark_worker();
        self.shared().alarm.parker().adopt(&thread::current());
        timer_slack::fit_to(self.gate().scale.tick_nanos());
        if catch_panic::panics(|| self.run()) {
            self.gate().close();
            warning!("the worker stopped because of a defect; its timer is closed");
        }
        let Self { control, dispatch, .. } = self;
        control.running.end(); // a defect may have interrupted a run
        drop(control);
        dispatch.into_iter().for_each(Dispatch::discard);
    }

    /// One pass after the other, until the timer is closed.
    fn run(&mut self) {
        while !self.gate().is_closed() {
            let request = self.control.progress.requested();
            self.blind = false;
            let now = self.now();
            let tick = self.gate().scale.tick_at(now);
            self.gate().raise_floor(tick);
            // Pairs with the fence after the push of an entry: this pass finds a timeout that another thread
            // announces meanwhile, or that thread reads a clock that shows at least `now`. Without this,
            // a clock that stands still after passing a deadline could cause no further pass.
            fence(Ordering::SeqCst);
            self.look.first = self.filing.current_tick();
            self.take_in(tick);
            self.expire(now);
            self.file_near();
            let cleans = self.release() | self.sweep();
            self.warn();
            if !cleans && !self.shared().due_turn.is_made() && self.confirm_next() {
                self.control.progress.caught_up(request);
                self.sleep(request);
            }
        }
        self.warn_of_rest();
    }

    /// Reads the clock. Returns the last known time if the clock panics.
    fn now(&mut self) -> u64 {
        match self.shared().now_contained() {
            Some(now) => self.known = now,
            None => self.blind = true,
        }
        self.known
    }

    /// Reads the clock, and returns the tick that it shows.
    fn tick_now(&mut self) -> u64 {
        let now = self.now();
        self.gate().scale.tick_at(now)
    }

    fn shared(&self) -> &Shared {
        &self.control.shared
    }

    fn gate(&self) -> &Gate {
        &self.control.shared.gate
    }
}
