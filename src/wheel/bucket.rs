//! A dense bucket: eight or sixteen bytes for each timeout, in the order of insertion, never linked.
//!
//! A walk over it reads memory in order. What has been cancelled stays as a dead entry until it
//! is due or reclaimed; the entry's version tells it from the slot's next user.
//!
//! What an entry remembers of its tick, its mark, depends on the structure: the hashed wheel the
//! low 16 bits of the round, wheels that cascade the tick, others nothing.

use super::structure::Token;

/// Rounds are kept as the low 16 bits of the absolute round, so an entry may lie at most this many
/// rounds ahead.
pub(super) const FARTHEST_ROUND: u64 = u16::MAX as u64;

/// Keep at least this capacity; below, shrinking saves nothing.
const SMALL: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry<M> {
    index: u32,
    version: u16,
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

    /// Takes out everything, in the order of insertion.
    pub(super) fn take_all(&mut self, mut taken: impl FnMut(Token, M)) {
        self.entries.drain(..).for_each(|entry| taken(entry.token(), entry.mark));
        self.shrink();
    }

    /// Keeps only what `keep` says.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(Token, M) -> bool) {
        self.entries.retain(|entry| keep(entry.token(), entry.mark));
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.entries.capacity() > SMALL && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to((2 * self.entries.len()).max(SMALL));
        }
    }
}

/// With rounds.
impl Bucket<u16> {
    /// Whether everything in it belongs to this round, which is not before that of any entry by
    /// more than a bucket can count.
    pub(super) fn is_all_of(&self, round: u64) -> bool {
        self.entries.iter().all(|entry| entry.mark == round as u16)
    }

    pub(crate) fn get(&self, at: usize) -> Option<Token> {
        self.entries.get(at).map(Entry::token)
    }

    /// Empties it; keeps little memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.shrink();
    }

    #[inline]
    pub(super) fn push_in_round(&mut self, token: Token, round: u64) {
        self.push(token, round as u16);
    }

    /// Takes out what is due in a round up to `last`, in the order of insertion, and returns the
    /// earliest round among what stays. `current` is a round that no entry lies before.
    pub(super) fn take_due(
        &mut self,
        current: u64,
        last: u64,
        mut due: impl FnMut(u64, Token),
    ) -> Option<u64> {
        let (mut next, mut kept) = (None, 0);
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            let round = absolute(entry.mark, current);
            if round <= last {
                due(round, entry.token());
            } else {
                next = earlier(next, round);
                self.entries[kept] = entry;
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.shrink();
        next
    }

    /// Keeps only what `keep` says, and returns the earliest round among it.
    pub(super) fn retain_rounds(
        &mut self,
        current: u64,
        mut keep: impl FnMut(Token) -> bool,
    ) -> Option<u64> {
        let mut next = None;
        self.retain(|token, mark| {
            let kept = keep(token);
            if kept {
                next = earlier(next, absolute(mark, current));
            }
            kept
        });
        next
    }
}

/// The absolute round of an entry, which is not before `current`.
fn absolute(mark: u16, current: u64) -> u64 {
    current + u64::from(mark.wrapping_sub(current as u16))
}

pub(super) fn earlier(next: Option<u64>, tick: u64) -> Option<u64> {
    Some(next.map_or(tick, |n| n.min(tick)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Bucket<u16> {
        let mut bucket = Bucket::default();
        (0..10_000).for_each(|index| bucket.push_in_round(Token { index, version: 0 }, 7));
        bucket
    }

    /// Whichever way a burst leaves it.
    #[test]
    fn what_becomes_empty_keeps_little_memory() {
        let ways: [fn(&mut Bucket<u16>); 4] = [
            Bucket::clear,
            |bucket| bucket.take_all(|_, _| ()),
            |bucket| bucket.retain(|_, _| false),
            |bucket| assert_eq!(bucket.take_due(7, 7, |_, _| ()), None),
        ];
        for empty in ways {
            let mut bucket = filled();
            empty(&mut bucket);
            assert_eq!(bucket.len(), 0);
            assert!(bucket.entries.capacity() <= SMALL);
        }
    }
}
