//! A dense bucket: eight or sixteen bytes for each timeout, in the order of insertion, never linked.
//!
//! A walk over it reads memory in order. A cancelled timeout stays as a dead entry until it is due
//! or reclaimed; the entry's version tells it from the slot's next user.
//!
//! An entry keeps a mark of its tick. The hashed wheel marks the low 16 bits of the round, wheels
//! that cascade the tick, others nothing.

use super::confirm::{Confirm, Standing};
use super::token::{Due, Token};

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

    pub(crate) fn get(&self, at: usize) -> Option<Token> {
        self.entries.get(at).map(Entry::token)
    }

    /// Empties it; keeps little memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.shrink();
    }

    /// Takes out everything, in the order of insertion.
    pub(super) fn take_all(&mut self, mut taken: impl FnMut(Token, M)) {
        self.entries.drain(..).for_each(|entry| taken(entry.token(), entry.mark));
        self.shrink();
    }

    /// Keeps what `keep` says of at most `budget` entries that lie before `end`, and returns where
    /// those begin. It goes from the end to the front, so what comes to the bucket between two
    /// calls, or is taken out of it, hides no entry from a sweep.
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
        begin
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = M> + '_ {
        self.entries.iter().map(|entry| entry.mark)
    }

    pub(super) fn shrink(&mut self) {
        if self.entries.capacity() > SMALL && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to((2 * self.entries.len()).max(SMALL));
        }
    }
}

impl<M: Copy + PartialEq> Bucket<M> {
    /// Looks at the entries with this mark, which are due in `tick`, until one stands, and drops
    /// those before it that do not. Returns true if it came to the bucket's end.
    pub(super) fn confirm(
        &mut self,
        mark: M,
        tick: u64,
        confirm: &mut Confirm<impl FnMut(Due) -> Standing>,
    ) -> bool {
        let (mut at, mut kept) = (0, 0);
        while let Some(&entry) = self.entries.get(at).filter(|_| !confirm.is_done()) {
            at += 1;
            if entry.mark != mark || confirm.keeps(Due { tick, token: entry.token() }) {
                self.entries[kept] = entry;
                kept += 1;
            }
        }
        let ended = at == self.entries.len();
        self.entries.drain(kept..at);
        confirm.has_passed(at);
        self.shrink();
        ended
    }
}

/// With rounds.
impl Bucket<u16> {
    #[inline]
    pub(super) fn push_in_round(&mut self, token: Token, round: u64) {
        self.push(token, round as u16);
    }

    /// Takes out what is due up to round `last`, in the order of insertion: what is due in `first`
    /// goes to `batch`, the rest to `later`. `current` is a round that no entry lies before.
    pub(super) fn take_rounds(
        &mut self,
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
        self.shrink();
    }

    /// The first and the last round of its entries.
    pub(super) fn rounds(&self, current: u64) -> Option<(u64, u64)> {
        self.marks().map(|mark| absolute(mark, current)).fold(None, |span, round| {
            let (first, last) = span.unwrap_or((round, round));
            Some((round.min(first), round.max(last)))
        })
    }
}

/// The absolute round of an entry, which is not before `current`.
fn absolute(mark: u16, current: u64) -> u64 {
    current + u64::from(mark.wrapping_sub(current as u16))
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
    fn an_emptied_bucket_keeps_little_memory() {
        let ways: [fn(&mut Bucket<u16>); 4] = [
            Bucket::clear,
            |bucket| bucket.take_all(|_, _| ()),
            |bucket| {
                assert!(bucket.confirm(7, 7, &mut Confirm::new(usize::MAX, |_| Standing::Dead)));
            },
            |bucket| bucket.take_rounds(7, (7, 7), &mut Bucket::default(), |_, _| ()),
        ];
        for empty in ways {
            let mut bucket = filled();
            empty(&mut bucket);
            assert_eq!(bucket.len(), 0);
            assert!(bucket.entries.capacity() <= SMALL);
        }
    }

    /// Whatever is pushed or taken between two steps, each entry that was there is looked at.
    #[test]
    fn a_sweep_in_steps_meets_every_entry() {
        let mut bucket = filled();
        let (mut end, mut met) = (bucket.len(), 0);
        while end > 0 {
            end = bucket.retain_before(end, 300, |token| {
                met += 1;
                token.index % 3 == 0
            });
            bucket.push_in_round(Token { index: 0, version: 1 }, 8);
        }
        assert_eq!(met, 10_000);
        let kept = bucket.entries.iter().filter(|entry| entry.version == 0);
        assert!(kept.map(|entry| entry.index).eq((0..10_000).step_by(3)), "in order");
    }
}
