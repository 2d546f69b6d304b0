//! The expiry of the public wheels beside lists written by hand.
//!
//! Each round measures every structure once, in turn, by the CPU time of the thread.

use crate::lists::Lists;
use crate::workload::TURN;
use kit::{Random, cpu, grouped, median};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wheelwork::wheel::{Key, Ticks, TimedWheel, Unlimited, Wheel};

const ROUNDS: u64 = 11;

/// The first tick in which something is due.
const FIRST: u64 = 10;

const TICK: Duration = Duration::from_millis(1);

/// The number of buckets in a level of the hierarchical wheel.
const LEVEL: usize = 64;

/// A value of 16 bytes.
type Value = [u64; 2];

/// A structure that is told the time tick by tick.
trait Expiring {
    type Key: Copy;
    fn insert(&mut self, deadline: u64, value: Value) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<Value>;
    /// Returns the number of values that were due.
    fn expire(&mut self, now: u64) -> usize;
}

impl Expiring for Lists<Value> {
    type Key = (u32, u32);

    fn insert(&mut self, deadline: u64, value: Value) -> (u32, u32) {
        self.insert(deadline, value)
    }

    fn remove(&mut self, key: (u32, u32)) -> Option<Value> {
        self.remove(key)
    }

    fn expire(&mut self, now: u64) -> usize {
        let mut count = 0;
        self.expire(now, |_, _, value| {
            black_box(&value);
            count += 1;
        });
        count
    }
}

impl<S: Unlimited> Expiring for Wheel<Value, S> {
    type Key = Key;

    fn insert(&mut self, deadline: u64, value: Value) -> Key {
        self.insert(deadline, value)
    }

    fn remove(&mut self, key: Key) -> Option<Value> {
        self.remove(key)
    }

    fn expire(&mut self, now: u64) -> usize {
        self.expire(now, |_, expired| _ = black_box(&expired.value))
    }
}

struct Timed(TimedWheel<Value, wheelwork::wheel::Hashed>, Instant);

impl Timed {
    fn new() -> Self {
        let start = Instant::now();
        let ticks = Ticks::new(TICK, start).expect("not zero");
        Self(TimedWheel::new(Wheel::hashed(TURN as usize).expect("a size"), ticks), start)
    }

    fn at(&self, tick: u64) -> Instant {
        self.1 + TICK * tick as u32
    }
}

impl Expiring for Timed {
    type Key = Key;

    fn insert(&mut self, deadline: u64, value: Value) -> Key {
        self.0.insert_at(self.at(deadline), value)
    }

    fn remove(&mut self, key: Key) -> Option<Value> {
        self.0.wheel_mut().remove(key)
    }

    fn expire(&mut self, now: u64) -> usize {
        self.0.expire(self.at(now), |_, expired| _ = black_box(&expired.value))
    }
}

#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// The number of ticks in which values are due.
    ticks: u64,
    is_random: bool,
    /// Whether half of the values are removed before, in an order without a pattern.
    is_half_removed: bool,
}

const fn load(name: &'static str, ticks: u64, is_random: bool, is_half_removed: bool) -> Load {
    Load { name, ticks, is_random, is_half_removed }
}

const LOADS: [Load; 6] = [
    load("one tick", 1, false, false),
    load("one tick, half removed", 1, false, true),
    load("1,000 ticks, in order", 1000, false, false),
    load("1,000 ticks, in order, half removed", 1000, false, true),
    load("1,000 ticks, random", 1000, true, false),
    load("1,000 ticks, random, half removed", 1000, true, true),
];

/// Nanoseconds for the expiry of one of `n` values.
fn measure<E: Expiring>(load: Load, n: u64, seed: u64, mut structure: E) -> f64 {
    let mut random = Random(seed);
    let mut tick = |number| if load.is_random { random.next() } else { number * load.ticks / n };
    let deadlines: Vec<u64> = (0..n).map(|number| FIRST + tick(number) % load.ticks).collect();
    let insert = |(&deadline, number)| structure.insert(deadline, [number, deadline]);
    let mut keys: Vec<_> = deadlines.iter().zip(0..n).map(insert).collect();
    random.shuffle(&mut keys);
    keys.truncate(if load.is_half_removed { n as usize / 2 } else { 0 });
    let left = n as usize - keys.len();
    keys.into_iter().for_each(|key| assert!(structure.remove(key).is_some()));
    let begin = cpu::of_thread();
    let count: usize = (FIRST..FIRST + load.ticks).map(|now| structure.expire(now)).sum();
    let spent = cpu::of_thread() - begin;
    assert_eq!(count, left);
    spent * 1e9 / left as f64
}

/// Prints the least and the median time of each structure.
pub fn print() {
    let turn = TURN as usize;
    println!("| values | due in | lists by hand | hashed | hashed, timed | hierarchical |");
    println!("|---|---|---|---|---|---|");
    for (n, load) in [100_000, 1_000_000].into_iter().flat_map(|n| LOADS.map(|load| (n, load))) {
        let rounds = (1..=ROUNDS).map(|seed| {
            [
                measure(load, n, seed, Lists::new(turn)),
                measure(load, n, seed, Wheel::hashed(turn).expect("a size")),
                measure(load, n, seed, Timed::new()),
                measure(load, n, seed, Wheel::hierarchical(LEVEL).expect("a size")),
            ]
        });
        let rounds: Vec<[f64; 4]> = rounds.collect();
        let cells = [0, 1, 2, 3].map(|structure| {
            let times = rounds.iter().map(|round| round[structure]);
            format!("{:.0}, {:.0}", times.clone().fold(f64::MAX, f64::min), median(times))
        });
        println!("| {} | {} | {} |", grouped(n), load.name, cells.join(" | "));
    }
}
