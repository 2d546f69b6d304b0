//! Random histories of the filing of every structure, compared with a sorted map. They include sweeps and
//! searches for the earliest live entry. (The histories of the public wheels are in tests/wheel.rs;
//! those seldom sweep.)

use super::{all_due, token};
use crate::wheel::confirm::{NextLive, Standing};
use crate::wheel::structure::{Exact, TokenWheel};
use crate::wheel::token::{Due, Token};
use crate::wheel::values::InOrder;
use crate::wheel::{Hashed, Hierarchical, Linux, LinuxClassic};
use std::collections::{BTreeMap, BTreeSet};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// The expected contents of a filing.
#[derive(Default)]
struct Expected {
    /// Live tokens by the tick they were filed under, then by arrival.
    live: BTreeMap<(u64, u32), Token>,
    /// The tick that each token was filed under, by arrival.
    ticks: BTreeMap<u32, u64>,
    /// Dead tokens, which are still in the filing.
    dead: BTreeSet<u32>,
    /// The new ticks of timeouts that were pushed back. The structure does not know them.
    pushed_back: BTreeMap<u32, u64>,
}

impl Expected {
    /// The tick that a live token is filed under.
    fn tick_of(&self, arrival: u32) -> Option<u64> {
        self.ticks.get(&arrival).copied().filter(|&tick| self.live.contains_key(&(tick, arrival)))
    }

    /// The standing of a token that was met. If it is dead, it is forgotten.
    fn standing(&mut self, Due { tick, token }: Due) -> Standing {
        let later = self.pushed_back.remove(&token.index);
        if self.dead.remove(&token.index) {
            return Standing::Dead;
        }
        let filed = self.tick_of(token.index).expect("it was filed, and taken once");
        if let Some(later) = later {
            self.live.remove(&(filed, token.index));
            self.live.insert((later, token.index), token);
            self.ticks.insert(token.index, later);
            return Standing::Later(later);
        }
        if tick < filed { Standing::Later(filed) } else { Standing::Due }
    }
}

/// The filing of a structure, and the expected contents.
struct Check<W> {
    filing: InOrder<W>,
    expected: Expected,
    /// The tokens that were dead when the current sweep began.
    dead_at_begin: Option<BTreeSet<u32>>,
    arrivals: u32,
    now: u64,
    /// The permitted lateness for a delay, in ticks.
    late: fn(u64) -> u64,
    /// The delay of each arrival.
    delays: Vec<u64>,
    /// The structure's time at each arrival.
    told: Vec<u64>,
    insert: Insert<W>,
    /// `Exact::confirm_next`, where the structure has it.
    confirm: Confirm<W>,
    /// Timeouts that were out of reach. They may come after younger ones of their tick.
    far: BTreeSet<u32>,
}

type Insert<W> = fn(&mut InOrder<W>, u64, Token);
type Confirm<W> =
    fn(&mut InOrder<W>, u64, usize, &mut dyn FnMut(Due) -> Standing) -> Option<NextLive>;

/// Timeouts are pushed back to consecutive ticks from here on, so no two share a tick.
const PUSHED_BACK: u64 = 1 << 60;

/// Without optimisation, a history of a wheel with many levels takes 60 ms.
const HISTORIES: usize = if cfg!(debug_assertions) { 80 } else { 1000 };

impl<W: TokenWheel> Check<W> {
    fn new(wheel: W, late: fn(u64) -> u64, insert: Insert<W>, confirm: Confirm<W>) -> Self {
        Self {
            filing: InOrder::new(wheel),
            expected: Expected::default(),
            dead_at_begin: None,
            arrivals: 0,
            now: 0,
            late,
            delays: Vec::new(),
            told: Vec::new(),
            insert,
            confirm,
            far: BTreeSet::new(),
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
                    self.confirm_next(last, [1, 3, 100, usize::MAX][random.below(4) as usize]);
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
        let nth = random.below(self.expected.live.len().max(1) as u64) as usize;
        let ahead = self.expected.live.keys().filter(|&&(tick, _)| tick > self.now).nth(nth);
        ahead.map_or(0, |&(tick, _)| tick - self.now - 1)
    }

    /// Files a timeout under `tick`, which is `delay` ticks ahead.
    fn file(&mut self, tick: u64, delay: u64) {
        let token = token(self.arrivals);
        if tick > self.filing.filing.wheel.reach() {
            self.far.insert(self.arrivals);
        }
        (self.insert)(&mut self.filing, tick, token);
        self.expected.live.insert((tick, self.arrivals), token);
        self.expected.ticks.insert(self.arrivals, tick);
        self.delays.push(delay);
        self.told.push(self.now);
        self.arrivals += 1;
    }

    /// Kills a timeout without telling the structure.
    fn kill(&mut self, random: &mut Random) {
        let nth = random.below(self.expected.live.len().max(1) as u64) as usize;
        let Some(&key) = self.expected.live.keys().nth(nth) else { return };
        self.expected.live.remove(&key);
        self.expected.dead.insert(key.1);
    }

    /// Pushes a timeout back without telling the structure.
    fn push_back(&mut self, random: &mut Random) {
        let nth = random.below(self.expected.live.len().max(1) as u64) as usize;
        let Some(&(tick, arrival)) = self.expected.live.keys().nth(nth) else { return };
        if tick < PUSHED_BACK && self.now < PUSHED_BACK {
            self.expected.pushed_back.insert(arrival, PUSHED_BACK + u64::from(self.arrivals));
            self.arrivals += 1;
            self.delays.push(0);
            self.told.push(self.now);
        }
    }

    /// Searches for the earliest live entry up to tick `last`. Afterwards `next_expiry` is exact.
    fn confirm_next(&mut self, last: u64, budget: usize) {
        let Self { filing, expected, .. } = self;
        let found = (self.confirm)(filing, last, budget, &mut |due| expected.standing(due));
        let first = self.expected.live.keys().next().map(|key| key.0);
        let next = self.filing.next_expiry();
        match found {
            None | Some(NextLive::Unknown) => assert!(found.is_none() || budget < usize::MAX),
            Some(NextLive::Later) => {
                assert!(first.is_none_or(|tick| tick > last));
                assert!(next.is_none_or(|tick| tick > last));
            }
            Some(NextLive::At(Due { tick, token })) => {
                assert_eq!(next, Some(tick));
                let is_due = self.expected.live.contains_key(&(tick, token.index));
                let filed = self.expected.tick_of(token.index);
                let is_far = filed.is_some_and(|filed| filed > self.filing.filing.wheel.reach());
                assert!(first >= Some(tick) && (is_due || is_far));
            }
        }
    }

    /// Continues a sweep. At its end, no entry is left that was dead when it began.
    fn sweep(&mut self, budget: usize) {
        self.dead_at_begin.get_or_insert_with(|| self.expected.dead.clone());
        let dead = &mut self.expected.dead;
        if self.filing.sweep(budget, |token| !dead.remove(&token.index)) {
            let left = self.dead_at_begin.take().unwrap_or_default();
            assert!(left.is_disjoint(&self.expected.dead), "left by the sweep: {left:?}");
        }
    }

    /// Sweeps to the end. A second sweep must check each live entry once, and no other. A third one
    /// drops all entries, and then there is no next expiry.
    fn sweep_all(&mut self) {
        while self.dead_at_begin.is_some() {
            self.sweep(10);
        }
        self.sweep(usize::MAX);
        let mut met = Vec::new();
        assert!(self.filing.sweep(usize::MAX, |token| {
            met.push(token.index);
            true
        }));
        met.sort_unstable();
        let mut live: Vec<u32> = self.expected.live.keys().map(|&(_, arrival)| arrival).collect();
        live.sort_unstable();
        assert_eq!(met, live);
        assert!(self.filing.sweep(usize::MAX, |_| false));
        assert_eq!(self.filing.next_expiry(), None);
    }

    /// The next expiry is never late.
    fn look(&self) {
        let Expected { live, dead, .. } = &self.expected;
        assert_eq!(self.filing.entries(), live.len() + dead.len());
        let Some(&(tick, arrival)) = live.keys().next() else { return };
        let latest = tick.saturating_add((self.late)(self.delays[arrival as usize]));
        let next = self.filing.next_expiry();
        assert!(next.is_some_and(|next| next <= latest), "{next:?} is after {tick}");
        assert_eq!(self.filing.filing.current_tick(), self.now + 1);
    }

    fn advance(&mut self, random: &mut Random) {
        let by = match random.below(6) {
            0..=2 => random.below(6),
            3 => random.below(1000),
            4 => random.below(1 << 21),
            _ => random.below(1 << 31) << random.below(16),
        };
        // Sometimes to just before the next expiry, or to it.
        let next = self.filing.next_expiry().unwrap_or(self.now);
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

    fn take_due(&mut self, now: u64) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some(popped) = self.filing.pop(now) {
            let standing = self.expected.standing(popped);
            match standing {
                Standing::Due => due.push(popped),
                Standing::Later(tick) => self.filing.filing.insert_in_pass(tick, popped.token, now),
                Standing::Dead => {}
            }
        }
        due
    }

    /// Timeouts come in the order of ticks, and within a tick in the order of arrival. None is
    /// early, too late or missing. Timeouts that may be late keep their order only if they were filed at the
    /// same time for the same tick, and those that were out of reach have none (see `filing`).
    fn compare(&mut self, due: &[Due]) {
        assert!(due.is_sorted_by_key(|due| due.tick));
        let mut previous = None;
        let mut alike = BTreeMap::new();
        for Due { tick, token } in due {
            let arrival = token.index;
            let filed = self.expected.tick_of(arrival).expect("it was filed, and taken once");
            let late = (self.late)(self.delays[arrival as usize]);
            assert!((filed..=filed.saturating_add(late)).contains(tick), "{filed} in {tick}");
            if self.far.remove(&arrival) {
                self.expected.live.remove(&(filed, arrival));
                continue;
            }
            assert!(previous.is_none_or(|f| f < (*tick, filed, arrival)), "{arrival} in {tick}");
            previous = Some((*tick, filed, arrival)).filter(|_| late == 0);
            let before = alike.insert((filed, self.told[arrival as usize]), (*tick, arrival));
            let follows = |(other, before)| other == *tick && before < arrival;
            assert!(before.is_none_or(follows), "{arrival} in {tick}");
            self.expected.live.remove(&(filed, arrival));
        }
        let late = |arrival: u32| (self.late)(self.delays[arrival as usize]);
        let mut overdue = self.expected.live.keys().take_while(|key| key.0 <= self.now);
        let left = overdue.find(|key| key.0.saturating_add(late(key.1)) <= self.now);
        assert_eq!(left, None, "now {}", self.now);
    }
}

fn play<W: TokenWheel>(
    make: impl Fn() -> W,
    late: fn(u64) -> u64,
    insert: Insert<W>,
    confirm: Confirm<W>,
) {
    let mut random = Random(3);
    for _ in 0..HISTORIES {
        let mut wheel = make();
        assert!(all_due(&mut wheel, 0).is_empty());
        Check::new(wheel, late, insert, confirm).play(&mut random);
    }
}

fn play_exact<W: Exact>(make: impl Fn() -> W) {
    play(
        make,
        |_| 0,
        |in_order, tick, token| in_order.filing.insert(tick, token),
        |in_order, last, budget, check| Some(in_order.filing.confirm_next(last, budget, check)),
    );
}

#[test]
fn rule_08_hashed_agrees_with_a_sorted_map() {
    for size in [1, 8, 512] {
        play_exact(|| Hashed::new(size).unwrap());
    }
}

#[test]
fn rule_07_hierarchical_agrees_with_a_sorted_map() {
    for size in [2, 3, 20, 512] {
        play_exact(|| Hierarchical::with_buckets(size).unwrap());
    }
}

#[test]
fn rule_07_linux_classic_agrees_with_a_sorted_map() {
    play_exact(LinuxClassic::default);
}

/// It may be late: by one tick for delays up to 62 ticks, and else by up to 8/63 of the delay.
#[test]
fn rule_07_linux_agrees_with_a_sorted_map_up_to_its_lateness() {
    let late = |delay: u64| if delay < 62 { 1 } else { (delay / 63).saturating_mul(8) + 9 };
    play(Linux::default, late, InOrder::insert, |_, _, _, _| None);
}
