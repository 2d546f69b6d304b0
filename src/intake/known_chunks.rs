//! The worker's half of the pending queue: the chunks that it knows, and by when it looks at each.
//!
//! The worker files a chunk in its wheel as it files a timeout: under a tick, by a token. The offset in the
//! token is `LOOK`, which no slot has. A chunk has at most one live token. The version in the token tells it
//! from the dead ones.

use super::chunk::{Chunk, LOOK, locate, look_index};
use super::pin::Payload;
use super::registry::Registry;
use super::slot::{Slot, version_of};
use crate::base::sync::Arc;
use crate::time::tick::NEVER;
use crate::wheel::Token;

/// The chunks that the worker knows, by number. A chunk that was dropped leaves a gap: all tokens that name
/// it are dead.
///
/// They lie in blocks, because a vector that grows copies all: at 30 million timeouts, the worker would stand
/// for 7 ms. A block without a chunk is freed.
pub(crate) struct KnownChunks<P> {
    blocks: Vec<Option<Box<Block<P>>>>,
    /// The number of live tokens.
    live: usize,
    /// The version of the last token. It wraps: a dead token that has the version of a live one costs a look.
    version: u16,
}

struct Block<P> {
    chunks: [Known<P>; BLOCK],
    /// The number of chunks.
    count: usize,
}

/// The number of chunks in one block.
const BLOCK: usize = 128;

struct Known<P> {
    chunk: Option<Arc<Chunk<P>>>,
    /// The version of the live token, or of its last one. There is a live one if a look is promised.
    version: u16,
    /// The number of its arena, so that a look-up in the agenda does not read the chunk's head.
    arena: u32,
}

/// A chunk to file in the wheel: under the tick of `by`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileChunk {
    pub(crate) by: u64,
    pub(crate) token: Token,
}

/// Whether a token stands for a look at a chunk, and not for a timeout.
#[inline]
pub(crate) fn is_look(token: Token) -> bool {
    locate(token.index).1 == LOOK
}

impl<P> Default for KnownChunks<P> {
    fn default() -> Self {
        Self { blocks: Vec::new(), live: 0, version: 0 }
    }
}

impl<P: Payload> KnownChunks<P> {
    /// Learns of a chunk that an entry names. A thread registers a chunk before any token or entry can name it.
    pub(crate) fn discover(&mut self, id: usize, registry: &Registry<P>) {
        if self.get(id).is_some() {
            return;
        }
        let Some(chunk) = registry.take_new_chunk(id as u32) else { return };
        if self.blocks.len() <= id / BLOCK {
            self.blocks.resize_with(id / BLOCK + 1, || None);
        }
        let block = self.blocks[id / BLOCK].get_or_insert_with(|| {
            let unknown = |_| Known { chunk: None, version: 0, arena: 0 };
            Box::new(Block { chunks: std::array::from_fn(unknown), count: 0 })
        });
        block.count += 1;
        let known = &mut block.chunks[id % BLOCK];
        known.arena = chunk.arena;
        known.chunk = Some(chunk);
    }

    #[inline]
    fn known(&self, id: usize) -> Option<&Known<P>> {
        let block = self.blocks.get(id / BLOCK)?.as_deref()?;
        Some(&block.chunks[id % BLOCK])
    }

    fn known_mut(&mut self, id: usize) -> Option<&mut Known<P>> {
        let block = self.blocks.get_mut(id / BLOCK)?.as_deref_mut()?;
        Some(&mut block.chunks[id % BLOCK])
    }

    /// Takes in the pending queue. Passes on each chunk that must be looked at sooner than before.
    pub(crate) fn take_in(&mut self, registry: &Registry<P>, mut file: impl FnMut(FileChunk)) {
        registry.context.pending.drain(|id| {
            self.discover(id, registry);
            let Some(chunk) = self.get(id) else { return }; // it was dropped
            let by = chunk.promise.take_wanted();
            self.look_by(id, by).into_iter().for_each(&mut file);
        });
    }

    /// Makes sure that the worker looks at a chunk by this time. If the chunk must be filed for that,
    /// the caller does it.
    pub(crate) fn look_by(&mut self, id: usize, by: u64) -> Option<FileChunk> {
        let version = self.version.wrapping_add(1);
        let known = self.known_mut(id)?;
        let chunk = known.chunk.as_ref()?;
        let before = chunk.promise.look_by();
        if by >= before {
            return None;
        }
        known.version = version;
        chunk.promise.set(by);
        let token = Token { index: look_index(id), version };
        self.version = version;
        self.live += usize::from(before == NEVER);
        Some(FileChunk { by, token })
    }

    /// The time of the look or the deadline of the timeout that a token stands for. `None` if the token is
    /// dead.
    #[inline]
    pub(crate) fn standing(&self, token: Token) -> Option<u64> {
        let (id, offset) = locate(token.index);
        let known = self.known(id)?;
        let chunk = known.chunk.as_ref()?;
        if offset != LOOK {
            return chunk.slot(offset).standing(token.version);
        }
        let look_by = chunk.promise.look_by();
        (known.version == token.version && look_by != NEVER).then_some(look_by)
    }

    /// Like `standing`. The token of a chunk stays live only until its earliest New timeout, which may be
    /// later than the promised look, since timeouts are cancelled and pushed back.
    pub(crate) fn confirm(&mut self, token: Token) -> Option<u64> {
        let standing = self.standing(token);
        if standing.is_none() || !is_look(token) {
            return standing;
        }
        let id = self.take(token)?;
        // A timeout before the promised look is new, and its entry is in the queue.
        let next = self.look(id, |_, _, _, _| false).max(standing?);
        let chunk = self.get(id).filter(|_| next != NEVER)?;
        chunk.promise.set(next);
        self.live += 1;
        Some(next)
    }

    /// Takes the chunk of a token of a look that has come out of the wheel. The caller looks at it. `None` if
    /// the token is dead.
    pub(crate) fn take(&mut self, token: Token) -> Option<usize> {
        self.standing(token)?;
        let (chunk, _) = self.chunk(token)?;
        let id = chunk.id as usize;
        chunk.promise.set(NEVER);
        self.live -= 1;
        Some(id)
    }

    /// Looks at a chunk: passes on all New slots, each with its offset and its deadline. Returns the
    /// earliest deadline of those that are not `taken`, or `NEVER`. The chunk has no live token
    /// afterwards: the caller calls `look_by` with that deadline before the worker sleeps.
    pub(crate) fn look(
        &mut self,
        id: usize,
        mut taken: impl FnMut(&Chunk<P>, usize, &Slot<P>, u64) -> bool,
    ) -> u64 {
        let promised = self.is_promised(id);
        self.live -= usize::from(promised);
        let Some(chunk) = self.get(id) else { return NEVER };
        chunk.promise.begin_look();
        let mut left = NEVER;
        for (offset, slot) in chunk.slots().enumerate() {
            let Some(deadline) = slot.if_new() else { continue };
            if !taken(chunk, offset, slot, deadline) {
                left = left.min(deadline);
            }
        }
        left
    }

    /// A chunk by its number, unless it was dropped.
    #[inline]
    pub(crate) fn get(&self, id: usize) -> Option<&Arc<Chunk<P>>> {
        self.known(id)?.chunk.as_ref()
    }

    /// The chunk of a token, unless it was dropped.
    #[inline]
    pub(crate) fn chunk(&self, token: Token) -> Option<(&Arc<Chunk<P>>, usize)> {
        let (id, offset) = locate(token.index);
        Some((self.get(id)?, offset))
    }

    /// The sequence number of a timeout, or the lower bound of those of a chunk, in the high bits; and the number
    /// of the arena. `None` if the token is dead.
    #[inline]
    pub(crate) fn order(&self, token: Token) -> Option<(u64, u32)> {
        let (id, offset) = locate(token.index);
        let known = self.known(id)?;
        let chunk = known.chunk.as_ref()?;
        if offset == LOOK {
            return (known.version == token.version).then(|| (chunk.from(), known.arena));
        }
        let sequence = chunk.slot(offset).sequence();
        (version_of(sequence) == token.version).then_some((sequence, known.arena))
    }

    /// Whether the chunk has a live token.
    fn is_promised(&self, id: usize) -> bool {
        self.get(id).is_some_and(|chunk| chunk.promise.look_by() != NEVER)
    }

    /// The number of live tokens. Each is an entry of the wheel, whether or not a timeout is pending in its chunk.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Forgets a chunk that was released.
    pub(crate) fn forget(&mut self, id: u32) {
        let id = id as usize;
        self.live -= usize::from(self.is_promised(id));
        let Some(block) = self.blocks.get_mut(id / BLOCK) else { return };
        let Some(Block { chunks, count }) = block.as_deref_mut() else { return };
        *count -= usize::from(chunks[id % BLOCK].chunk.take().is_some());
        if *count == 0 {
            *block = None;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
