//! A bucket: one slot of a wheel. It is a dense vector of entries, 8 or 16 bytes each, in the order
//! of insertion. Entries are not linked, so reading a bucket reads memory in order.
//!
//! An entry is a token and a *mark* of its tick. The hashed wheel marks the low 16 bits of the
//! round, the wheels that cascade mark the tick, and the others mark nothing.
//!
//! An entry whose timeout was cancelled is *dead*. It stays until it is due, until a sweep drops it, or until the
//! search for the next live entry meets it (see `confirm`). Its version distinguishes it from the entry of the slot's
//! next user.
//!
//! An empty bucket has no memory for entries: there may be a million buckets. A bucket that expires leaves its memory
//! to its structure as the *spare*, and the next bucket that needs memory takes that. So time that goes from bucket to
//! bucket allocates nothing.

use super::confirm::{Confirm, Standing};
use super::token::{Due, Token, Version};

/// A mark has the low 16 bits of the absolute round, so an entry may lie at most this many rounds
/// ahead.
pub(super) const FARTHEST_ROUND: u64 = u16::MAX as u64;

/// The most entries for which a spare or a batch keeps memory.
const SPARE: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry<M> {
    index: u32,
    version: Version,
    mark: M,
}

impl<M> Entry<M> {
    fn token(&self) -> Token {
        Token { index: self.index, version: self.version }
    }
}

#[derive(Debug)]
pub struct Bucket<M> {
    entries: Vec<Entry<M>>,
}

impl<M> Default for Bucket<M> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<M: Copy> Bucket<M> {
    #[inline]
    pub(super) fn push(&mut self, token: Token, mark: M) {
        let Token { index, version } = token;
        self.entries.push(Entry { index, version, mark });
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, token: Token) -> bool {
        self.entries.iter().any(|entry| entry.token() == token)
    }

    pub(crate) fn get(&self, at: usize) -> Option<Token> {
        self.entries.get(at).map(Entry::token)
    }

    /// Adds an entry to a bucket of a structure. If the bucket has no memory, it takes the spare.
    #[inline]
    pub(super) fn file(&mut self, spare: &mut Self, token: Token, mark: M) {
        if self.entries.capacity() == 0 {
            std::mem::swap(self, spare);
        }
        self.push(token, mark);
    }

    /// Leaves the memory of a bucket that is empty now as the spare.
    pub(super) fn leave(&mut self, spare: &mut Self) {
        if self.entries.is_empty() && self.entries.capacity() > 0 {
            self.entries.shrink_to(SPARE);
            *spare = std::mem::take(self);
        }
    }

    /// Empties a batch, and frees most of its memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.entries.shrink_to(SPARE);
    }

    /// Takes out all entries, in the order of insertion.
    pub(super) fn take_all(&mut self, spare: &mut Self, mut taken: impl FnMut(Token, M)) {
        self.entries.drain(..).for_each(|entry| taken(entry.token(), entry.mark));
        self.leave(spare);
    }

    /// Checks the last `budget` entries before `end`, or all if there are fewer, and drops those
    /// that `keep` denies. Returns where the checked entries began: the `end` of the next call.
    ///
    /// A sweep goes from the end of the bucket to its front. So it misses no entry, even if entries
    /// are added or removed between two calls.
    pub(super) fn retain_before(
        &mut self,
        end: usize,
        budget: usize,
        mut keep: impl FnMut(Token) -> bool,
    ) -> usize {
        let end = end.min(self.entries.len());
        let begin = end.saturating_sub(budget);
        let mut kept = begin;
        for at in begin..end {
            let entry = self.entries[at];
            if keep(entry.token()) {
                self.entries[kept] = entry;
                kept += 1;
            }
        }
        self.entries.drain(kept..end);
        self.fit();
        begin
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = M> + Clone + '_ {
        self.entries.iter().map(|entry| entry.mark)
    }

    /// Frees what the entries do not need.
    fn fit(&mut self) {
        if 4 * self.entries.len() < self.entries.capacity() {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}

impl<M: Copy + PartialEq> Bucket<M> {
    /// Checks the entries with this mark, which are due in `tick`, until it finds a live one. Drops
    /// the dead ones on the way. Returns true if it read the whole bucket.
    ///
    /// It goes from the end of the bucket to its front. So it moves only entries that it has read, even
    /// if those of a large bucket are dropped one by one.
    pub(super) fn confirm(
        &mut self,
        mark: M,
        tick: u64,
        confirm: &mut Confirm<impl FnMut(Due) -> Standing>,
    ) -> bool {
        let len = self.entries.len();
        let (mut at, mut kept) = (len, len);
        while at > 0 && !confirm.is_done() {
            at -= 1;
            let entry = self.entries[at];
            if entry.mark != mark || confirm.keeps(Due { tick, token: entry.token() }) {
                kept -= 1;
                self.entries[kept] = entry;
            }
        }
        self.entries.drain(at..kept);
        confirm.charge(len - at);
        self.fit();
        at == 0
    }
}

/// The bucket of a hashed wheel, which marks rounds.
impl Bucket<u16> {
    /// Takes out the entries of all rounds up to `last`, in the order of insertion. Entries of
    /// round `first` go to `batch`, the others to `later`. No entry may lie before round `current`.
    pub(super) fn take_rounds(
        &mut self,
        spare: &mut Self,
        current: u64,
        (first, last): (u64, u64),
        batch: &mut Self,
        mut later: impl FnMut(u64, Token),
    ) {
        self.entries.retain(|&entry| {
            let round = absolute(entry.mark, current);
            if round == first {
                batch.entries.push(entry);
            } else if round <= last {
                later(round, entry.token());
            }
            round > last
        });
        self.leave(spare);
        self.fit();
    }

    /// The first and the last round of the entries. No entry may lie before round `current`.
    pub(super) fn rounds(&self, current: u64) -> Option<(u64, u64)> {
        let rounds = self.marks().map(|mark| absolute(mark, current));
        Some((rounds.clone().min()?, rounds.max()?))
    }
}

/// The absolute round of a mark, which must not be before `current`.
#[inline]
fn absolute(mark: u16, current: u64) -> u64 {
    current + u64::from(mark.wrapping_sub(current as u16))
}

#[cfg(test)]
mod tests;
