//! Random histories of every structure, compared with a sorted map. They include sweeps and
//! searches for the earliest live entry. (The histories of the public wheels are in tests/wheel.rs;
//! those seldom sweep.)

use super::agenda::Agenda;
use super::confirm::{Next, Standing};
use super::structure::{Exact, TokenWheel};
use super::token::{Due, Token};
use super::{
    Hashed, HashedWheel, Hierarchical, HierarchicalWheel, Linux, LinuxClassic, LinuxClassicWheel,
    Unlimited, Wheel,
};
use std::collections::{BTreeMap, BTreeSet};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// A structure, and the expected contents.
struct Check<W> {
    wheel: W,
    /// Live tokens by the tick they were filed under, then by arrival.
    live: BTreeMap<(u64, u32), Token>,
    /// Dead tokens, which may still be in the structure.
    dead: BTreeSet<u32>,
    /// The tokens that were dead when the present sweep began.
    dead_at_begin: Option<BTreeSet<u32>>,
    arrivals: u32,
    now: u64,
    /// The permitted lateness for a delay, in ticks.
    late: fn(u64) -> u64,
    /// The delay of each arrival.
    delays: Vec<u64>,
    /// The structure's time at each arrival.
    told: Vec<u64>,
    /// `Exact::confirm_next`, where the structure has it.
    confirm: Confirm<W>,
    /// The new ticks of timeouts that were pushed back. The structure does not know them.
    pushed_back: BTreeMap<u32, u64>,
}

type Confirm<W> = fn(&mut W, u64, usize, &mut dyn FnMut(Due) -> Standing) -> Option<Next>;

/// Timeouts are pushed back to consecutive ticks from here on, so no two share a tick.
const PUSHED_BACK: u64 = 1 << 60;

impl<W: TokenWheel> Check<W> {
    fn new(wheel: W, late: fn(u64) -> u64, confirm: Confirm<W>) -> Self {
        let (live, dead) = (BTreeMap::new(), BTreeSet::new());
        let (delays, told) = (Vec::new(), Vec::new());
        let (dead_at_begin, arrivals, now, pushed_back) = (None, 0, 0, BTreeMap::new());
        Self {
            wheel,
            live,
            dead,
            dead_at_begin,
            arrivals,
            now,
            late,
            delays,
            told,
            confirm,
            pushed_back,
        }
    }

    fn play(mut self, random: &mut Random) {
        for _ in 0..400 {
            match random.below(12) {
                0..=4 => self.insert(random),
                5 | 6 => self.kill(random),
                7 => self.sweep([1, 3, 10, usize::MAX][random.below(4) as usize]),
                8 => self.push_back(random),
                9 => {
                    let last = [self.now + 1000, u64::MAX][random.below(2) as usize];
                    self.look_ahead(last, [1, 3, 100, usize::MAX][random.below(4) as usize]);
                }
                _ => self.advance(random),
            }
            self.look();
        }
        self.sweep_all();
    }

    /// Often uses the tick of a live timeout, which may be in another level by now.
    fn insert(&mut self, random: &mut Random) {
        let delay = match random.below(11) {
            0..=3 => random.below(10),
            4 | 5 => random.below(700),
            6 => random.below(1 << 20),
            7 => random.below(1 << 31) << random.below(24),
            _ => self.delay_of_another(random),
        };
        self.file(self.now + 1 + delay, delay);
    }

    fn delay_of_another(&self, random: &mut Random) -> u64 {
        let nth = random.below(self.live.len().max(1) as u64) as usize;
        let ahead = self.live.keys().filter(|&&(tick, _)| tick > self.now).nth(nth);
        ahead.map_or(0, |&(tick, _)| tick - self.now - 1)
    }

    /// Files a timeout under `tick`, which is `delay` ticks ahead.
    fn file(&mut self, tick: u64, delay: u64) {
        let token = token(self.arrivals);
        self.wheel.insert(tick, token);
        self.live.insert((tick, self.arrivals), token);
        self.delays.push(delay);
        self.told.push(self.now);
        self.arrivals += 1;
    }

    /// Kills a timeout without telling the structure.
    fn kill(&mut self, random: &mut Random) {
        let nth = random.below(self.live.len().max(1) as u64) as usize;
        let Some(&key) = self.live.keys().nth(nth) else { return };
        self.live.remove(&key);
        self.dead.insert(key.1);
    }

    /// Pushes a timeout back without telling the structure.
    fn push_back(&mut self, random: &mut Random) {
        let nth = random.below(self.live.len().max(1) as u64) as usize;
        let Some(&(tick, arrival)) = self.live.keys().nth(nth) else { return };
        if tick < PUSHED_BACK && self.now < PUSHED_BACK {
            self.pushed_back.insert(arrival, PUSHED_BACK + u64::from(self.arrivals));
            self.arrivals += 1;
            self.delays.push(0);
            self.told.push(self.now);
        }
    }

    /// Searches for the earliest live entry up to tick `last`. Afterwards `next_expiry` is exact.
    fn look_ahead(&mut self, last: u64, budget: usize) {
        let Self { wheel, dead, pushed_back, live, .. } = self;
        let mut check = |Due { tick, token }: Due| {
            if dead.remove(&token.index) {
                return Standing::Dead;
            }
            let Some(later) = pushed_back.remove(&token.index) else { return Standing::Due };
            live.remove(&(tick, token.index));
            live.insert((later, token.index), token);
            Standing::Later(later)
        };
        let mut found = (self.confirm)(wheel, last, budget, &mut check);
        // A slice of far timeouts may be left.
        for _ in 0..1000 {
            if found != Some(Next::Unknown) || budget < usize::MAX {
                break;
            }
            found = (self.confirm)(wheel, last, budget, &mut check);
        }
        match found {
            None | Some(Next::Unknown) => assert!(found.is_none() || budget < usize::MAX),
            Some(Next::Later) => {
                assert!(live.keys().next().is_none_or(|&(tick, _)| tick > last));
                assert!(wheel.next_expiry().is_none_or(|tick| tick > last));
            }
            Some(Next::At(due)) => {
                assert_eq!(live.keys().next().map(|key| key.0), Some(due.tick));
                assert!(live.contains_key(&(due.tick, due.token.index)));
                assert_eq!(wheel.next_expiry(), Some(due.tick));
            }
        }
    }

    /// Continues a sweep. At its end, no entry is left that was dead at its beginning.
    fn sweep(&mut self, budget: usize) {
        self.dead_at_begin.get_or_insert_with(|| self.dead.clone());
        let dead = &mut self.dead;
        if self.wheel.sweep(budget, |token| !dead.remove(&token.index)) {
            let left = self.dead_at_begin.take().unwrap_or_default();
            assert!(left.is_disjoint(&self.dead), "left by the sweep: {left:?}");
        }
    }

    /// Sweeps to the end, then once more: that sweep checks each live entry once, and no others.
    /// When all entries are dropped, there is no next expiry.
    fn sweep_all(&mut self) {
        while self.dead_at_begin.is_some() {
            self.sweep(10);
        }
        self.sweep(usize::MAX);
        let mut met = Vec::new();
        assert!(self.wheel.sweep(usize::MAX, |token| {
            met.push(token.index);
            true
        }));
        met.sort_unstable();
        let mut live: Vec<u32> = self.live.keys().map(|&(_, arrival)| arrival).collect();
        live.sort_unstable();
        assert_eq!(met, live);
        assert!(self.wheel.sweep(usize::MAX, |_| false));
        assert_eq!(self.wheel.next_expiry(), None);
    }

    /// The next expiry is never late.
    fn look(&self) {
        let Some(&(tick, arrival)) = self.live.keys().next() else { return };
        let latest = tick.saturating_add((self.late)(self.delays[arrival as usize]));
        let next = self.wheel.next_expiry();
        assert!(next.is_some_and(|next| next <= latest), "{next:?} is after {tick}");
        assert_eq!(self.wheel.current_tick(), self.now + 1);
    }

    fn advance(&mut self, random: &mut Random) {
        let by = match random.below(6) {
            0..=2 => random.below(6),
            3 => random.below(1000),
            4 => random.below(1 << 21),
            _ => random.below(1 << 31) << random.below(16),
        };
        // Sometimes to just before the next expiry, or to it.
        let next = self.wheel.next_expiry().unwrap_or(self.now);
        let to = match random.below(4) {
            0 => next.saturating_sub(1),
            1 => next,
            _ => self.now + by,
        };
        let to = to.max(self.now);
        let nothing_due = to < next && random.below(2) == 0;
        if !nothing_due {
            self.file_after_the_time_has_come(to, random);
        }
        let due = self.take_due(to);
        assert!(!nothing_due || due.is_empty(), "taken before the next expiry");
        self.now = to;
        self.compare(&due);
    }

    /// Like the worker, which transfers new timeouts before it expires due ones.
    fn file_after_the_time_has_come(&mut self, to: u64, random: &mut Random) {
        for _ in 0..random.below(4) {
            let passed = random.below((to - self.now).clamp(1, 1 << 31));
            let tick = match random.below(2) {
                0 => (self.now + 1 + passed).min(to.max(self.now + 1)),
                _ => to + 1 + random.below(2000),
            };
            self.file(tick, tick - 1 - self.now);
        }
    }

    /// Like the worker: refiles a timeout that was pushed back when it comes out.
    fn take_due(&mut self, now: u64) -> Vec<Due> {
        let mut due = all_due(&mut self.wheel, now);
        due.retain(|&Due { tick, token }| {
            let Some(later) = self.pushed_back.remove(&token.index) else { return true };
            if self.live.remove(&(tick, token.index)).is_some() {
                self.live.insert((later, token.index), token);
                self.wheel.insert(later, token);
                return false;
            }
            true // it was cancelled too
        });
        due
    }

    /// Timeouts come in the order of ticks, and within a tick in the order of arrival. None is
    /// early, too late or missing. Timeouts that may be late keep their order if they were filed at
    /// the same time for the same tick.
    fn compare(&mut self, due: &[Due]) {
        assert!(due.is_sorted_by_key(|due| due.tick));
        let mut former = None;
        let mut alike = BTreeMap::new();
        for Due { tick, token } in due {
            if self.dead.remove(&token.index) {
                continue;
            }
            let found = self.live.keys().find(|key| key.1 == token.index).copied();
            let (filed, arrival) = found.expect("it was filed, and taken once");
            let late = (self.late)(self.delays[arrival as usize]);
            assert!((filed..=filed.saturating_add(late)).contains(tick), "{filed} in {tick}");
            assert!(former.is_none_or(|f| f < (*tick, filed, arrival)), "{arrival} in {tick}");
            former = Some((*tick, filed, arrival)).filter(|_| late == 0);
            let before = alike.insert((filed, self.told[arrival as usize]), (*tick, arrival));
            let follows = |(other, before)| other == *tick && before < arrival;
            assert!(before.is_none_or(follows), "{arrival} in {tick}");
            self.live.remove(&(filed, arrival));
        }
        let late = |arrival: u32| (self.late)(self.delays[arrival as usize]);
        let mut overdue = self.live.keys().take_while(|key| key.0 <= self.now);
        let left = overdue.find(|key| key.0.saturating_add(late(key.1)) <= self.now);
        assert_eq!(left, None, "now {}", self.now);
    }
}

fn all_due(wheel: &mut impl TokenWheel, now: u64) -> Vec<Due> {
    let mut agenda = Agenda::default();
    std::iter::from_fn(|| agenda.pop(wheel, now)).collect()
}

fn play<W: TokenWheel>(make: impl Fn() -> W, late: fn(u64) -> u64, confirm: Confirm<W>) {
    let mut random = Random(3);
    for _ in 0..300 {
        let mut wheel = make();
        assert!(all_due(&mut wheel, 0).is_empty());
        Check::new(wheel, late, confirm).play(&mut random);
    }
}

fn play_exact<W: Exact>(make: impl Fn() -> W) {
    play(make, |_| 0, |wheel, last, budget, check| Some(wheel.confirm_next(last, budget, check)));
}

#[test]
fn hashed() {
    for size in [1, 8, 512] {
        play_exact(|| Hashed::new(size).unwrap());
    }
}

#[test]
fn hierarchical() {
    for size in [2, 3, 20, 512] {
        play_exact(|| Hierarchical::with_buckets(size).unwrap());
    }
}

#[test]
fn linux_classic() {
    play_exact(LinuxClassic::default);
}

/// The documented lateness: one tick for delays up to 62 ticks, then up to 8/63 of the delay.
#[test]
fn linux() {
    let late = |delay: u64| if delay < 62 { 1 } else { (delay / 63).saturating_mul(8) + 9 };
    play(Linux::default, late, |_, _, _, _| None);
}

const fn token(index: u32) -> Token {
    Token { index, version: 7 }
}

fn taken(wheel: &mut impl TokenWheel, now: u64) -> Vec<u32> {
    all_due(wheel, now).iter().map(|due| due.token.index).collect()
}

/// The documented limit of the last level of the Linux wheel.
const OUT_OF_REACH: u64 = 63 << 24;

/// A bucket of the last level spans 2^24 ticks, so it may expire after a timeout that is farther
/// away.
#[test]
fn far_timeouts_in_reach_are_filed_before_later_buckets_expire() {
    let mut wheel = Linux::default();
    assert_eq!(taken(&mut wheel, 5), []);
    wheel.insert(5 + OUT_OF_REACH - 1, token(1));
    assert_eq!(taken(&mut wheel, 6), []);
    wheel.insert(6 + OUT_OF_REACH, token(2));
    assert_eq!(taken(&mut wheel, 2 * OUT_OF_REACH), [1, 2]);
}

/// If a timeout one tick out of reach were filed, it would be early by a turn of the last level.
#[test]
fn a_timeout_just_out_of_reach_waits() {
    const LAST_OF_A_UNIT: u64 = (1 << 24) - 1;
    let mut wheel = Linux::default();
    for ahead in [OUT_OF_REACH - 1, OUT_OF_REACH, OUT_OF_REACH + 1] {
        wheel.insert(LAST_OF_A_UNIT + ahead, token(ahead as u32));
    }
    assert_eq!(taken(&mut wheel, LAST_OF_A_UNIT), []);
    assert_eq!(taken(&mut wheel, LAST_OF_A_UNIT + OUT_OF_REACH - 2), []);
    assert_eq!(taken(&mut wheel, 3 * OUT_OF_REACH).len(), 3);
}

/// A step of a sweep checks no more entries than its budget, even if all of them are in one bucket.
#[test]
fn a_sweep_keeps_to_its_budget() {
    fn steps(mut wheel: impl TokenWheel, tick: u64) {
        (0..1000).for_each(|n| wheel.insert(tick, token(n)));
        let (mut met, mut ended) = (0, false);
        while !ended {
            let before = met;
            ended = wheel.sweep(70, |_| {
                met += 1;
                false
            });
            assert!(met - before <= 70);
        }
        assert_eq!((met, wheel.next_expiry()), (1000, None));
    }
    for tick in [5, 1000, u64::MAX / 2] {
        steps(Linux::default(), tick);
        steps(LinuxClassic::default(), tick);
        steps(Hierarchical::with_buckets(20).unwrap(), tick);
        steps(Hashed::new(8).unwrap(), tick);
    }
}

/// Tick `u64::MAX` never comes.
#[test]
fn time_can_be_told_to_its_end() {
    fn at_the_end(mut wheel: impl TokenWheel) {
        wheel.insert(u64::MAX, token(1));
        wheel.insert(5, token(2));
        assert_eq!(taken(&mut wheel, u64::MAX), [2]);
        assert_eq!(taken(&mut wheel, u64::MAX), []);
    }
    at_the_end(Linux::default());
    at_the_end(LinuxClassic::default());
    at_the_end(Hierarchical::with_buckets(8).unwrap());
    at_the_end(Hashed::new(8).unwrap());
}

fn ticks_and_tokens(wheel: &mut impl TokenWheel, now: u64) -> Vec<(u64, u32)> {
    all_due(wheel, now).iter().map(|due| (due.tick, due.token.index)).collect()
}

/// Some timeouts of an era are in buckets when others of it come that are too far.
#[test]
fn hashed_keeps_the_order_of_ticks_at_the_end_of_its_reach() {
    let mut wheel = HashedWheel::new(1).unwrap();
    wheel.expire(100, |_, _: &str| ());
    wheel.insert(65_600, "A"); // in reach: 65,636
    wheel.insert(65_700, "B"); // far, of the same era
    wheel.expire(101, |_, _| ());
    wheel.insert(65_550, "C"); // far
    let mut order = Vec::new();
    wheel.expire(70_000, |tick, value| order.push((tick, value)));
    assert_eq!(order, [(65_550, "C"), (65_600, "A"), (65_700, "B")]);
}

#[test]
fn hashed_keeps_the_order_within_a_tick_at_the_end_of_its_reach() {
    let mut wheel = HashedWheel::new(1).unwrap();
    wheel.expire(100, |_, _: &str| ());
    wheel.insert(65_590, "first of all, so that A is given to `later`");
    wheel.insert(65_600, "A");
    wheel.insert(65_700, "B");
    wheel.expire(101, |_, _| ());
    wheel.insert(65_600, "C");
    let mut order = Vec::new();
    wheel.expire(70_000, |tick, value| order.push((tick, &value[..1])));
    assert_eq!(order, [(65_590, "f"), (65_600, "A"), (65_600, "C"), (65_700, "B")]);
}

#[test]
fn hashed_keeps_the_order_of_ticks_if_time_jumps_into_an_era_that_has_moved_in_part() {
    let mut wheel = HashedWheel::new(1).unwrap();
    wheel.expire(0, |_, _: u32| ());
    for n in 0..5000 {
        wheel.insert(if n < 4096 { 70_100 } else { 70_050 }, n);
    }
    wheel.expire(40_000, |_, _| ()); // era 2 ends at 98,303, in reach now: 4,096 are let in
    let mut ticks = Vec::new();
    wheel.expire(71_000, |tick, _| ticks.push(tick));
    assert_eq!(ticks.len(), 5000);
    assert!(ticks.is_sorted(), "first {} last {}", ticks[0], ticks[4999]);
}

#[test]
fn classic_keeps_the_order_within_a_tick_at_the_end_of_its_reach() {
    const REACH: u64 = 1 << 32;
    let mut wheel = LinuxClassicWheel::new();
    wheel.expire(100, |_, _: &str| ());
    wheel.insert(REACH + 50, "A"); // in reach
    wheel.insert(REACH + 200, "B"); // far, of the same era
    wheel.expire(101, |_, _| ());
    wheel.insert(REACH + 50, "C"); // far
    wheel.expire((1 << 26) + 5, |_, _| ()); // let in
    let mut order = Vec::new();
    wheel.expire(REACH + 300, |_, value| order.push(value));
    assert_eq!(order, ["A", "C", "B"]);
}

/// Tick `u64::MAX` never comes.
#[test]
fn hashed_the_end_of_time_never_comes() {
    let mut wheel = Hashed::new(8).unwrap();
    assert_eq!(ticks_and_tokens(&mut wheel, u64::MAX - 100), []);
    wheel.insert(u64::MAX, token(1));
    wheel.insert(u64::MAX - 8, token(2));
    assert_eq!(ticks_and_tokens(&mut wheel, u64::MAX - 5), [(u64::MAX - 8, 2)]);
}

#[test]
fn classic_the_end_of_time_never_comes() {
    let mut wheel = LinuxClassic::default();
    assert_eq!(ticks_and_tokens(&mut wheel, u64::MAX - 1000), []);
    wheel.insert(u64::MAX, token(1));
    wheel.insert(u64::MAX - 256, token(2));
    wheel.insert(u64::MAX - 8, token(3));
    assert_eq!(
        ticks_and_tokens(&mut wheel, u64::MAX - 5),
        [(u64::MAX - 256, 2), (u64::MAX - 8, 3)]
    );
    assert!(!wheel.let_in());
}

/// A callback that panics: the rest of the pass is not lost, nor early, and keeps its order.
#[test]
fn a_callback_that_panics_each_time_loses_and_reorders_nothing() {
    fn check<S: Unlimited>(mut wheel: Wheel<u64, S>) {
        wheel.expire(0, |_, _| ());
        let ticks = [3, 3, 11, 19, 11, 4, 300, 70_000, 70_000, 1 << 33, (1 << 33) + 1];
        for (n, tick) in ticks.into_iter().enumerate() {
            wheel.insert(tick, n as u64);
        }
        let mut got = Vec::new();
        while !wheel.is_empty() {
            let now = wheel.current_tick().max(1 << 34);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                wheel.expire(now, |tick, n| {
                    got.push((tick, n));
                    panic!("of the callback");
                })
            }));
            assert!(result.is_err());
        }
        let mut sorted: Vec<_> = ticks.into_iter().zip(0..).collect();
        sorted.sort();
        assert_eq!(got, sorted);
    }
    check(HashedWheel::new(1).unwrap());
    check(HashedWheel::new(8).unwrap());
    check(LinuxClassicWheel::new());
    check(HierarchicalWheel::new(3).unwrap());
}

/// 5,000 of one tick, let in by slices: the first 4,096 to level 5, the others to a finer one.
fn classic_slices(between: u64, tick: u64) {
    const BEGIN: u64 = 1 << 33; // of an era
    let mut wheel = LinuxClassicWheel::new();
    wheel.expire(0, |_, _: u32| ());
    (0..5000).for_each(|n| _ = wheel.insert(BEGIN + tick, n));
    wheel.expire(BEGIN - (1 << 32) + (1 << 26) + 10, |_, _| ());
    wheel.expire(BEGIN + between - 1000, |_, _| ());
    let mut order = Vec::new();
    wheel.expire(BEGIN + tick, |_, n| order.push(n));
    assert_eq!(order.len(), 5000);
    assert!(order.is_sorted(), "first {} last {}", order[0], order[4999]);
}

#[test]
fn classic_keeps_the_order_within_a_tick_over_slices_before_the_era() {
    classic_slices(0, 300);
}

#[test]
fn classic_keeps_the_order_within_a_tick_over_slices_within_the_era() {
    classic_slices(98_000, 100_000);
}
