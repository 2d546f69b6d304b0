//! Random programs: what a thread can do, and how often.
//!
//! Each thread draws its operations from random numbers of its own, so a seed determines what every
//! thread does, and the schedule determines the rest. A thread draws new weights in each phase, many of them
//! zero, as the threads of a server have their parts: one accepts, another closes. A defect that needs two
//! operations is rarely met among many others.

use crate::common::Random;
use std::time::Duration;

/// How large the programs are.
#[derive(Clone, Copy)]
pub struct Size {
    pub phases: u64,
    /// The most threads that begin in each phase, and live on through all others.
    pub actors: u64,
    /// Operations of an actor in a phase.
    pub operations: u64,
    pub burst: u64,
    /// The longest work of a task (see `env::work`).
    pub work: u64,
    /// The farthest jump of the clock, in ticks.
    pub jump: u64,
}

impl Size {
    /// How much work: mostly little.
    pub fn work(&self, random: &mut Random) -> u32 {
        let most = self.work >> (2 * random.below(3));
        random.below(most.max(1)) as u32
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Once,
    /// Takes time on the worker.
    Works(u32),
    /// Schedules another timeout on the worker.
    Schedules,
    /// Moves the clock on the worker.
    MovesClock,
    /// Goes on this many times.
    GoesOn(u32),
    /// Ends after this many runs.
    Periodic(u32),
}

#[derive(Clone, Debug)]
pub enum Op {
    Schedule(usize, Task, Duration),
    /// Cancels a timeout of its own.
    Cancel,
    Reschedule(Duration),
    Clone,
    Detach,
    /// Hands a handle over to any other thread.
    Give,
    CancelGiven,
    RescheduleGiven(Duration),
    /// Schedules this many timeouts, and hands them over.
    GiveMany(usize, u64, Duration),
    CancelAllGiven,
    /// Schedules this many timeouts, and hands them over to a new thread, which cancels them or moves them
    /// to the next tick.
    GiveToNew(usize, u64, Duration, bool),
    Take,
    Advance(Duration),
    Work(u32),
    Spawn(u64),
    /// Schedules this many timeouts, and cancels them.
    Burst(usize, u64),
    Sleep(usize, Duration),
    /// Polls a sleep again, with the waker of before or with another one.
    Poll(bool),
    Reset(Duration),
    DropSleep,
    /// Not drawn: a phase has one at most.
    Stop(usize, bool),
    DropTimer(usize),
}

const KINDS: usize = 20;

/// Operations that go together, as they are numbered in `Style::op`. A thread has some of the themes in a
/// phase, and always the first.
const THEMES: [&[usize]; 8] =
    [&[10], &[0], &[9], &[1, 2, 3, 4], &[5, 6, 7, 8, 16, 17], &[11, 19], &[12], &[13, 14, 15, 18]];

/// What a thread's operations are drawn from in a phase.
#[derive(Clone, Debug)]
pub struct Style {
    weights: [u64; KINDS],
    tasks: [u64; 6],
    /// In eight: how many delays are `Duration::MAX`.
    endless: u64,
    pub timers: Vec<Ring>,
}

#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub tick: Duration,
    pub buckets: u64,
}

impl Style {
    pub fn new(random: &mut Random, timers: &[Ring]) -> Self {
        let weight = |random: &mut Random| [1, 3, 6, 12][random.below(4) as usize];
        let mut weights = [0; KINDS];
        for (number, theme) in THEMES.iter().enumerate() {
            if number == 0 || random.below(2) == 0 {
                theme.iter().for_each(|&kind| weights[kind] = weight(random));
            }
        }
        let mut tasks = [0; 6].map(|_: u64| random.below(2) * weight(random));
        tasks[1] += 2; // in its time most happens
        tasks[0] = tasks[0].max(1); // so that there is one
        Self {
            weights,
            tasks,
            endless: [0, 0, 6, 8][random.below(4) as usize],
            timers: timers.to_vec(),
        }
    }

    fn ring(&self, random: &mut Random) -> (usize, Ring) {
        let timer = random.below(self.timers.len() as u64) as usize;
        (timer, self.timers[timer])
    }

    fn delay(&self, random: &mut Random, ring: Ring) -> Duration {
        if random.below(8) < self.endless {
            return Duration::MAX;
        }
        let ticks = match random.below(8) {
            0..=2 => random.below(4),
            3 | 4 => random.below(16),
            5 | 6 => random.below(3 * ring.buckets),
            _ => random.below(1 << 20),
        };
        let odd = if random.below(4) == 0 { random.below(nanos(ring.tick)) } else { 0 };
        ring.tick * ticks as u32 + Duration::from_nanos(odd)
    }

    /// The delay of a timeout that is handed over: mostly endless.
    fn long_delay(&self, random: &mut Random, ring: Ring) -> Duration {
        if random.below(3) == 0 { self.delay(random, ring) } else { Duration::MAX }
    }

    fn task(&self, random: &mut Random, size: &Size) -> Task {
        let some = 1 + random.below(3) as u32;
        match pick(random, &self.tasks) {
            0 => Task::Once,
            1 => Task::Works(size.work(random)),
            2 => Task::Schedules,
            3 => Task::MovesClock,
            4 => Task::GoesOn(some),
            _ => Task::Periodic(some * 3),
        }
    }

    /// A move of the clock.
    pub fn advance(&self, random: &mut Random, size: &Size) -> Op {
        let (_, ring) = self.ring(random);
        let most = if random.below(16) == 0 { size.jump } else { 4 };
        let odd = if random.below(4) == 0 { random.below(nanos(ring.tick)) } else { 0 };
        Op::Advance(ring.tick * random.below(most) as u32 + Duration::from_nanos(odd))
    }

    pub fn op(&self, random: &mut Random, size: &Size) -> Op {
        let (timer, ring) = self.ring(random);
        match pick(random, &self.weights) {
            0 => Op::Schedule(timer, self.task(random, size), self.delay(random, ring)),
            1 => Op::Cancel,
            2 => Op::Reschedule(self.delay(random, ring)),
            3 => Op::Clone,
            4 => Op::Detach,
            5 => Op::Give,
            6 => Op::CancelGiven,
            7 => Op::RescheduleGiven(self.delay(random, ring)),
            8 => Op::Take,
            9 => self.advance(random, size),
            10 => Op::Work(size.work(random)),
            11 => Op::Spawn(1 + random.below(3)),
            12 => Op::Burst(timer, 1 + random.below(size.burst)),
            13 => Op::Sleep(timer, self.delay(random, ring)),
            14 => Op::Poll(random.below(2) == 0),
            15 => Op::Reset(self.delay(random, ring)),
            16 => Op::GiveMany(timer, 1 + random.below(12), self.long_delay(random, ring)),
            17 => Op::CancelAllGiven,
            18 => Op::DropSleep,
            19 => {
                let cancels = random.below(4) > 0;
                Op::GiveToNew(timer, 1 << random.below(6), self.long_delay(random, ring), cancels)
            }
            _ => unreachable!("there are `KINDS`"),
        }
    }
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn pick(random: &mut Random, weights: &[u64]) -> usize {
    let mut at = random.below(weights.iter().sum());
    for (number, &weight) in weights.iter().enumerate() {
        if at < weight {
            return number;
        }
        at -= weight;
    }
    unreachable!("below the sum")
}
