//! A dense bucket: eight bytes for each timeout, in the order of insertion, never linked.
//!
//! A walk over it reads memory in order. What has been cancelled stays as a dead entry until it
//! is due or reclaimed; the entry's version tells it from the slot's next user.

use super::ring::Token;

/// Rounds are kept as the low 16 bits of the absolute round, so an entry may lie at most this many
/// rounds ahead.
pub(super) const FARTHEST_ROUND: u64 = u16::MAX as u64;

/// Keep at least this capacity; below, shrinking saves nothing.
const SMALL: usize = 64;

#[derive(Clone, Copy)]
struct Entry {
    index: u32,
    version: u16,
    round: u16,
}

impl Entry {
    fn token(self) -> Token {
        Token { index: self.index, version: self.version }
    }

    /// The absolute round of this entry, which is not before `current`.
    fn round(self, current: u64) -> u64 {
        current + u64::from(self.round.wrapping_sub(current as u16))
    }
}

#[derive(Default)]
pub(super) struct Bucket {
    entries: Vec<Entry>,
}

impl Bucket {
    #[inline]
    pub(super) fn push(&mut self, token: Token, round: u64) {
        let Token { index, version } = token;
        self.entries.push(Entry { index, version, round: round as u16 });
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
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
            let round = entry.round(current);
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
    pub(super) fn retain(
        &mut self,
        current: u64,
        mut keep: impl FnMut(Token) -> bool,
    ) -> Option<u64> {
        let mut next = None;
        self.entries.retain(|entry| {
            let kept = keep(entry.token());
            if kept {
                next = earlier(next, entry.round(current));
            }
            kept
        });
        self.shrink();
        next
    }

    fn shrink(&mut self) {
        if self.entries.capacity() > SMALL && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to((2 * self.entries.len()).max(SMALL));
        }
    }
}

fn earlier(next: Option<u64>, round: u64) -> Option<u64> {
    Some(next.map_or(round, |n| n.min(round)))
}
