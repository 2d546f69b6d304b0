//! The state that a timer's handles and its worker share: the shards, the command to end, and the
//! name of the timeout that the worker is busy with.
//!
//! The worker is *busy* while it runs a task or hands one to the executor. The timeout's *name* is
//! the index of its token plus one.
//!
//! | `running` | the worker | set by the worker |
//! |---|---|---|
//! | 0 | runs no task and hands none over | after the run, or after the hand-over |
//! | a name | runs that timeout's task, or hands it over | when it claims the timeout, under the lock of its shard |
//!
//! **A stop that finds 0 may end the timer itself.** It has already closed every shard, under the
//! shard's lock. A claim before the closing has set its name under the same lock, so the stop finds
//! that name or a later state. A claim after the closing finds nothing. So if the stop finds 0, no
//! task runs and none will. The stop's load acquires the worker's release, so the stop sees the
//! effects of the last task.

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

/// Shared by a timer's handles and its worker.
pub(crate) struct Control {
    pub(crate) context: Arc<Context>,
    pub(crate) shards: Box<[Arc<TimerShard>]>,
    pub(crate) lifecycle: Lifecycle<Unprocessed>,
    /// The name of the timeout that the worker is busy with; 0 for none. See the head.
    running: AtomicU64,
}

impl Control {
    pub(crate) fn new(context: Arc<Context>, shards: Box<[Arc<TimerShard>]>) -> Self {
        Self { context, shards, lifecycle: Lifecycle::new(), running: AtomicU64::new(0) }
    }

    /// Names the timeout that the worker runs or hands over. Relaxed: the worker holds the lock of
    /// the timeout's shard, which orders the store.
    pub(crate) fn begin_run(&self, token: Token) {
        self.running.store(u64::from(token.index) + 1, Ordering::Relaxed);
    }

    /// Clears the name after the user's code has returned. Release: pairs with the acquire in
    /// `finish_if_idle`.
    pub(crate) fn end_run(&self) {
        self.running.store(0, Ordering::Release);
    }

    /// Closes all shards. From now on, no shard admits a timeout or lets one be claimed.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            shard.lock().close();
        }
    }

    /// Ends the remaining timeouts as commanded and reports the end, unless that has happened.
    /// Close the shards and give the command first.
    pub(crate) fn finish(&self) {
        let uncollected = self.lifecycle.finish(|order| self.empty(order));
        uncollected.into_iter().for_each(Unprocessed::cancel);
    }

    /// Finishes in the worker's place if the worker is not busy. See the head.
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

    /// Waits for the worker to finish, or finishes in its place, for a stop with a limit that has
    /// given its command. `None` if the worker is busy until the limit.
    pub(crate) fn finish_until(&self, limit: Option<Instant>) -> Option<Vec<Unprocessed>> {
        self.finish_if_idle();
        self.lifecycle.wait_finished(limit).or_else(|| {
            self.finish_if_idle();
            self.lifecycle.wait_finished(limit)
        })
    }

    /// Reads all shards at one moment, under all of their locks. No other code holds two shards'
    /// locks at once.
    pub(crate) fn with_all_shards<R>(
        &self,
        read: impl FnOnce(&[MutexGuard<'_, State<BoxedTask>>]) -> R,
    ) -> R {
        let states: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
        read(&states)
    }

    /// A handle to the timeout that the worker is busy with. Reads the name again, and the phase,
    /// under the shard's lock, and pins the slot there. The worker sets the name under that lock,
    /// when it claims the timeout. It clears the name before it finishes an inline run under that
    /// lock. A run in an executor may end while the name is still set. Then the phase is not
    /// Running or Denied any more, since only the worker could claim that slot again. So the handle
    /// is to a timeout that was running at that moment.
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

/// Ends its timer when it is dropped. The worker owns it. So after a worker has ended, for whatever
/// cause, its timer does not accept timeouts that it would never run, and no stop waits for ever.
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

/// Whether this thread is the worker of any timer. Two workers that waited for each other would
/// wait for ever.
fn on_a_worker() -> bool {
    ON_A_WORKER.with(Cell::get)
}
