//! The table of workloads: what each is put through, how often, how the report shows it, and the
//! numbers to reach.

use crate::param;
use crate::rivals::{CANCEL_NEW, FLOOR, NETTY_BEST, NETTY_DEFAULT, PINGORA, TOKIO, TOKIO_ALT};
use crate::rivals::{DELAY_QUEUE, TOKIO_TASK};
use crate::sizes::Sizes;
use std::time::Duration;

#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// Patterns for [`param::expand`].
    params: &'static [&'static str],
    /// Two rounds show that steady figures agree; the hot paths and the firing vary more.
    pub most_rounds: u32,
    /// Whether it counts what its own process uses, and no time: two can run side by side.
    pub counts_only: bool,
    /// For timers whose tick can be set.
    tick_ms: u64,
    pub plot: Option<Plot>,
    pub goals: &'static [Goal],
}

/// A row for each rival, with bars or dots.
#[derive(Debug, Clone, Copy)]
pub enum Plot {
    /// A bar of this metric for each param.
    Bars(&'static str),
    /// A panel for each metric, a dot for each param.
    Growth,
    /// A panel for each param, a dot for each of these metrics: from the median to the worst.
    Late(&'static [&'static str]),
}

/// A claim about our figures in a workload.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// Empty if it is about all params of the workload.
    pub param: &'static str,
    pub metric: &'static str,
    pub base: Base,
    pub target: Target,
}

/// The thing that our figure is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Base {
    /// The fastest of these rivals; the quotient says how many times as long it takes.
    Rivals(&'static [&'static str]),
    /// Ours in the control.
    Control,
    /// Ours at the first point of the curve; the dearest point counts.
    FirstPoint,
    /// The sum of the floor's parts; the figure is ours in this workload.
    Floor(&'static str),
    /// Nothing: the figure itself counts.
    One,
    /// Nothing: the greatest of all params and rounds counts.
    Worst,
}

#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

const fn at_most(param: &'static str, metric: &'static str, base: Base, most: f64) -> Goal {
    Goal { param, metric, base, target: Target::AtMost(most) }
}

const fn faster_by(
    param: &'static str,
    metric: &'static str,
    than: &'static [&'static str],
    least: f64,
) -> Goal {
    Goal { param, metric, base: Base::Rivals(than), target: Target::AtLeast(least) }
}

const fn faster(param: &'static str, than: &'static [&'static str], least: f64) -> Goal {
    faster_by(param, "ns_per_op", than, least)
}

const fn limit(param: &'static str, metric: &'static str, most: f64) -> Goal {
    at_most(param, metric, Base::One, most)
}

const fn flat(metric: &'static str, most: f64) -> Goal {
    at_most("", metric, Base::FirstPoint, most)
}

/// A workload with its param: what all rivals are put through.
#[derive(Debug, Clone)]
pub struct Case {
    pub workload: &'static Workload,
    pub param: String,
}

impl Case {
    /// The number of that name in the param.
    pub fn count(&self, name: &str) -> u64 {
        param::count(&self.param, name)
    }

    pub fn tick(&self) -> Duration {
        match param::value(&self.param, "tick") {
            "100us" => Duration::from_micros(100),
            _ => Duration::from_millis(self.workload.tick_ms),
        }
    }
}

impl Workload {
    /// Whether tasks on a runtime use the timers, as futures or as delay queues.
    pub fn is_async(&self) -> bool {
        self.name.starts_with("async")
    }

    pub fn cases(&'static self, sizes: &Sizes, cores: u64) -> Vec<Case> {
        let params = self.params.iter().flat_map(|pattern| param::expand(pattern, sizes, cores));
        params.map(|param| Case { workload: self, param }).collect()
    }
}

pub fn workload(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

/// All cases, in the order in which they are run.
pub fn cases(sizes: &Sizes, cores: u64) -> Vec<Case> {
    WORKLOADS.iter().flat_map(|workload| workload.cases(sizes, cores)).collect()
}

/// A row of the table; the methods below add to it.
const fn work(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    params: &'static [&'static str],
) -> Workload {
    Workload {
        name,
        title,
        about,
        params,
        most_rounds: 2,
        counts_only: false,
        tick_ms: 100,
        plot: None,
        goals: &[],
    }
}

impl Workload {
    const fn counts_only(self) -> Self {
        Self { counts_only: true, ..self }
    }

    const fn every_round(self) -> Self {
        Self { most_rounds: u32::MAX, ..self }
    }

    const fn short_tick(self) -> Self {
        Self { tick_ms: 1, ..self }
    }

    const fn bars(self, metric: &'static str) -> Self {
        Self { plot: Some(Plot::Bars(metric)), ..self }
    }

    const fn plot(self, plot: Plot) -> Self {
        Self { plot: Some(plot), ..self }
    }

    const fn hot(self) -> Self {
        self.every_round().bars("ns_per_op")
    }

    const fn goals(self, goals: &'static [Goal]) -> Self {
        Self { goals, ..self }
    }
}

const CREWS: &[&str] = &["producers=$crew;captures=0|16"];
const ONE_PRODUCER: &[&str] = &["producers=1;captures=0|16"];
const BURSTS: &[&str] = &["captures=0|arc;timeouts=$fire"];
const PENDING: &[&str] = &["pending=0|10000..$pending"];
const CAPTURES: &[&str] = &["captures=0|16|24"];
const STORM: &[&str] = &["cancelled=$storm"];
const LOADS: &[&str] = &["tick=1ms|100us;load=idle|busy"];
const PRESENT: &[&str] = &["present=1000..$present"];
const CROWDS: &[&str] = &["producers=2|128"];
const SHORT_LIVED_THREADS: &[&str] = &["threads=1|$short_lived"];
const TASKS: &[&str] = &["tasks=1|2|8"];
const SLEEPING: &[&str] = &["sleeping=$sleeping"];
const FLOODS: &[&str] = &[
    "threads=4;flood=schedule_cancel|rolling;timer=same|other",
    "threads=16;flood=schedule_cancel|reschedule|cancel_ended;timer=same|other",
    "threads=64;flood=schedule_cancel;timer=same|other",
];

const FLOOD: &str = "One timeout of 5 ms after the other, ticks of 1 ms, beside threads that use the \
    timer as fast as they can; and as control, beside threads that use another one.";
const SHORT_LIVED: &str =
    "16 bytes captured; by so many threads 10k in all; growth of the resident memory.";
const LIMITS: &str = "A ready future, a read that is ready, and a read that waits; core time.";
const QUEUE: &str =
    "Insert and remove beside as many values; then all of as many expire at one instant.";

const FLOOR_GOALS: &[Goal] =
    &[at_most("producers=1;captures=0", "ns_per_op", Base::Floor("schedule_cancel"), 2.0)];

const NETTY_AND_TOKIO: &[&str] = &[NETTY_BEST, TOKIO, TOKIO_TASK];

/// The default JVM and the best one have limits of their own.
const HOT_GOALS: &[Goal] = &[
    faster("producers=1;captures=0", NETTY_AND_TOKIO, 2.0),
    faster("producers=2;captures=0", NETTY_AND_TOKIO, 4.0),
    faster("producers=2;captures=0", &[PINGORA], 2.0),
    faster("producers=1;captures=16", &[NETTY_DEFAULT], 3.5),
    faster("producers=1;captures=16", &[NETTY_BEST], 1.7),
    faster("producers=2;captures=16", &[NETTY_DEFAULT], 6.0),
    faster("producers=2;captures=16", &[NETTY_BEST], 5.0),
];

const ASYNC_GOALS: &[Goal] =
    &[faster("tasks=2", &[TOKIO], 5.0), faster("tasks=2", &[TOKIO_ALT], 1.5)];

/// With 4 threads, twice the cores of the machine that the goals were set for, the worst stays within
/// twice the control. With more threads it stays within six times.
const FLOOD_GOALS: &[Goal] = &[
    at_most("threads=4;flood=schedule_cancel;timer=same", "p99_ms", Base::Control, 2.0),
    at_most("threads=4;flood=schedule_cancel;timer=same", "max_ms", Base::Control, 2.0),
    at_most("threads=4;flood=rolling;timer=same", "p99_ms", Base::Control, 2.0),
    at_most("threads=4;flood=rolling;timer=same", "max_ms", Base::Control, 2.0),
    at_most("threads=16;flood=schedule_cancel;timer=same", "p99_ms", Base::Control, 2.0),
    at_most("threads=16;flood=schedule_cancel;timer=same", "max_ms", Base::Control, 6.0),
    at_most("threads=16;flood=reschedule;timer=same", "p99_ms", Base::Control, 2.0),
    at_most("threads=16;flood=reschedule;timer=same", "max_ms", Base::Control, 6.0),
    at_most("threads=16;flood=cancel_ended;timer=same", "p99_ms", Base::Control, 2.0),
    at_most("threads=16;flood=cancel_ended;timer=same", "max_ms", Base::Control, 6.0),
    at_most("threads=64;flood=schedule_cancel;timer=same", "p99_ms", Base::Control, 2.0),
    at_most("threads=64;flood=schedule_cancel;timer=same", "max_ms", Base::Control, 6.0),
];

pub static WORKLOADS: [Workload; 22] = [
    work(FLOOR, "the floor", "What no timer can do without, on this machine.", &["-"])
        .every_round()
        .goals(FLOOR_GOALS),
    work("schedule", "schedule", "1M timeouts, delays of 1 to 60 s, handles kept.", CREWS)
        .hot()
        .goals(HOT_GOALS),
    work("schedule_cancel", "schedule and cancel", "Each is cancelled at once.", CREWS)
        .hot()
        .goals(HOT_GOALS),
    work("rolling", "rolling window", "Of 100k, the oldest is cancelled, a new one made.", CREWS)
        .hot()
        .goals(HOT_GOALS),
    work("reschedule", "reschedule", "100k live ones, pushed back in turn.", ONE_PRODUCER)
        .hot()
        .goals(&[faster("producers=1;captures=0", &[CANCEL_NEW], 2.0)]),
    work("fire_same_tick", "fire, all at one instant", "From the first run to the last.", BURSTS)
        .hot()
        .goals(&[
            faster("captures=0;timeouts=1000000", &[NETTY_BEST], 1.0),
            faster("captures=0;timeouts=1000000", &[TOKIO, TOKIO_TASK], 15.0),
            faster("captures=arc;timeouts=1000000", &[NETTY_DEFAULT], 1.0),
        ]),
    work("fire_spread", "fire, spread over a second", "Ticks of 1 ms.", &["timeouts=$fire"])
        .every_round()
        .short_tick()
        .bars("cpu_ns_per_op"),
    work("resident", "resident", "Far timeouts, ticks of 1 ms, nothing due.", PENDING)
        .counts_only()
        .short_tick()
        .plot(Plot::Growth)
        .goals(&[
            limit("pending=1000000", "cpu_percent", 0.1),
            limit("pending=1000000", "wakeups_per_s", 2.0),
        ]),
    work("memory", "memory", "Growth of the resident memory (Netty: of the heap).", CAPTURES)
        .counts_only()
        .bars("bytes_per_timeout")
        .goals(&[
            limit("captures=0", "bytes_per_timeout", 48.0),
            limit("captures=16", "bytes_per_timeout", 48.0),
        ]),
    work("memory_storm", "memory after a storm", "50M of 60 s, each cancelled at once.", STORM)
        .counts_only()
        .bars("rss_mib_after"),
    work("lateness", "lateness", "10,000 a second, delays of 5 to 500 ms.", LOADS)
        .short_tick()
        .plot(Plot::Late(&["p50_us", "p99_us", "p999_us", "max_us"]))
        .goals(&[
            limit("tick=1ms;load=idle", "p50_us", 700.0),
            limit("tick=1ms;load=idle", "p99_us", 1200.0),
            limit("tick=100us;load=idle", "p50_us", 150.0),
            at_most("", "early", Base::Worst, 0.0),
        ]),
    work("growth", "growth", "Beside as many far timeouts as the column says.", PRESENT)
        .plot(Plot::Growth)
        .goals(&[flat("schedule_ns", 2.0), flat("cancel_ns", 2.0)]),
    work("backlog", "backlog", "A fresh timeout of one tick beside cancelled ones.", &["-"])
        .bars("ticks_late")
        .goals(&[limit("-", "ticks_late", 3.0)]),
    work("flood", "a heartbeat beside floods", FLOOD, FLOODS)
        .short_tick()
        .plot(Plot::Late(&["p50_ms", "p99_ms", "max_ms"]))
        .goals(FLOOD_GOALS),
    work("calls", "calls under a flood", "1,000 far timeouts, ticks of 100 ms.", &["threads=16"])
        .goals(&[
            limit("threads=16", "stop_max_ms", 20.0),
            limit("threads=16", "metrics_max_ms", 20.0),
            limit("threads=16", "pending_max_ms", 20.0),
        ]),
    work("crowd", "schedule and cancel, by a crowd", "16 bytes captured; core time.", CROWDS)
        .goals(&[flat("ns_per_op", 1.5)]),
    work("short_lived", "timeouts of threads that have ended", SHORT_LIVED, SHORT_LIVED_THREADS)
        .counts_only()
        .goals(&[flat("bytes_per_timeout", 2.0)]),
    work("async_sleep", "a sleep in a task", "Create, poll, drop; core time.", TASKS)
        .hot()
        .goals(ASYNC_GOALS),
    work("async_reset", "a reset in a task", "Reset, poll; core time.", TASKS)
        .hot()
        .goals(ASYNC_GOALS),
    work(
        "async_timeout",
        "a limit on a future",
        LIMITS,
        &["future=ready|ready_read|waiting_read;tasks=1|2|8"],
    )
    .every_round()
    .goals(&[limit("future=ready;tasks=1", "beyond_clock_ns", 5.0)]),
    work(
        "async_many",
        "sleeping tasks",
        "All wake up over 10 s; CPU time of the process.",
        SLEEPING,
    )
    .short_tick()
    .bars("cpu_ns_per_op")
    .goals(&[
        faster_by("sleeping=1000000", "cpu_ns_per_op", &[TOKIO], 1.0),
        at_most("", "early", Base::Worst, 0.0),
    ]),
    work("async_queue", "a delay queue in a task", QUEUE, &["present=$queued;tasks=1|2|8"])
        .bars("ns_per_op")
        .goals(&[faster("present=100000;tasks=1", &[DELAY_QUEUE], 5.0)]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::{FULL, QUICK};
    use std::collections::HashSet;

    #[test]
    fn every_goal_is_about_a_case_that_is_run() {
        let cases = cases(&FULL, 2).into_iter().map(|case| (case.workload.name, case.param));
        let cases: HashSet<_> = cases.collect();
        for workload in &WORKLOADS {
            for goal in workload.goals.iter().filter(|goal| !goal.param.is_empty()) {
                let name = if let Base::Floor(name) = goal.base { name } else { workload.name };
                assert!(cases.contains(&(name, goal.param.to_owned())), "{goal:?}");
            }
        }
    }

    #[test]
    fn names_tell_cases_apart() {
        for sizes in [FULL, QUICK] {
            let cases = cases(&sizes, 8);
            let names: HashSet<_> = cases.iter().map(|c| (c.workload.name, &c.param)).collect();
            assert_eq!(names.len(), cases.len());
        }
    }
}
