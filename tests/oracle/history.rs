//! The operations of a history, decoded from bytes.

use crate::common::WHEELS;
use std::fmt::{self, Write};
use wheelwork::timer::WheelKind;

/// A timer's settings and operations. Its `Debug` output is a test to paste.
#[derive(Clone, PartialEq, Eq)]
pub struct History {
    pub setup: Setup,
    pub ops: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Nanoseconds.
    pub tick: u64,
    pub wheel: WheelKind,
    pub ticks_per_wheel: usize,
    pub limit: Option<usize>,
    /// `None` runs tasks on the worker.
    pub executor: Option<Hands>,
}

/// An executor. Each job meets the next of these fates, over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hands {
    pub fates: Vec<Fate>,
    pub refused: Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    RunNow,
    Hold,
    Refuse,
    DropIt,
    PanicWithIt,
}

/// The timer's `OnRefusal`. The callback holds its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    RunsOnWorker,
    Waits,
    GoesToCallback,
}

/// Nanoseconds from now. The longest delay means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    After(u64),
    /// By an instant, this long ago.
    Before(u64),
}

use When::{After, Before};

/// A number names a timeout, modulo the number of timeouts so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Schedule(When, Script),
    Repeat(Series),
    Cancel(usize),
    Reschedule(usize, When),
    Look(usize),
    /// One more handle to it.
    Clone(usize),
    /// One handle less.
    Forget(usize),
    /// A handle becomes a guard, which is dropped or disarmed.
    Guard(usize, bool),
    Advance(u64),
    /// Runs a held job on the calling thread.
    RunHeld(usize),
    DropHeld(usize),
    Stop,
    DropTimer,
}

/// A task that does something when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Script {
    pub acts: Vec<Act>,
    /// How often `Act::GoOn` has an effect.
    pub lives: u8,
    pub panics: bool,
    pub panics_when_cancelled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Schedule(When),
    Cancel(usize),
    CancelSelf,
    Reschedule(usize, When),
    GoOn(When),
    Look(usize),
    Stop,
    DropTimer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Nanoseconds.
    pub every: u64,
    pub initial: Option<u64>,
    pub cadence: Cadence,
    /// Panics in this run; 0 is none.
    pub panics_in: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    Burst,
    Delay,
    Skip,
    FixedDelay,
}

const MS: u64 = 1_000_000;
const YEAR: u64 = 365 * 86_400 * 1_000 * MS;

/// Bytes of an operation.
pub const OP_BYTES: usize = 8;
/// Bytes of the settings.
pub const SETUP_BYTES: usize = 8;

impl History {
    /// Every sequence of bytes is a history.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut head = [0; SETUP_BYTES];
        let taken = bytes.len().min(SETUP_BYTES);
        head[..taken].copy_from_slice(&bytes[..taken]);
        let setup = Setup::from_bytes(head);
        let ops = bytes[taken..].chunks_exact(OP_BYTES);
        let ops = ops.filter_map(|op| op.try_into().ok().map(|op| Op::from_bytes(op, setup.tick)));
        let mut history = Self { ops: ops.collect(), setup };
        history.shorten_bursts();
        history
    }

    /// Limits jumps of the clock, because a burst would make up for a billion runs in a year.
    fn shorten_bursts(&mut self) {
        const RUNS: u64 = 40;
        let bursts = self.ops.iter().filter_map(|op| match op {
            Op::Repeat(series) if series.cadence == Cadence::Burst => Some(series.every),
            _ => None,
        });
        let Some(least) = bursts.min() else { return };
        for op in &mut self.ops {
            if let Op::Advance(by) = op {
                *by = (*by).min(RUNS * least);
            }
        }
    }

    fn as_test(&self) -> String {
        let mut text = String::from("#[test]\nfn a_history_that_differed() {\n    ");
        text.push_str(
            "use super::history::{Act::*, Cadence::*, Fate::*, Refused::*, When::*, *};\n    \
             use wheelwork::timer::WheelKind;\n",
        );
        let Setup { tick, wheel, ticks_per_wheel, limit, executor } = &self.setup;
        let executor = executor.as_ref().map(|Hands { fates, refused }| {
            format!("Hands {{ fates: vec!{fates:?}, refused: {refused:?} }}")
        });
        let executor = executor.map_or("None".to_owned(), |e| format!("Some({e})"));
        let _ = writeln!(
            text,
            "    let setup = Setup {{ tick: {tick}, wheel: WheelKind::{wheel:?}, \
             ticks_per_wheel: {ticks_per_wheel}, limit: {limit:?}, executor: {executor} }};\n    \
             let ops = vec!["
        );
        for op in &self.ops {
            let op = match op {
                Op::Schedule(when, script) => {
                    let Script { acts, lives, panics, panics_when_cancelled } = script;
                    format!(
                        "Schedule({when:?}, Script {{ acts: vec!{acts:?}, lives: {lives}, \
                         panics: {panics}, panics_when_cancelled: {panics_when_cancelled} }})"
                    )
                }
                op => format!("{op:?}"),
            };
            let _ = writeln!(text, "        Op::{op},");
        }
        text.push_str("    ];\n    super::agree(&History { setup, ops });\n}");
        text
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_test())
    }
}

impl Setup {
    fn from_bytes([tick, wheel, limit, executor, f1, f2, f3, refused]: [u8; SETUP_BYTES]) -> Self {
        let fate = |byte: u8| match byte % 8 {
            0..=2 => Fate::Hold,
            3 | 4 => Fate::RunNow,
            5 => Fate::Refuse,
            6 => Fate::DropIt,
            _ => Fate::PanicWithIt,
        };
        let refused = match refused % 3 {
            0 => Refused::RunsOnWorker,
            1 => Refused::Waits,
            _ => Refused::GoesToCallback,
        };
        let mut fates = vec![fate(f1), fate(f2), fate(f3)];
        if refused == Refused::Waits && fates.iter().all(|&fate| fate == Fate::Refuse) {
            fates.push(Fate::RunNow); // or nothing would ever be taken
        }
        let kind = WHEELS[usize::from(wheel / 5) % WHEELS.len()];
        let least = if kind == WheelKind::Hierarchical { 2 } else { 1 };
        Self {
            wheel: kind,
            tick: [100 * MS, MS, 7 * MS + 13, 50_000][usize::from(tick % 4)],
            ticks_per_wheel: [8, 1, 2, 64, 512][usize::from(wheel % 5)].max(least),
            limit: (limit % 4 == 3).then_some(1 + usize::from(limit / 16)),
            executor: (executor % 2 == 1).then_some(Hands { fates, refused }),
        }
    }
}

impl Op {
    fn from_bytes(bytes: [u8; OP_BYTES], tick: u64) -> Self {
        let [kind, time, fine, pick, act1, act2, more, flags] = bytes;
        let pick_of = usize::from;
        match kind % 32 {
            0..=9 => Op::Schedule(
                when(time, fine, tick),
                Script {
                    acts: [(act1, more), (act2, fine)]
                        .into_iter()
                        .filter_map(|(act, arg)| Act::from_bytes(act, arg, pick, tick))
                        .collect(),
                    lives: flags >> 4 & 3,
                    panics: flags % 8 == 7,
                    panics_when_cancelled: flags % 16 == 6,
                },
            ),
            10 | 11 => Op::Repeat(Series {
                every: [tick, tick / 4, 3 * tick, 2 * tick + 1, 40 * tick][pick_of(time % 5)],
                initial: (fine % 2 == 1).then(|| length(fine, 0, tick)),
                cadence: [Cadence::Burst, Cadence::Delay, Cadence::Skip, Cadence::FixedDelay]
                    [pick_of(flags % 4)],
                panics_in: if flags & 0x70 == 0x70 { 1 + more % 3 } else { 0 },
            }),
            12..=14 => Op::Cancel(pick_of(pick)),
            15..=18 => Op::Reschedule(pick_of(pick), when(time, fine, tick)),
            19 => Op::Look(pick_of(pick)),
            20 => Op::Clone(pick_of(pick)),
            21 => Op::Forget(pick_of(pick)),
            22 => Op::Guard(pick_of(pick), flags % 2 == 1),
            23..=27 => Op::Advance(length(time, fine, tick)),
            28 | 29 => Op::RunHeld(pick_of(pick)),
            30 => Op::DropHeld(pick_of(pick)),
            _ if flags < 64 => Op::Stop,
            _ if flags < 96 => Op::DropTimer,
            _ => Op::Advance(length(time, 0, tick)),
        }
    }
}

impl Act {
    fn from_bytes(act: u8, arg: u8, pick: u8, tick: u64) -> Option<Self> {
        let pick = usize::from(pick ^ arg);
        Some(match act % 16 {
            0..=5 => return None,
            6 => Act::Schedule(when(arg, act, tick)),
            7 | 8 => Act::Cancel(pick),
            9 => Act::CancelSelf,
            10 | 11 => Act::Reschedule(pick, when(arg, act, tick)),
            12 | 13 => Act::GoOn(when(arg, act, tick)),
            14 => Act::Look(pick),
            _ if act < 240 => Act::Stop,
            _ => Act::DropTimer,
        })
    }
}

fn when(byte: u8, fine: u8, tick: u64) -> When {
    if byte % 16 == 15 { Before(length(fine, 0, tick)) } else { After(length(byte, fine, tick)) }
}

/// A length of mostly a few ticks, often whole ones; sometimes of many turns, a year, or for ever.
fn length(byte: u8, fine: u8, tick: u64) -> u64 {
    let ticks = u64::from(byte >> 3);
    let fraction = if fine % 2 == 0 { 0 } else { tick * u64::from(fine) / 256 };
    match byte % 8 {
        0..=4 => tick * (ticks % 8) + fraction,
        5 => tick * ticks * 17 + fraction,
        6 => tick * ticks * 5_003 + fraction,
        _ => match ticks % 4 {
            0 => YEAR,
            1 => YEAR * 100 + fraction,
            2 => u64::MAX,
            _ => 0,
        },
    }
}
