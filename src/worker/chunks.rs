//! The chunks of a timer, as its worker uses them: by when it looks at each (see `intake/pending`), and how it drops
//! vacant ones (`sweep_and_release` has the rule when, and `intake/pool` how many stay).
//!
//! The worker files a chunk in its wheel as it files a timeout: under a tick, by a token. The offset in the
//! token is one that no slot has. A chunk has at most one live token. The version in the token tells it
//! from the dead ones.

use crate::base::sync::Arc;
use crate::intake::{Chunk, Payload, Pool, Shared, Slot, WorkerTable, is_look, locate, version_of};
use crate::time::tick::NEVER;
use crate::wheel::{Token, Version};

/// See the head. A chunk that was dropped leaves a gap: all tokens that name it are dead.
pub(crate) struct Chunks<P> {
    table: WorkerTable<Chunk<P>>,
    /// The number of live tokens.
    live: usize,
    /// The version of the last token. It wraps: a dead token that has the version of a live one costs a look.
    version: Version,
}

impl<P: Payload> Chunks<P> {
    pub(crate) fn new(table: WorkerTable<Chunk<P>>) -> Self {
        Self { table, live: 0, version: 0 }
    }

    /// Takes in the pending queue. Passes on the token of each chunk that must be looked at sooner than before, and the
    /// time by which.
    pub(crate) fn take_in(&mut self, shared: &Shared<Chunk<P>>, mut file: impl FnMut(u64, Token)) {
        shared.pending.take_all(|id| {
            self.table.know(id as u32);
            let Some(chunk) = self.get(id) else { return }; // it was dropped
            let by = chunk.promise.take_wanted();
            self.promise_look(id, by).into_iter().for_each(|token| file(by, token));
        });
    }

    /// Makes sure that the worker looks at a chunk by this time. If the caller must file the chunk for that, returns the
    /// token.
    pub(crate) fn promise_look(&mut self, id: usize, by: u64) -> Option<Token> {
        let version = self.version.wrapping_add(1);
        let chunk = self.get(id)?;
        let before = chunk.promise.look_by();
        if by >= before {
            return None;
        }
        chunk.promise.set_version(version);
        chunk.promise.set(by);
        let token = chunk.look_token(version);
        self.version = version;
        self.live += usize::from(before == NEVER);
        Some(token)
    }

    /// The time of the look or the deadline of the timeout that a token stands for. `None` if the token is
    /// dead.
    #[inline]
    pub(crate) fn standing(&self, token: Token) -> Option<u64> {
        let (chunk, offset) = self.chunk(token)?;
        if !is_look(token) {
            return chunk.slot(offset).standing(token.version);
        }
        let look_by = chunk.promise.look_by();
        (chunk.promise.version() == token.version && look_by != NEVER).then_some(look_by)
    }

    /// Like `standing`. The token of a chunk stays live only until its earliest New timeout, which may be
    /// later than the promised look, since timeouts are cancelled and pushed back.
    pub(crate) fn confirm(&mut self, token: Token) -> Option<u64> {
        let standing = self.standing(token);
        if standing.is_none() || !is_look(token) {
            return standing;
        }
        let mut next = NEVER;
        let id = self.look(token, |_, _, _, deadline| next = next.min(deadline))?;
        // A timeout before the promised look is new, and its entry is in the queue.
        next = next.max(standing?);
        let chunk = self.get(id).filter(|_| next != NEVER)?;
        chunk.promise.set(next);
        self.live += 1;
        Some(next)
    }

    /// Looks at the chunk of a token that has come out of the wheel: passes on all New slots, each with its offset and its
    /// deadline. Returns the chunk's number, or `None` if the token is dead. The chunk has no live token afterwards: the
    /// caller calls `promise_look` with the earliest deadline of those that stay New.
    pub(crate) fn look(
        &mut self,
        token: Token,
        mut new: impl FnMut(&Chunk<P>, usize, &Slot<P>, u64),
    ) -> Option<usize> {
        self.standing(token)?;
        let (chunk, _) = self.chunk(token)?;
        chunk.promise.begin_look();
        for (offset, slot) in chunk.slots().enumerate() {
            if let Some(deadline) = slot.if_new() {
                new(chunk, offset, slot, deadline);
            }
        }
        let id = chunk.id as usize;
        self.live -= 1;
        Some(id)
    }

    /// A chunk by its number, unless it was dropped.
    #[inline]
    pub(crate) fn get(&self, id: usize) -> Option<&Chunk<P>> {
        self.table.get(id as u32)
    }

    /// The chunk of a token, unless it was dropped.
    #[inline]
    pub(crate) fn chunk(&self, token: Token) -> Option<(&Chunk<P>, usize)> {
        let (id, offset) = locate(token);
        Some((self.get(id)?, offset))
    }

    /// The sequence number of a timeout, or the lower bound of those of a chunk, in the high bits. `None` if the token
    /// has another version.
    #[inline]
    pub(crate) fn order(&self, token: Token) -> Option<u64> {
        let (chunk, offset) = self.chunk(token)?;
        if is_look(token) {
            return (chunk.promise.version() == token.version).then(|| chunk.lowest());
        }
        let sequence = chunk.slot(offset).sequence();
        (version_of(sequence) == token.version).then_some(sequence)
    }

    /// The number of live tokens. Each is an entry of the wheel, whether or not a timeout is pending in its chunk.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Visits the next `visited` chunks of a pool. Takes the vacant ones out of the timer, except for the few that stay.
    /// The caller frees them. `None` while another thread reads the table: the worker tries again later.
    pub(crate) fn release(
        &mut self,
        pool: &Pool<Chunk<P>>,
        visited: usize,
    ) -> Option<Vec<Arc<Chunk<P>>>> {
        let (mut removal, mut released) = (self.table.try_removal()?, Vec::new());
        for _ in 0..visited {
            let Some(chunk) = pool.pop() else { break };
            if pool.has_too_many() && chunk.release() {
                pool.uncount_vacant();
                self.live -= usize::from(chunk.promise.look_by() != NEVER);
                released.extend(removal.remove(chunk.id));
            } else {
                pool.push(chunk);
            }
        }
        Some(released)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<P: Payload> Chunks<P> {
    /// The live token of a chunk, if it has one.
    pub(crate) fn token(&self, id: usize) -> Option<Token> {
        let chunk = self.get(id)?;
        let token = chunk.look_token(chunk.promise.version());
        self.standing(token).map(|_| token)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
