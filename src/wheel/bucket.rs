//! A bucket: one slot of a wheel. It is a dense vector of entries, 8 or 16 bytes each, in the order
//! of insertion. Entries are not linked, so reading a bucket reads memory in order.
//!
//! An entry is a token and a *mark* of its tick. The hashed wheel marks the low 16 bits of the
//! round, the wheels that cascade mark the tick, and the others mark nothing.
//!
//! An entry whose timeout was cancelled is *dead*. It stays until it is due, until a sweep drops it, or until the
//! search for the next live entry meets it (see `confirm`). Its version distinguishes it from the entry of the slot's
//! next user.

use super::confirm::{Confirm, Standing};
use super::token::{Due, Token};

/// A mark has the low 16 bits of the absolute round, so an entry may lie at most this many rounds
/// ahead.
pub(super) const FARTHEST_ROUND: u64 = u16::MAX as u64;

/// A bucket is never shrunk below this capacity, because it would save nothing.
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

    /// Empties the bucket, and frees most of its memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.shrink();
    }

    /// Takes out all entries, in the order of insertion.
    pub(super) fn take_all(&mut self, mut taken: impl FnMut(Token, M)) {
        self.entries.drain(..).for_each(|entry| taken(entry.token(), entry.mark));
        self.shrink();
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
        self.shrink();
        begin
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = M> + '_ {
        self.entries.iter().map(|entry| entry.mark)
    }

    fn shrink(&mut self) {
        if self.entries.capacity() > SMALL && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to((2 * self.entries.len()).max(SMALL));
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
        self.shrink();
        at == 0
    }
}

/// The bucket of a hashed wheel, which marks rounds.
impl Bucket<u16> {
    #[inline]
    pub(super) fn push_in_round(&mut self, token: Token, round: u64) {
        self.push(token, round as u16);
    }

    /// Takes out the entries of all rounds up to `last`, in the order of insertion. Entries of
    /// round `first` go to `batch`, the others to `later`. No entry may lie before round `current`.
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

    /// The first and the last round of the entries. No entry may lie before round `current`.
    pub(super) fn rounds(&self, current: u64) -> Option<(u64, u64)> {
        self.marks().map(|mark| absolute(mark, current)).fold(None, |span, round| {
            let (first, last) = span.unwrap_or((round, round));
            Some((round.min(first), round.max(last)))
        })
    }
}

/// The absolute round of a mark, which must not be before `current`.
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

    /// Whichever way a burst leaves the bucket.
    #[test]
    fn rule_04_an_emptied_bucket_keeps_little_memory() {
        let ways: [fn(&mut Bucket<u16>); 4] = [
            Bucket::clear,
            |bucket| bucket.take_all(|_, _| ()),
            |bucket| {
                assert!(bucket.confirm(
                    7,
                    7,
                    &mut Confirm::new(usize::MAX, (0, u64::MAX), |_| Standing::Dead)
                ));
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

    /// Entries that are pushed between two steps do not hide any that were there before.
    #[test]
    fn rule_04_a_sweep_in_steps_checks_every_entry() {
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
