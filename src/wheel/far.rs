//! Timeouts that are too far away for any bucket.
//!
//! In the hashed wheel these are more than 65,535 turns ahead, which is 38 days by default. In the
//! two Linux wheels they are beyond the last level.
//!
//! An *era* is a span of ticks. The timeouts of each era wait in the order of insertion. They move
//! to the buckets when the buckets can hold the whole era. Until the last of them has moved, new
//! timeouts of that era are added here too. So the order of insertion holds within a tick. Nothing
//! is sorted: an insert pushes 16 bytes.

use super::confirm::{Confirm, Standing};
use super::token::{Due, Token};
use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
struct Era {
    /// The tokens, each with its tick.
    tokens: VecDeque<(u64, Token)>,
    /// A tick that is not after any token's tick.
    earliest: u64,
}

impl Era {
    fn recompute_earliest(&mut self) {
        self.earliest = self.tokens.iter().map(|&(tick, _)| tick).min().unwrap_or(u64::MAX);
    }
}

pub(super) struct Far {
    /// By number. No era here is empty.
    eras: BTreeMap<u64, Era>,
    /// log2 of the ticks in an era.
    shift: u32,
    /// The era at which a sweep continues.
    sweep_era: u64,
}

impl Far {
    pub(super) fn new(shift: u32) -> Self {
        Self { eras: BTreeMap::new(), shift, sweep_era: 0 }
    }

    pub(super) fn insert(&mut self, tick: u64, token: Token) {
        let fresh = || Era { tokens: VecDeque::new(), earliest: u64::MAX };
        let era = self.eras.entry(tick >> self.shift).or_insert_with(fresh);
        era.tokens.push_back((tick, token));
        era.earliest = era.earliest.min(tick);
    }

    /// A tick before which no timeout here is due. `None` if there is no timeout.
    pub(super) fn next(&self) -> Option<u64> {
        self.eras.first_key_value().map(|(_, era)| era.earliest)
    }

    /// The last tick before the earliest one here. A tick after the limit may have older timeouts
    /// here, so its new timeouts must come here too.
    pub(super) fn limit(&self) -> u64 {
        self.next().map_or(u64::MAX, |earliest| earliest.saturating_sub(1))
    }

    /// Takes out the next timeout of the first era, if the era ends at `last` or before.
    pub(super) fn take(&mut self, last: u64) -> Option<Due> {
        if !self.has_come_into_reach(last) {
            return None;
        }
        let mut first = self.eras.first_entry()?;
        let taken = first.get_mut().tokens.pop_front();
        if first.get().tokens.is_empty() {
            first.remove();
        }
        taken.map(|(tick, token)| Due { tick, token })
    }

    /// The first tick of the first era.
    pub(super) fn start_of_first(&self) -> Option<u64> {
        self.eras.first_key_value().map(|(&era, _)| era << self.shift)
    }

    /// The last tick of the first era.
    pub(super) fn end_of_first(&self) -> Option<u64> {
        self.eras.first_key_value().map(|(&era, _)| self.end_of(era))
    }

    /// Whether the first era ends at `last` or before.
    pub(super) fn has_come_into_reach(&self, last: u64) -> bool {
        self.end_of_first().is_some_and(|end| end <= last)
    }

    fn end_of(&self, era: u64) -> u64 {
        (era << self.shift) | ((1 << self.shift) - 1)
    }

    /// Checks the entries of the earliest tick until it finds a live one. Drops the dead ones.
    pub(super) fn confirm(&mut self, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        let Some(mut first) = self.eras.first_entry() else { return };
        let era = first.get_mut();
        let (earliest, count) = (era.earliest, era.tokens.len());
        era.tokens.retain(|&(tick, token)| {
            tick != earliest || confirm.is_done() || confirm.keeps(Due { tick, token })
        });
        confirm.charge(count);
        era.recompute_earliest();
        if era.tokens.is_empty() {
            first.remove();
        }
    }

    /// Checks at most `budget` entries of one era, from the end to the front, and drops those that
    /// `keep` denies. It checks the entries before `rest`, or the last ones if that is `None`.
    /// Returns the number of checked entries, and the next `rest`, or `None` after the last era.
    pub(super) fn sweep(
        &mut self,
        rest: Option<usize>,
        budget: usize,
        mut keep: impl FnMut(Token) -> bool,
    ) -> (usize, Option<usize>) {
        let Some((&number, era)) = self.eras.range_mut(self.sweep_era..).next() else {
            self.sweep_era = 0;
            return (0, None);
        };
        // The era that the last call began may be gone. Then this is another era, and all of it
        // must be checked.
        let end =
            rest.filter(|_| number == self.sweep_era).unwrap_or(usize::MAX).min(era.tokens.len());
        let begin = end.saturating_sub(budget);
        let mut kept = begin;
        for at in begin..end {
            if keep(era.tokens[at].1) {
                era.tokens.swap(kept, at);
                kept += 1;
            }
        }
        era.tokens.drain(kept..end);
        self.sweep_era = number;
        if begin == 0 {
            era.recompute_earliest();
            if era.tokens.is_empty() {
                self.eras.remove(&number);
            } else {
                era.tokens.shrink_to(2 * era.tokens.len());
            }
            self.sweep_era = number + 1;
        }
        (end - begin, Some(if begin > 0 { begin } else { usize::MAX }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(index: u32) -> Token {
        Token { index, version: 0 }
    }

    fn filled(ticks: &[u64]) -> Far {
        let mut far = Far::new(4);
        ticks.iter().for_each(|&tick| far.insert(tick, token(tick as u32)));
        far
    }

    #[test]
    fn rule_07_an_era_moves_in_the_order_of_insertion_once_all_of_it_is_in_reach() {
        let mut far = filled(&[40, 37, 20, 41]);
        assert_eq!((far.next(), far.limit(), far.end_of_first()), (Some(20), 19, Some(31)));
        assert_eq!(far.take(30), None);
        assert_eq!(far.take(31).map(|due| due.tick), Some(20));
        assert_eq!((far.next(), far.limit()), (Some(37), 36));
        let ticks: Vec<u64> = std::iter::from_fn(|| far.take(47)).map(|due| due.tick).collect();
        assert_eq!(ticks, [40, 37, 41]);
        assert_eq!((far.next(), far.limit()), (None, u64::MAX));
    }

    #[test]
    fn rule_04_a_sweep_in_steps_checks_every_entry() {
        let ticks: Vec<u64> = (16..200).chain(20..40).collect();
        let mut far = filled(&ticks);
        let (mut rest, mut met) = (None, Vec::new());
        loop {
            let (checked, next) = far.sweep(rest, 7, |token| {
                met.push(u64::from(token.index));
                token.index % 2 == 0
            });
            rest = next;
            if rest.is_none() {
                break;
            }
            assert!(checked <= 7);
        }
        met.sort_unstable();
        let mut ticks = ticks;
        ticks.sort_unstable();
        assert_eq!(met, ticks);
        let left: Vec<_> = std::iter::from_fn(|| far.take(u64::MAX)).map(|due| due.tick).collect();
        assert_eq!(left.len(), ticks.iter().filter(|&tick| tick % 2 == 0).count());
    }
}
