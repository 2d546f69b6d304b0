//! Where a timer's handles and its worker meet: the shards, the order to end, and what the worker is
//! busy with.

use crate::clock::Follow;
use crate::inbox::{self, Phase, State};
use crate::lifecycle::Lifecycle;
use crate::shared::Shared;
use crate::sync::{Arc, AtomicU64, MutexGuard, Ordering, thread_local};
use crate::timeout::{Task, Timeout, TimerShard};
use crate::unprocessed::Unprocessed;
use crate::wheel::Token;
use std::cell::Cell;

/// In the name of the running timeout.
const INLINE: u64 = 1 << 63;

pub(crate) struct Station {
    pub(crate) shared: Arc<Shared>,
    pub(crate) shards: Box<[Arc<TimerShard>]>,
    pub(crate) lifecycle: Lifecycle<Unprocessed>,
    /// The wheel's name for the timeout being handed over, plus one; 0 for none. Relaxed: the lock of
    /// its shard orders it. See `running`.
    running: AtomicU64,
}

impl Station {
    pub(crate) fn new(shared: Arc<Shared>, shards: Box<[Arc<TimerShard>]>) -> Self {
        Self { shared, shards, lifecycle: Lifecycle::new(), running: AtomicU64::new(0) }
    }

    /// The worker says which timeout it hands over, and whether it runs it itself.
    pub(crate) fn set_running(&self, token: Option<Token>, inline: bool) {
        let name = token.map_or(0, |token| u64::from(token.index) + 1);
        self.running.store(name | if inline { INLINE } else { 0 }, Ordering::Relaxed);
    }

    /// Ends admission: after this, no shard accepts a timeout.
    pub(crate) fn close(&self) {
        for home in &self.shards {
            home.shard.lock().close();
        }
    }

    /// Reads all shards at one moment: all are held, and no thread ever holds two otherwise.
    pub(crate) fn with_all_shards<R>(
        &self,
        read: impl FnOnce(&[MutexGuard<'_, State<Task>>]) -> R,
    ) -> R {
        let states: Vec<_> = self.shards.iter().map(|home| home.shard.lock()).collect();
        read(&states)
    }

    /// The timeout that the worker is busy with. The name is read again under the shard's lock, where
    /// the pin is taken: the worker names what it runs after it has claimed it under that lock, and
    /// takes the name back before it ends the run there. So the handle is to a timeout that was
    /// running at that moment.
    pub(crate) fn running(&self) -> Option<Timeout> {
        let name = self.running.load(Ordering::Relaxed);
        let token = Token { index: (name & !INLINE).checked_sub(1)? as u32, version: 0 };
        let (number, index) = inbox::locate(token);
        let home = self.shards.get(number)?;
        let mut state = home.shard.lock();
        let phase = state.phase(index);
        let still = self.running.load(Ordering::Relaxed) == name;
        // The worker's own handle keeps its pin while it runs this, whatever becomes of the phase.
        let pinned = matches!(phase, Phase::Running | Phase::Denied) || name & INLINE != 0;
        if !still || !pinned {
            return None;
        }
        state.pin(index);
        drop(state);
        Some(Timeout::pinned(home.clone(), index))
    }
}

impl Follow for Station {
    fn ask(&self) -> u64 {
        let request = self.lifecycle.ask();
        self.shared.alarm.call();
        request
    }

    fn wait(&self, request: u64) {
        if !on_a_worker() {
            self.lifecycle.wait_answered(request);
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
