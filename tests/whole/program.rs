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
    /// Whether the user code is bad (see `rogue`), and whether all operations are drawn.
    pub rogue: bool,
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
    /// Does this many operations of its own.
    CallsBack(u64),
    Panics,
}

/// How a timer is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Wait,
    /// With a limit that is never reached.
    Limit,
    /// With a limit that may be reached.
    Brief(Duration),
    /// By a future that is polled until it is ready.
    Async,
    /// By a future that is dropped after its first poll.
    Leave,
}

impl Stop {
    const ALL: [Self; 5] =
        [Self::Wait, Self::Limit, Self::Brief(Duration::ZERO), Self::Async, Self::Leave];

    pub fn any(random: &mut Random) -> Self {
        Self::ALL[random.below(5) as usize]
    }
}

/// A future that waits for a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Future {
    Sleep,
    Interval,
    Queue,
    /// A sleep that another one limits.
    Limit,
    /// A sleep on the process's timer.
    Global,
    /// A stream of this kind.
    Stream(u64),
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
    /// Makes this many futures. Some are not polled.
    Futures(usize, u64, Future, Duration),
    DropSleeps,
    /// Keeps a handle and a future until the timer is gone.
    Forget,
    /// Leaves a thread-local with a destructor that does operations.
    AtThreadEnd(u64),
    /// Runs or drops a job that an executor has kept.
    EndJob(bool),
    /// Cancels a timeout of its own, and gets the task.
    TakeTask,
    /// Cancels a timeout of its own by the drop of a guard.
    Guard,
    /// Watches this many connections and streams.
    Watch(usize, u64, Duration),
    /// Touches or drops a connection or a stream.
    UseLink,
    /// Stops watching this many connections.
    TakeIdlest(usize, usize),
    /// A phase of a program without bad code has one at most, which is not drawn.
    Stop(usize, Stop),
    DropTimer(usize),
}

const KINDS: usize = 32;

/// Operations that go together, as they are numbered in `Style::op`. A thread has some of the themes in a
/// phase, and always the first.
const THEMES: &[&[usize]] = &[
    &[10],
    &[0],
    &[9],
    &[1, 2, 3, 4],
    &[5, 6, 7, 8, 16, 17],
    &[11, 19],
    &[12],
    &[13, 14, 15, 18],
    #[cfg(not(shuttle))] // `shuttle_stream` has these
    &[27, 28, 29],
];

/// The themes of programs with bad code only.
const ROGUE_THEMES: [&[usize]; 6] = [&[20], &[21], &[22], &[23], &[24], &[25, 26]];

/// What a thread's operations are drawn from in a phase.
#[derive(Clone, Debug)]
pub struct Style {
    weights: [u64; KINDS],
    tasks: [u64; 8],
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
    pub fn new(random: &mut Random, timers: &[Ring], rogue: bool) -> Self {
        let weight = |random: &mut Random| [1, 3, 6, 12][random.below(4) as usize];
        let mut weights = [0; KINDS];
        for (number, theme) in THEMES.iter().enumerate() {
            if number == 0 || random.below(if rogue { 4 } else { 2 }) == 0 {
                theme.iter().for_each(|&kind| weights[kind] = weight(random));
            }
        }
        let mut tasks = [0; 8].map(|_: u64| random.below(2) * weight(random));
        if rogue {
            for theme in ROGUE_THEMES {
                let weight = random.below(3) / 2 * weight(random);
                theme.iter().for_each(|&kind| weights[kind] += weight);
            }
            weights[30..].fill_with(|| random.below(2)); // a timer has only one end
        } else {
            tasks[6..].fill(0);
        }
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
            5 => Task::Periodic(some * 3),
            6 => Task::CallsBack(some.into()),
            _ => Task::Panics,
        }
    }

    /// Mostly a sleep.
    fn future(&self, random: &mut Random) -> Future {
        match random.below(16) {
            0 | 1 => Future::Interval,
            2 | 3 => Future::Queue,
            4 | 5 => Future::Limit,
            6 => Future::Global,
            7 | 8 => Future::Stream(random.below(4)),
            _ => Future::Sleep,
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
            20 => {
                let count = 1 << random.below(10);
                Op::Futures(timer, count, self.future(random), self.long_delay(random, ring))
            }
            21 => Op::DropSleeps,
            22 => Op::Forget,
            23 => Op::AtThreadEnd(1 + random.below(3)),
            24 => Op::EndJob(random.below(2) == 0),
            25 => Op::TakeTask,
            26 => Op::Guard,
            27 => Op::Watch(timer, 1 << random.below(6), self.delay(random, ring)),
            28 => Op::UseLink,
            29 => Op::TakeIdlest(timer, random.below(4) as usize),
            30 => Op::Stop(timer, Stop::any(random)),
            31 => Op::DropTimer(timer),
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
