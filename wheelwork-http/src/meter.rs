//! `Meter`: how long a wait for the client has lasted, and how many bytes it brought.
//!
//! A pure structure, which is told the time in nanoseconds.

use crate::limit::Limit;
use crate::limits::{Rate, RequestLimits};
use crate::time::{NEVER, nanos};
use std::time::Duration;

/// What a meter is judged by, and the names of the two limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) pause: (Option<Duration>, Limit),
    pub(crate) rate: (Option<Rate>, Limit),
}

/// The bounds of a response.
pub(crate) fn response_bounds(limits: &RequestLimits) -> Bounds {
    Bounds {
        pause: (limits.response, Limit::Response),
        rate: (limits.response_rate, Limit::ResponseRate),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter {
    /// The begin of the current wait in this window; 0 is none.
    since: u64,
    /// The last progress in the current wait, or its begin.
    last: u64,
    /// The length of the previous waits of this window.
    waited: u64,
    /// The bytes of this window.
    moved: u64,
    /// What all streams of the connection had moved at the begin of this window.
    before: u64,
    /// How often the pause was prolonged since the last progress, because others had their turns.
    turns: u32,
    /// The window before this one has kept the least rate.
    is_kept: bool,
}

/// What the streams of a connection do together. Those of HTTP/1 are alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Together {
    /// What all have moved so far, in one direction.
    pub(crate) moved: u64,
    /// How many requests have been in flight.
    pub(crate) streams: u32,
}

impl Meter {
    pub(crate) fn is_waiting(&self) -> bool {
        self.since != 0
    }

    /// A wait begins, unless one goes on. `all` is what all streams of the connection have moved so far.
    pub(crate) fn wait(&mut self, now: u64, all: u64) {
        if self.is_waiting() {
            return;
        }
        if self.waited == 0 {
            self.before = all;
        }
        self.since = now.max(1);
        self.last = self.since;
        self.turns = 0;
    }

    /// The same, with a wait that begins no earlier than `at`.
    pub(crate) fn not_before(self, at: u64) -> Self {
        match self.is_waiting() {
            true => Self { since: self.since.max(at), last: self.last.max(at), ..self },
            false => self,
        }
    }

    /// Bytes have come or gone. A wait goes on.
    pub(crate) fn progress(&mut self, bytes: u64, now: u64) {
        self.moved = self.moved.saturating_add(bytes);
        self.last = now;
        self.turns = 0;
    }

    /// The wait ends. The window goes on with the next wait.
    pub(crate) fn pause(&mut self, now: u64) {
        if self.is_waiting() {
            self.waited += now.saturating_sub(self.since);
            self.since = 0;
        }
    }

    /// The wait ends, and so does the window.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The earliest time at which a limit can have passed.
    pub(crate) fn deadline(&self, bounds: &Bounds) -> u64 {
        self.pause_at(bounds).min(self.window_at(bounds))
    }

    /// The limit that has passed. Begins the next window, if one is over.
    ///
    /// A stream is not cut for its share of a slow link: what all streams of the connection have moved counts. And while
    /// they move enough, a stream has one more pause for each of them: they may take turns.
    pub(crate) fn judge(&mut self, bounds: &Bounds, now: u64, all: Together) -> Option<Limit> {
        if self.pause_at(bounds) <= now {
            self.turns += 1;
            if self.turns >= all.streams || !self.is_link_used(bounds, now, all.moved) {
                return Some(bounds.pause.1);
            }
            self.last = now;
        }
        if self.window_at(bounds) > now {
            return None;
        }
        let rate = bounds.rate.0?;
        if !self.moved_at_least(rate, rate.window.as_nanos(), all.moved) {
            return Some(bounds.rate.1);
        }
        let Self { last, turns, .. } = *self;
        *self =
            Self { since: now, last, turns, before: all.moved, is_kept: true, ..Self::default() };
        None
    }

    /// Whether the least rate was kept in the first `nanos` nanoseconds of this window.
    fn moved_at_least(&self, rate: Rate, nanos: u128, all: u64) -> bool {
        let moved = self.moved.max(all.saturating_sub(self.before));
        u128::from(moved) * 1_000_000_000 >= u128::from(rate.bytes_per_second) * nanos
    }

    /// Whether the streams of the connection keep the least rate, if there is one. A window that has just begun tells
    /// nothing yet: if the one before has kept the rate, its own end judges.
    fn is_link_used(&self, bounds: &Bounds, now: u64, all: u64) -> bool {
        let waited = u128::from(self.waited + now.saturating_sub(self.since));
        let (rate, _) = bounds.rate;
        rate.is_some_and(|rate| self.is_kept || self.moved_at_least(rate, waited, all))
    }

    fn pause_at(&self, bounds: &Bounds) -> u64 {
        match bounds.pause.0 {
            Some(limit) if self.is_waiting() => self.last.saturating_add(nanos(limit)),
            _ => NEVER,
        }
    }

    /// The end of the window, if the current wait goes on.
    fn window_at(&self, bounds: &Bounds) -> u64 {
        match bounds.rate.0 {
            Some(rate) if self.is_waiting() => {
                let left = nanos(rate.window).saturating_sub(self.waited);
                self.since.saturating_add(left)
            }
            _ => NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const ALONE: Together = Together { moved: 0, streams: 1 };

    fn two(moved: u64) -> Together {
        Together { moved, streams: 2 }
    }

    fn bounds(pause: Option<u64>, rate: Option<(u64, u64)>) -> Bounds {
        let rate = rate.map(|(bytes, seconds)| Rate::new(bytes, Duration::from_secs(seconds)));
        Bounds {
            pause: (pause.map(Duration::from_secs), Limit::Body),
            rate: (rate, Limit::BodyRate),
        }
    }

    #[test]
    fn only_a_wait_has_a_deadline() {
        let bounds = bounds(Some(10), Some((100, 5)));
        let mut meter = Meter::default();
        assert_eq!(meter.deadline(&bounds), NEVER);
        meter.wait(SECOND, 0);
        assert_eq!(meter.deadline(&bounds), 6 * SECOND);
        meter.pause(3 * SECOND);
        assert_eq!(meter.deadline(&bounds), NEVER);
        meter.wait(20 * SECOND, 0);
        assert_eq!(meter.deadline(&bounds), 23 * SECOND, "two seconds of the window have passed");
    }

    #[test]
    fn progress_moves_the_pause_but_not_the_window() {
        let bounds = bounds(Some(10), Some((100, 15)));
        let mut meter = Meter::default();
        meter.wait(SECOND, 0);
        meter.progress(5, 8 * SECOND);
        assert_eq!(meter.deadline(&bounds), 16 * SECOND);
        assert_eq!(meter.judge(&bounds, 16 * SECOND, ALONE), Some(Limit::BodyRate));
        meter.clear();
        meter.wait(SECOND, 0);
        assert_eq!(meter.judge(&bounds, 11 * SECOND, ALONE), Some(Limit::Body));
    }

    #[test]
    fn a_window_with_enough_bytes_begins_the_next_one() {
        let bounds = bounds(None, Some((100, 10)));
        let mut meter = Meter::default();
        meter.wait(SECOND, 0);
        meter.progress(1000, 2 * SECOND);
        assert_eq!(meter.judge(&bounds, 11 * SECOND - 1, ALONE), None);
        assert_eq!(meter.judge(&bounds, 11 * SECOND, ALONE), None);
        assert_eq!(meter.deadline(&bounds), 21 * SECOND);
        meter.progress(999, 12 * SECOND);
        assert_eq!(meter.judge(&bounds, 21 * SECOND, ALONE), Some(Limit::BodyRate));
    }

    #[test]
    fn what_the_other_streams_move_in_the_window_counts() {
        let bounds = bounds(None, Some((100, 10)));
        let mut meter = Meter::default();
        meter.wait(SECOND, 5_000);
        assert_eq!(meter.judge(&bounds, 11 * SECOND, two(6_000)), None);
        assert_eq!(meter.judge(&bounds, 21 * SECOND, two(6_999)), Some(Limit::BodyRate));
    }

    #[test]
    fn the_others_may_have_a_turn_each_while_the_link_is_used() {
        let bounds = bounds(Some(15), Some((100, 10)));
        let mut meter = Meter::default();
        meter.wait(SECOND, 5_000);
        assert_eq!(meter.judge(&bounds, 11 * SECOND, two(6_000)), None);
        assert_eq!(meter.judge(&bounds, 16 * SECOND, two(6_500)), None);
        assert_eq!(meter.judge(&bounds, 21 * SECOND, two(7_000)), None);
        assert_eq!(meter.judge(&bounds, 31 * SECOND - 1, two(8_000)), None);
        let mut other = meter;
        assert_eq!(meter.judge(&bounds, 31 * SECOND, two(9_000)), Some(Limit::Body));
        let three = Together { moved: 9_000, streams: 3 };
        assert_eq!(other.judge(&bounds, 31 * SECOND, three), None);
        other.progress(1, 32 * SECOND);
        assert_eq!((other.pause_at(&bounds), other.turns), (47 * SECOND, 0));
    }

    #[test]
    fn on_a_link_that_is_not_used_a_pause_is_a_pause() {
        for (rate, moved) in [(Some((100, 10)), 499), (None, 9_999)] {
            let bounds = bounds(Some(5), rate);
            let mut meter = Meter::default();
            meter.wait(SECOND, 0);
            assert_eq!(meter.judge(&bounds, 6 * SECOND, two(moved)), Some(Limit::Body));
        }
    }

    /// The link moves twice the least rate, in grains of a second.
    #[test]
    fn a_pause_that_ends_just_after_the_begin_of_a_window_may_go_on() {
        let bounds = bounds(Some(15), Some((100, 10)));
        let mut meter = Meter::default();
        let together = |moved| Together { moved, streams: 100 };
        meter.wait(SECOND, 0);
        meter.progress(1, 6 * SECOND + SECOND / 2);
        assert_eq!(meter.judge(&bounds, 11 * SECOND, together(2_000)), None);
        assert_eq!(meter.judge(&bounds, 21 * SECOND, together(4_000)), None);
        assert_eq!(meter.judge(&bounds, 21 * SECOND + SECOND / 2, together(4_000)), None);
    }

    #[test]
    fn a_window_of_zero_ends_a_wait_that_brings_nothing() {
        let bounds = bounds(None, Some((1, 0)));
        let mut meter = Meter::default();
        meter.wait(SECOND, 0);
        assert_eq!(meter.judge(&bounds, SECOND, ALONE), None);
        assert_eq!(meter.judge(&bounds, SECOND + 1, ALONE), Some(Limit::BodyRate));
    }

    #[test]
    fn limits_that_are_off_or_endless_never_pass() {
        let mut meter = Meter::default();
        meter.wait(SECOND, 0);
        assert_eq!(meter.judge(&bounds(None, None), NEVER - 1, ALONE), None);
        let endless = Bounds {
            pause: (Some(Duration::MAX), Limit::Body),
            rate: (Some(Rate::new(u64::MAX, Duration::MAX)), Limit::BodyRate),
        };
        assert_eq!(meter.judge(&endless, NEVER - 1, ALONE), None);
    }
}
