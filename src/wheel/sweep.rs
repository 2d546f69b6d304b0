//! A sweep drops dead entries (see `filing`): when it is worth its cost, and how it goes from bucket to bucket, in as
//! many calls as its caller likes.
//!
//! A sweep visits every bucket and every entry, so it is worth its cost once the dead entries outnumber the live by
//! more than the owner of the filing allows.

use super::bucket::Bucket;
use super::token::Token;

/// Whether the dead entries outnumber the live by more than `allowed`. So their memory stays proportional
/// to that of the live ones.
#[inline]
pub(crate) fn is_sweep_worth_it(entries: usize, live: usize, allowed: usize) -> bool {
    entries > 2 * live + allowed
}

/// The position of a sweep between two calls. A sweep visits one unit after the other: a bucket,
/// or a part of one.
#[derive(Clone, Copy, Default)]
pub(super) struct SweepPosition {
    unit: usize,
    /// The place in the unit at which to continue. `None` at the beginning of a unit.
    rest: Option<usize>,
}

impl SweepPosition {
    /// Continues the sweep for about `budget` entries. Returns true at its end.
    ///
    /// `visit` gets a unit, the place in it at which to continue, and the number of entries that it
    /// may check. It returns the number of checked entries, and the next place in the unit, or
    /// `None` at the unit's end.
    pub(super) fn resume(
        &mut self,
        units: usize,
        budget: usize,
        mut visit: impl FnMut(usize, Option<usize>, usize) -> (usize, Option<usize>),
    ) -> bool {
        let mut checked = 0;
        while self.unit < units {
            if checked >= budget {
                return false;
            }
            let (entries, rest) = visit(self.unit, self.rest, budget - checked);
            checked += 1 + entries;
            self.rest = rest;
            self.unit += usize::from(rest.is_none());
        }
        self.unit = 0;
        true
    }
}

/// Checks at most `budget` entries of a bucket, from the end to the front, and drops those that `keep` denies.
/// It checks the entries before `rest`, or the last ones if that is `None`. Returns the number of checked entries,
/// and the next `rest`, or `None` at the end of the bucket.
pub(super) fn sweep_bucket<M: Copy>(
    bucket: &mut Bucket<M>,
    rest: Option<usize>,
    budget: usize,
    keep: impl FnMut(Token) -> bool,
) -> (usize, Option<usize>) {
    let end = rest.unwrap_or(usize::MAX).min(bucket.len());
    if end == 0 {
        return (0, None);
    }
    let begin = bucket.retain_before(end, budget, keep);
    (end - begin, Some(begin).filter(|&begin| begin > 0))
}
