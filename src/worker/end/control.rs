//! A `Control` has what only the timer's own handles and its worker share: the progress of the end,
//! the internal timeouts, and what runs. The handles close the timer through it, and the worker ends it.

use super::emptying::empty;
use super::progress::Progress;
use crate::base::logging::warning;
use crate::base::sync::{Arc, thread_local};
use crate::intake::{Phase, Slot};
use crate::time::tick::NEVER;
use crate::time::{FollowingTimer, Jobs};
use crate::timeout::{Calls, Internals, Link, SharedRef, Unprocessed};
use crate::worker::running::Running;
use std::cell::Cell;
use std::time::Instant;

/// Shared by a timer's handles and its worker.
pub(crate) struct Control {
    pub(crate) shared: SharedRef,
    /// The way of schedulers to what is shared.
    pub(crate) timer: Link,
    pub(crate) progress: Progress<Unprocessed>,
    pub(crate) internals: Internals,
    pub(in crate::worker) running: Running<Calls>,
    /// The process in which the worker's thread exists.
    pub(crate) process: u32,
}

impl Control {
    pub(crate) fn new(shared: SharedRef) -> Self {
        let (timer, internals) = (Link::to(&shared), Internals::new());
        let progress = Progress::new(shared.gate.clone());
        let (running, process) = (Running::new(), std::process::id());
        Self { shared, timer, progress, internals, running, process }
    }

    /// Whether this process was forked from the one with the worker's thread. Only the thread that forks is in
    /// the child.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process && !self.shared.alarm.parker().is_current_thread()
    }

    /// Closes the timer, so that its worker ends it.
    pub(crate) fn begin_stop(&self) {
        self.shared.gate.close();
        self.shared.alarm.call();
    }

    /// Closes the timer and cancels its pending timeouts, since nobody is left to collect them.
    pub(crate) fn cancel(&self) {
        let uncollected = self.progress.cancel();
        self.shared.alarm.call();
        self.cancel_uncollected(uncollected);
    }

    /// Cancels timeouts that nobody can collect any more. Warns of them, because somebody has perhaps forgotten to
    /// keep a handle.
    fn cancel_uncollected(&self, uncollected: Vec<Unprocessed>) {
        let (timer, count) = (self.shared.name(), uncollected.len());
        if count > 0 {
            warning!(
                [timer = timer, timeouts = count],
                "{timer}: the last handle was dropped, and {count} pending timeouts are cancelled: \
                 expected a stop, or a handle that is kept"
            );
        }
        uncollected.into_iter().for_each(Unprocessed::cancel);
    }

    /// Ends the remaining timeouts and reports the end. The tasks that wake wakers, and those of internal timeouts, come
    /// afterwards, so that no stop waits for them.
    fn end(&self) {
        let mut left = Vec::new();
        let uncollected = self.progress.finish(|end| {
            let (unprocessed, own) = empty(&self.shared, end);
            left = own;
            unprocessed
        });
        self.cancel_uncollected(uncollected);
        self.internals.end();
        left.into_iter().for_each(|(task, timeout)| timeout.tell_cancelled(task));
        self.progress.wake_waiting();
    }

    /// The earliest deadline of all pending timeouts, the crate's own included. `None` if all wait for ever.
    pub(crate) fn earliest_deadline(&self) -> Option<u64> {
        let mut earliest = NEVER;
        self.shared.table.for_each(|chunk| {
            let next = chunk.slots().filter_map(Slot::pending_deadline).min();
            earliest = next.map_or(earliest, |next| next.min(earliest));
        });
        Some(earliest).filter(|&deadline| deadline != NEVER)
    }

    /// The number of pending timeouts that are not in the wheel.
    pub(crate) fn queue_depth(&self) -> usize {
        let mut depth = 0;
        self.shared.table.for_each(|chunk| {
            let new = |slot: &&Slot<_>| slot.phase() == Phase::New;
            depth += if chunk.internal { 0 } else { chunk.slots().filter(new).count() };
        });
        depth
    }

    /// The type of the task that the worker is busy with, and since when.
    pub(crate) fn running(&self) -> Option<(&'static str, Instant)> {
        let (task, since) = self.running.get()?;
        Some((task.type_name(), self.shared.gate.time.instant_at(since)))
    }
}

/// Ends its timer when it is dropped. The worker owns it. So when the worker ends, for whatever reason,
/// the timer is closed and accepts no timeout that would never run, and no stop waits for ever.
pub(crate) struct Ending(Arc<Control>);

impl Ending {
    pub(crate) fn of(control: Arc<Control>) -> Self {
        Self(control)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.shared.gate.close();
        self.0.end();
    }
}

impl FollowingTimer for Control {
    fn request_catch_up(&self) -> u64 {
        let request = self.progress.request_catch_up();
        self.shared.alarm.call();
        request
    }

    fn wait(&self, request: u64) -> bool {
        let may_wait = !on_a_worker() && !self.is_forked();
        if may_wait {
            self.progress.wait_caught_up(request);
        }
        may_wait
    }

    fn next_due(&self) -> Option<Instant> {
        let earliest = self.earliest_deadline()?;
        let start = self.shared.gate.scale.start_of(self.shared.gate.tick_of(earliest));
        Some(start)
            .filter(|&start| start != NEVER)
            .map(|start| self.shared.gate.time.instant_at(start))
    }

    fn jobs(&self) -> &Jobs {
        self.shared.gate.time.jobs()
    }
}

thread_local! {
    static ON_A_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the worker of a timer.
pub(super) fn mark_worker() {
    ON_A_WORKER.with(|on| on.set(true));
}

/// Whether this thread is the worker of any timer. A worker must not wait for another worker, because
/// two that wait for each other would wait for ever.
fn on_a_worker() -> bool {
    ON_A_WORKER.with(Cell::get)
}
