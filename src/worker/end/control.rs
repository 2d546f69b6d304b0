//! A `Control` has what only the timer's own handles and its worker share: the registry, the progress of the end,
//! the internal timeouts, and what runs. The handles close the timer through it, and the worker ends it.

use super::emptying::empty;
use super::progress::Progress;
use crate::base::logging::warning;
use crate::base::sync::{Arc, thread_local};
use crate::intake::Registry;
use crate::intake::context::{Gate, SharedContext};
use crate::time::tick::NEVER;
use crate::time::{FollowingTimer, Jobs};
use crate::timeout::{Calls, Erased, Internals, Unprocessed};
use crate::worker::running::Running;
use std::cell::Cell;
use std::time::Instant;

/// Shared by a timer's handles and its worker.
pub(crate) struct Control {
    pub(crate) context: SharedContext,
    pub(crate) gate: Arc<Gate>,
    pub(crate) registry: Arc<Registry<Erased>>,
    pub(crate) progress: Progress<Unprocessed>,
    pub(crate) internals: Internals,
    pub(in crate::worker) running: Running<Calls>,
    /// The process in which the worker's thread exists.
    pub(crate) process: u32,
}

impl Control {
    pub(crate) fn new(registry: Arc<Registry<Erased>>) -> Self {
        let (context, gate) = (registry.context.clone(), registry.gate.clone());
        let (progress, internals) = (Progress::new(context.clone()), Internals::new());
        let (running, process) = (Running::new(), std::process::id());
        Self { context, gate, registry, progress, internals, running, process }
    }

    /// Whether this process was forked from the one with the worker's thread. Only the thread that forks is in
    /// the child.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process && !self.context.alarm.parker().is_current_thread()
    }

    /// Closes the timer, so that its worker ends it.
    pub(crate) fn begin_stop(&self) {
        self.gate.close();
        self.context.alarm.call();
    }

    /// Closes the timer and cancels its pending timeouts, since nobody is left to collect them.
    pub(crate) fn cancel(&self) {
        let uncollected = self.progress.cancel();
        self.context.alarm.call();
        self.cancel_uncollected(uncollected);
    }

    /// Cancels timeouts that nobody can collect any more. Warns of them, because somebody has perhaps forgotten to
    /// keep a handle.
    fn cancel_uncollected(&self, uncollected: Vec<Unprocessed>) {
        let (timer, count) = (self.context.name(), uncollected.len());
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
            let (unprocessed, own) = empty(&self.registry, end);
            left = own;
            unprocessed
        });
        self.cancel_uncollected(uncollected);
        self.internals.end();
        left.into_iter().for_each(|(task, timeout)| timeout.tell_cancelled(task));
        self.progress.wake_waiting();
    }

    /// The type of the task that the worker is busy with, and since when.
    pub(crate) fn running(&self) -> Option<(&'static str, Instant)> {
        let (task, since) = self.running.get()?;
        Some((task.type_name(), self.gate.time.instant_at(since)))
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
        self.0.context.gate.close();
        self.0.end();
    }
}

impl FollowingTimer for Control {
    fn request_catch_up(&self) -> u64 {
        let request = self.progress.request_catch_up();
        self.context.alarm.call();
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
        let earliest = self.registry.earliest_deadline()?;
        let start = self.gate.scale.start_of(self.gate.tick_of(earliest));
        Some(start).filter(|&start| start != NEVER).map(|start| self.gate.time.instant_at(start))
    }

    fn jobs(&self) -> &Jobs {
        self.gate.time.jobs()
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
