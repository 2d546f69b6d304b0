//! Lookups in the shards: whether an entry of the wheel still stands for a timeout. A sweep asks
//! this, and the worker before a sleep.

use crate::base::sync::{Arc, MutexGuard};
use crate::shard::{self, State};
use crate::time::tick::TickScale;
use crate::timeout::{BoxedTask, TimerShard};
use crate::wheel::{Due, Standing, Token};

/// The number of lookups under one hold of a shard's lock. Producers wait for the lock meanwhile.
pub(super) const LOOKUPS_PER_LOCK: usize = 64;

/// Looks up entries. Keeps the lock of the last entry's shard, since the next entry is often in the
/// same shard.
pub(super) struct Lookup<'a> {
    shards: &'a [Arc<TimerShard>],
    /// The shard whose lock is held, with its guard. Never two locks at a time.
    pub(super) held: Option<(usize, MutexGuard<'a, State<BoxedTask>>)>,
    /// The number of lookups since the lock was taken.
    pub(super) looked: usize,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(shards: &'a [Arc<TimerShard>]) -> Self {
        Self { shards, held: None, looked: 0 }
    }

    /// Whether an entry stands for a timeout. If not, counts it out: the caller drops it.
    pub(super) fn stands(&mut self, token: Token) -> bool {
        self.look(token, |state, index| state.stands(index, token.version))
    }

    /// Whether an entry is dead, pushed back, or due in its tick. A dead entry is counted out: the
    /// caller drops it.
    pub(super) fn standing(&mut self, due: Due, scale: TickScale) -> Standing {
        let Due { tick, token } = due;
        self.look(token, |state, index| {
            if !state.stands(index, token.version) {
                return Standing::Dead;
            }
            let later = scale.tick_not_before(state.deadline(index));
            if later > tick { Standing::Later(later) } else { Standing::Due }
        })
    }

    /// Whether a confirmed entry still stands for a timeout that is due in its tick. The entry
    /// stays in the wheel either way, so it is not counted out.
    pub(super) fn is_still_due(&mut self, due: Due, scale: TickScale) -> bool {
        let Due { tick, token } = due;
        self.look(token, |state, index| {
            state.is_pending(index, token.version)
                && scale.tick_not_before(state.deadline(index)) <= tick
        })
    }

    fn look<R>(&mut self, token: Token, ask: impl FnOnce(&mut State<BoxedTask>, u32) -> R) -> R {
        let (number, index) = shard::locate(token);
        if self.held.as_ref().is_some_and(|&(held, _)| held != number) {
            self.let_go();
        }
        let lock = || (number, self.shards[number].lock());
        let (_, state) = self.held.get_or_insert_with(lock);
        let answer = ask(state, index);
        self.looked += 1;
        if self.looked == LOOKUPS_PER_LOCK {
            self.let_go();
        }
        answer
    }

    fn let_go(&mut self) {
        self.held = None;
        self.looked = 0;
    }
}
