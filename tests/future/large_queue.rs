//! Random histories of a delay queue with many values, checked against an ordered map.
//!
//! One task polls the queue when it is woken. After every step, the model says whether a wake-up must have
//! come. `PROPTEST_CASES=100000` runs more histories.

use crate::cases::cases;
use crate::common::{TICK, manual, ms};
use crate::wakers::Alarm;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::task::Poll;
use std::time::Instant;
use wheelwork::future::{DelayKey, DelayQueue};
use wheelwork::{HashedWheelTimer, ManualClock};

/// Times are in milliseconds. A negative one is in the past.
#[derive(Clone, Debug)]
enum Op {
    Insert { by: Vec<i64> },
    Reset { from: usize, by: Vec<i64> },
    Remove { from: usize, count: usize },
    Poll,
    Advance { by: u64 },
    Drain,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let by = prop_oneof![
        8 => -300..2_000i64,
        8 => 0..60_000i64,
        1 => 0..10_000_000_000i64,
    ];
    let some = prop::collection::vec(by, 1..90);
    let op = prop_oneof![
        6 => some.clone().prop_map(|by| Op::Insert { by }),
        3 => (any::<usize>(), some).prop_map(|(from, by)| Op::Reset { from, by }),
        3 => (any::<usize>(), 1..80usize).prop_map(|(from, count)| Op::Remove { from, count }),
        6 => Just(Op::Poll),
        8 => (0..3_000u64).prop_map(|by| Op::Advance { by }),
        1 => (0..5_000_000_000u64).prop_map(|by| Op::Advance { by }),
        1 => Just(Op::Drain),
    ];
    prop::collection::vec(op, 1..60)
}

struct Play {
    timer: HashedWheelTimer,
    clock: ManualClock,
    begin: Instant,
    now: u64,
    alarm: Alarm,
    queue: DelayQueue<u64>,
    /// Deadline, and number of the insertion.
    expected: BTreeSet<(u64, u64)>,
    /// The deadline and the key of each value that was ever inserted.
    inserted: Vec<(u64, DelayKey)>,
    /// The number of wake-ups at the last poll, if that was pending.
    waits_since: Option<usize>,
    /// Whether a step since the last poll has made a value due, or emptied the queue.
    must_wake: bool,
    /// The number of wake-ups that may still find nothing due.
    may_be_early: usize,
}

impl Play {
    fn new() -> Self {
        let (timer, clock) = manual();
        Self {
            begin: timer.started_at(),
            queue: DelayQueue::new(&timer),
            timer,
            clock,
            now: 0,
            alarm: Alarm::new(),
            expected: BTreeSet::new(),
            inserted: Vec::new(),
            waits_since: None,
            must_wake: false,
            may_be_early: 0,
        }
    }

    fn instant(&self, at: u64) -> Instant {
        self.begin + ms(at)
    }

    fn at(&self, by: i64) -> u64 {
        self.now.saturating_add_signed(by)
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Insert { by } => by.iter().for_each(|&by| self.insert(by)),
            Op::Reset { from, by } => {
                (0..).zip(by).for_each(|(n, &by)| self.reset(from.wrapping_add(n), by));
            }
            Op::Remove { from, count } => {
                (0..*count).for_each(|n| self.remove(from.wrapping_add(n)));
            }
            Op::Poll => self.poll(),
            Op::Advance { by } => {
                self.now += by;
                self.clock.advance_in_one_jump(ms(*by));
                let tick = TICK.as_millis() as u64;
                let earliest = self.expected.first();
                self.must_wake |= earliest.is_some_and(|first| first.0 <= self.now / tick * tick);
            }
            Op::Drain => self.drain(),
        }
    }

    fn insert(&mut self, by: i64) {
        let (at, number) = (self.at(by), self.inserted.len() as u64);
        let key = self.queue.insert_at(number, self.instant(at));
        assert!(self.inserted.last().is_none_or(|&(_, last)| last < key), "keys are ordered");
        self.inserted.push((at, key));
        self.expect(at, number);
    }

    fn expect(&mut self, at: u64, number: u64) {
        let is_first = self.expected.first().is_none_or(|first| at < first.0);
        self.must_wake |= is_first && at <= self.now;
        self.expected.insert((at, number));
    }

    fn reset(&mut self, which: usize, by: i64) {
        let at = self.at(by);
        let deadline = self.instant(at);
        let Some((number, before, key)) = self.pick(which) else { return };
        let is_there = self.expected.remove(&(before, number));
        assert_eq!(self.queue.reset_at(key, deadline), is_there);
        if is_there {
            self.inserted[number as usize].0 = at;
            self.expect(at, number);
            self.may_be_early += usize::from(at != before);
        }
    }

    fn remove(&mut self, which: usize) {
        let Some((number, at, key)) = self.pick(which) else { return };
        let is_there = self.expected.remove(&(at, number));
        assert_eq!(self.queue.deadline(key), is_there.then(|| self.instant(at)));
        assert_eq!(self.queue.remove(key), is_there.then_some(number));
        self.must_wake |= self.expected.is_empty();
        self.may_be_early += 1;
    }

    fn pick(&self, which: usize) -> Option<(u64, u64, DelayKey)> {
        let number = which.checked_rem(self.inserted.len())?;
        let (at, key) = self.inserted[number];
        Some((number as u64, at, key))
    }

    fn drain(&mut self) {
        let drained: Vec<_> = self.queue.drain().into_iter().map(|due| due.value).collect();
        let expected = std::mem::take(&mut self.expected);
        assert_eq!(drained, expected.into_iter().map(|(_, number)| number).collect::<Vec<_>>());
        self.must_wake = true;
    }

    /// Takes out all values that are due.
    fn poll(&mut self) {
        loop {
            let found = self.queue.poll_next_due(&mut self.alarm.context());
            let Some(&(at, number)) = self.expected.first() else {
                assert_eq!(found, Poll::Ready(None));
                self.waits_since = None;
                return;
            };
            let Poll::Ready(found) = found else {
                assert!(at > self.now, "a value that is due comes out");
                self.waits_since = Some(self.alarm.wakes());
                self.must_wake = false;
                return;
            };
            assert!(at <= self.now, "never early");
            let found = found.map(|due| (due.deadline, due.key, due.value));
            let (_, key) = self.inserted[number as usize];
            assert_eq!(found, Some((self.instant(at), key, number)));
            self.expected.pop_first();
        }
    }

    fn check(&mut self) {
        assert_eq!(self.queue.len(), self.expected.len());
        assert!(self.alarm.clones() <= 1 && self.timer.pending_timeouts() <= 1);
        let Some(before) = self.waits_since else { return };
        let woken = self.alarm.wakes() - before;
        assert!(woken <= 1, "one wake-up for one wait");
        assert!(woken == 1 || !self.must_wake, "no wake-up is lost");
        if woken == 1 {
            // An insertion of what is due also finds what is due by the clock, though its tick has not passed.
            let is_due = self.expected.first().is_some_and(|first| first.0 <= self.now);
            if !self.must_wake && !is_due {
                assert!(self.may_be_early > 0, "too early without a removal or a reset");
                self.may_be_early -= 1;
            }
            self.poll();
        }
    }
}

fn play(ops: &[Op]) {
    let mut play = Play::new();
    for op in ops {
        play.step(op);
        play.check();
    }
    drop(play.queue);
    assert_eq!((play.alarm.clones(), play.timer.pending_timeouts()), (0, 0));
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_large_queue_agrees_with_an_ordered_map(ops in ops()) {
        play(&ops);
    }
}
