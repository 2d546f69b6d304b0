//! A `Control` has what only the timer's own handles and its worker share: the registry, the progress of the end,
//! the internal timeouts and the running one. Both end the timer through it.

use super::emptying::empty;
use super::progress::Progress;
use super::running::Running;
use crate::base::logging::warning;
use crate::base::sync::{Arc, thread_local};
use crate::intake::context::{Gate, SharedContext};
use crate::intake::{Registry, locate};
use crate::time::tick::NEVER;
use crate::time::{FollowingTimer, Jobs};
use crate::timeout::{Erased, Internals, Timeout, Unprocessed};
use std::cell::Cell;
use std::time::Instant;

/// Shared by a timer's handles and its worker.
pub(crate) struct Control {
    pub(crate) context: SharedContext,
    pub(crate) gate: Arc<Gate>,
    pub(crate) registry: Arc<Registry<Erased>>,
    pub(crate) progress: Progress<Unprocessed>,
    pub(crate) internals: Internals,
    pub(in crate::worker) running: Running,
    /// The process in which the worker's thread exists.
    process: u32,
}

impl Control {
    pub(crate) fn new(registry: Arc<Registry<Erased>>) -> Self {
        let (context, gate) = (registry.context.clone(), registry.gate.clone());
        let (progress, internals) = (Progress::new(context.clone()), Internals::new());
        let (running, process) = (Running::default(), std::process::id());
        Self { context, gate, registry, progress, internals, running, process }
    }

    /// Whether this process was forked from the one with the worker's thread. Only the thread that forks is in
    /// the child.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process && !self.context.alarm.parker().is_current_thread()
    }

    /// Closes the timer, so that its worker ends it. In a forked child, ends it here.
    pub(crate) fn begin_stop(&self) {
        self.gate.close();
        if self.is_forked() { self.end() } else { self.context.alarm.call() }
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

    /// Ends the timer in the place of its worker's thread, or on it. The tasks that wake wakers, and those of
    /// internal timeouts, come after the end is reported, so that no stop with a limit waits for them.
    fn end(&self) {
        self.finish();
        self.progress.wait_emptied(); // a stop that empties the slots leaves tasks to this thread
        self.internals.end();
        self.progress.wake_waiting();
    }

    /// Ends the remaining timeouts and reports the end. Does nothing if a thread has begun to do so.
    fn finish(&self) {
        let uncollected = self.progress.finish(|end| empty(&self.registry, &self.internals, end));
        self.cancel_uncollected(uncollected);
    }

    /// Ends the timer in the worker's place if the worker is not busy.
    fn finish_if_idle(&self) {
        if self.running.close_if_idle() {
            self.finish();
        }
    }

    /// Waits until the timer has ended, or ends it in the worker's place. A stop with a limit calls it
    /// after `begin_stop`. Returns `None` if the worker is busy until the limit.
    pub(crate) fn finish_until(&self, limit: Option<Instant>) -> Option<Vec<Unprocessed>> {
        self.finish_if_idle();
        self.progress.wait_finished(limit).or_else(|| {
            self.finish_if_idle();
            self.progress.wait_finished(limit)
        })
    }

    /// A handle to the timeout that the worker is busy with.
    #[allow(unsafe_code)] // the protocol of `running` is not one of types
    pub(crate) fn running(&self) -> Option<Timeout> {
        self.running.ask(|index| {
            let (id, offset) = locate(index);
            let chunk = self.registry.chunk(id as u32)?;
            // SAFETY: the worker does not finish the named timeout while this thread asks (see `running`).
            let pin = unsafe { chunk.pin_running(offset) };
            pin.map(Timeout::from)
        })
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

#[cfg(all(test, loom))]
mod model;
