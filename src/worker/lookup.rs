//! What a walk over the wheel, and a look ahead, ask the shards: whether an entry still stands for
//! a timeout.

use crate::base::sync::{Arc, MutexGuard};
use crate::shard::{self, State};
use crate::time::tick::TickScale;
use crate::timeout::{BoxedTask, TimerShard};
use crate::wheel::{Due, Standing, Token};

/// Entries looked up under one hold of a shard's lock, since producers wait for it meanwhile.
pub(super) const LOOKUPS_PER_LOCK: usize = 64;

/// Keeps the lock of the shard of the last entry, for the next is often of that shard too.
pub(super) struct Lookup<'a> {
    shards: &'a [Arc<TimerShard>],
    /// Never two locks at a time.
    pub(super) held: Option<(usize, MutexGuard<'a, State<BoxedTask>>)>,
    /// How many were looked up since the lock was taken.
    pub(super) looked: usize,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(shards: &'a [Arc<TimerShard>]) -> Self {
        Self { shards, held: None, looked: 0 }
    }

    pub(super) fn stands(&mut self, token: Token) -> bool {
        self.look(token, |state, index| state.stands(index, token.version))
    }

    /// Whether an entry stands for something that is due in its tick.
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

    /// Whether the entry that was found to be next still is: dead or not, it stays.
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
