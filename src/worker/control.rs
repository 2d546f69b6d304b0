//! Where a timer's handles and its worker meet: the shards, the order to end, and the task that the
//! worker is busy with.
//!
//! | `running` | the worker | set by the worker |
//! |---|---|---|
//! | 0 | runs no task and hands none over | after the run, or the handing over |
//! | a name | runs that task, or hands it over | when it claims the task, under the lock of its shard |
//!
//! **A stop that finds 0 may end the timer itself.** It has closed every shard before, under its
//! lock. A claim that came before the closing has set its name under the same lock, so the stop finds
//! that name or a later state; a claim that comes after the closing finds nothing. So with 0 no task
//! runs and none will. The stop's load acquires the worker's release, so it sees what the last task
//! has done.

use crate::base::sync::{Arc, AtomicU64, MutexGuard, Ordering, thread_local};
use crate::shard::context::Context;
use crate::shard::{self, Phase, State};
use crate::time::Follow;
use crate::timeout::Unprocessed;
use crate::timeout::{BoxedTask, Timeout, TimerShard};
use crate::wheel::Token;
use crate::worker::lifecycle::{Command, Lifecycle};
use std::cell::Cell;
use std::time::Instant;

pub(crate) struct Control {
    pub(crate) context: Arc<Context>,
    pub(crate) shards: Box<[Arc<TimerShard>]>,
    pub(crate) lifecycle: Lifecycle<Unprocessed>,
    /// The wheel's name for the timeout being handed over, plus one; 0 for none. See the head.
    running: AtomicU64,
}

impl Control {
    pub(crate) fn new(context: Arc<Context>, shards: Box<[Arc<TimerShard>]>) -> Self {
        Self { context, shards, lifecycle: Lifecycle::new(), running: AtomicU64::new(0) }
    }

    /// The worker says which timeout it runs or hands over: under the lock of the timeout's shard,
    /// which orders the store, so it is relaxed.
    pub(crate) fn begin_run(&self, token: Token) {
        self.running.store(u64::from(token.index) + 1, Ordering::Relaxed);
    }

    /// The user's code has returned. Release: pairs with the acquire in `finish_if_idle`.
    pub(crate) fn end_run(&self) {
        self.running.store(0, Ordering::Release);
    }

    /// Ends admission and expiry: after this, no shard accepts a timeout or lets one be claimed.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            shard.lock().close();
        }
    }

    /// Ends every timeout that is left, as ordered, and reports the end, unless somebody has. Close
    /// the shards and give the order first.
    pub(crate) fn finish(&self) {
        let uncollected = self.lifecycle.finish(|order| self.empty(order));
        uncollected.into_iter().for_each(Unprocessed::cancel);
    }

    /// Finishes in the worker's place, if the worker runs no task and hands none over. See the head.
    fn finish_if_idle(&self) {
        if self.running.load(Ordering::Acquire) == 0 {
            self.finish();
        }
    }

    /// Takes the remaining timeouts out of the shards, ordered by deadline.
    fn empty(&self, order: Command) -> Vec<Unprocessed> {
        let end = match order {
            Command::Cancel => Phase::Cancelled,
            Command::Run | Command::Return => Phase::Returned,
        };
        let mut left = Vec::new();
        for shard in &self.shards {
            shard.lock().empty_into(end, |index, deadline, task| {
                let timeout = Timeout::pinned(shard.clone(), index);
                left.push(Unprocessed::new(task, timeout, self.context.time.instant_at(deadline)));
            });
        }
        self.context.ended(left.len());
        left.sort_by_key(Unprocessed::deadline);
        left
    }

    /// For a stop with a limit, after its order: waits for the worker to finish, or finishes in its
    /// place. `None` if a task keeps the worker until then.
    pub(crate) fn finish_until(&self, limit: Option<Instant>) -> Option<Vec<Unprocessed>> {
        self.finish_if_idle();
        self.lifecycle.wait_finished(limit).or_else(|| {
            self.finish_if_idle();
            self.lifecycle.wait_finished(limit)
        })
    }

    /// Reads all shards at one moment: all are held, and no thread ever holds two otherwise.
    pub(crate) fn with_all_shards<R>(
        &self,
        read: impl FnOnce(&[MutexGuard<'_, State<BoxedTask>>]) -> R,
    ) -> R {
        let states: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
        read(&states)
    }

    /// The timeout that the worker is busy with. The name is read again under the shard's lock, where
    /// the pin is taken: the worker names what it runs when it claims it under that lock, and takes
    /// the name back before it ends the run there. So the handle is to a timeout that was running at
    /// that moment.
    pub(crate) fn running(&self) -> Option<Timeout> {
        let name = self.running.load(Ordering::Relaxed);
        let token = Token { index: name.checked_sub(1)? as u32, version: 0 };
        let (number, index) = shard::locate(token);
        let shard = self.shards.get(number)?;
        let mut state = shard.lock();
        let phase = state.phase(index);
        let still = self.running.load(Ordering::Relaxed) == name;
        if !still || !matches!(phase, Phase::Running | Phase::Denied) {
            return None;
        }
        state.pin(index);
        drop(state);
        Some(Timeout::pinned(shard.clone(), index))
    }
}

/// Ends its timer when it is dropped. The worker owns it, so a worker that ends for any cause leaves
/// no timer that accepts timeouts and never runs them, and no stop that waits for ever.
pub(crate) struct Ending(Arc<Control>);

impl Ending {
    pub(crate) fn of(control: Arc<Control>) -> Self {
        Self(control)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
        self.0.lifecycle.command_return();
        self.0.finish();
    }
}

impl Follow for Control {
    fn request_catch_up(&self) -> u64 {
        let request = self.lifecycle.request_catch_up();
        self.context.alarm.call();
        request
    }

    fn wait(&self, request: u64) {
        if !on_a_worker() {
            self.lifecycle.wait_caught_up(request);
        }
    }
}

thread_local! {
    static ON_A_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the worker of a timer.
pub(crate) fn mark_worker() {
    ON_A_WORKER.with(|on| on.set(true));
}

/// Whether this thread is the worker of any timer: two of them that wait for each other would wait
/// for ever.
fn on_a_worker() -> bool {
    ON_A_WORKER.with(Cell::get)
}
