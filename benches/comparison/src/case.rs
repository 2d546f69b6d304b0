//! A workload with its parameter: what all rivals are put through.

use crate::floods::Flood;
use crate::sizes::Sizes;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Floor,
    Schedule { producers: u64, captures: u64 },
    ScheduleCancel { producers: u64, captures: u64 },
    Rolling { producers: u64, captures: u64 },
    Reschedule { captures: u64 },
    FireSameTick { timeouts: u64, with_arc: bool },
    FireSpread { timeouts: u64 },
    Resident { pending: u64 },
    Memory { captures: u64 },
    MemoryStorm { cancelled: u64 },
    Lateness { tick: Tick, load: Load },
    Growth { present: u64 },
    Backlog,
    Flood(Flood),
    Calls { threads: u64 },
    Crowd { producers: u64 },
    ShortLived { threads: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    Millisecond,
    Tenth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    Idle,
    Busy,
}

/// Bytes that the tasks of the micro-benches capture: none, and the size of an `Arc` and an id.
const CAPTURES: [u64; 2] = [0, 16];

pub const WORKLOADS: [&str; 17] = [
    "floor",
    "schedule",
    "schedule_cancel",
    "rolling",
    "reschedule",
    "fire_same_tick",
    "fire_spread",
    "resident",
    "memory",
    "memory_storm",
    "lateness",
    "growth",
    "backlog",
    "flood",
    "calls",
    "crowd",
    "short_lived",
];

impl Case {
    /// All of them, in the order in which they are run.
    pub fn all(sizes: &Sizes, cores: u64) -> Vec<Self> {
        let mut cases = vec![Self::Floor];
        cases.extend(
            crews(cores).map(|(producers, captures)| Self::Schedule { producers, captures }),
        );
        cases.extend(
            crews(cores).map(|(producers, captures)| Self::ScheduleCancel { producers, captures }),
        );
        cases.extend(
            crews(cores).map(|(producers, captures)| Self::Rolling { producers, captures }),
        );
        cases.extend(CAPTURES.map(|captures| Self::Reschedule { captures }));
        cases.extend(
            [false, true].map(|with_arc| Self::FireSameTick { timeouts: sizes.fire, with_arc }),
        );
        cases.push(Self::FireSpread { timeouts: sizes.fire });
        cases.extend(sizes.pending.iter().map(|pending| Self::Resident { pending: *pending }));
        cases.extend([0, 16, 24].map(|captures| Self::Memory { captures }));
        cases.push(Self::MemoryStorm { cancelled: sizes.storm });
        for tick in [Tick::Millisecond, Tick::Tenth] {
            cases.extend([Load::Idle, Load::Busy].map(|load| Self::Lateness { tick, load }));
        }
        cases.extend(sizes.present.iter().map(|present| Self::Growth { present: *present }));
        cases.push(Self::Backlog);
        cases.extend(Flood::all(sizes).map(Self::Flood));
        cases.push(Self::Calls { threads: sizes.call_threads });
        cases.extend(sizes.crowds.iter().map(|producers| Self::Crowd { producers: *producers }));
        cases.extend([1, sizes.short_lived].map(|threads| Self::ShortLived { threads }));
        cases
    }

    pub fn workload(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Schedule { .. } => "schedule",
            Self::ScheduleCancel { .. } => "schedule_cancel",
            Self::Rolling { .. } => "rolling",
            Self::Reschedule { .. } => "reschedule",
            Self::FireSameTick { .. } => "fire_same_tick",
            Self::FireSpread { .. } => "fire_spread",
            Self::Resident { .. } => "resident",
            Self::Memory { .. } => "memory",
            Self::MemoryStorm { .. } => "memory_storm",
            Self::Lateness { .. } => "lateness",
            Self::Growth { .. } => "growth",
            Self::Backlog => "backlog",
            Self::Flood(_) => "flood",
            Self::Calls { .. } => "calls",
            Self::Crowd { .. } => "crowd",
            Self::ShortLived { .. } => "short_lived",
        }
    }

    pub fn param(self) -> String {
        match self {
            Self::Floor | Self::Backlog => "-".to_owned(),
            Self::Schedule { producers, captures }
            | Self::ScheduleCancel { producers, captures }
            | Self::Rolling { producers, captures } => {
                format!("producers={producers};captures={captures}")
            }
            Self::Reschedule { captures } => format!("producers=1;captures={captures}"),
            Self::FireSameTick { timeouts, with_arc } => {
                let captures = if with_arc { "arc" } else { "0" };
                format!("captures={captures};timeouts={timeouts}")
            }
            Self::FireSpread { timeouts } => format!("timeouts={timeouts}"),
            Self::Resident { pending } => format!("pending={pending}"),
            Self::Memory { captures } => format!("captures={captures}"),
            Self::MemoryStorm { cancelled } => format!("cancelled={cancelled}"),
            Self::Lateness { tick, load } => {
                let tick = if tick == Tick::Millisecond { "1ms" } else { "100us" };
                let load = if load == Load::Idle { "idle" } else { "busy" };
                format!("tick={tick};load={load}")
            }
            Self::Growth { present } => format!("present={present}"),
            Self::Flood(flood) => flood.param(),
            Self::Calls { threads } | Self::ShortLived { threads } => format!("threads={threads}"),
            Self::Crowd { producers } => format!("producers={producers}"),
        }
    }

    /// The tick of those timers where it can be set.
    pub fn tick(self) -> Duration {
        match self {
            Self::Lateness { tick: Tick::Tenth, .. } => Duration::from_micros(100),
            Self::Lateness { .. }
            | Self::FireSpread { .. }
            | Self::Resident { .. }
            | Self::Flood(_) => Duration::from_millis(1),
            _ => Duration::from_millis(100),
        }
    }
}

/// Numbers of producers, each with each number of captured bytes. Producers double up to the cores.
fn crews(cores: u64) -> impl Iterator<Item = (u64, u64)> {
    let producers = move || (0..).map(|n| 1 << n).take_while(move |n| *n <= cores.max(2));
    CAPTURES.into_iter().flat_map(move |captures| producers().map(move |n| (n, captures)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::{FULL, QUICK};
    use std::collections::HashSet;

    #[test]
    fn names_tell_cases_apart() {
        for sizes in [FULL, QUICK] {
            let cases = Case::all(&sizes, 8);
            let names: HashSet<_> = cases.iter().map(|c| (c.workload(), c.param())).collect();
            assert_eq!(names.len(), cases.len());
        }
    }

    #[test]
    fn every_workload_has_a_case_and_the_other_way_round() {
        let cases = Case::all(&QUICK, 2);
        let used: HashSet<_> = cases.iter().map(|case| case.workload()).collect();
        assert_eq!(used, HashSet::from(WORKLOADS));
    }

    #[test]
    fn producers_double_up_to_the_cores_and_are_two_at_least() {
        let producers = |cores| -> Vec<u64> {
            let of = |case| match case {
                Case::Rolling { producers, captures: 16 } => Some(producers),
                _ => None,
            };
            Case::all(&FULL, cores).into_iter().filter_map(of).collect()
        };
        assert_eq!(producers(1), [1, 2]);
        assert_eq!(producers(2), [1, 2]);
        assert_eq!(producers(6), [1, 2, 4]);
        assert_eq!(producers(8), [1, 2, 4, 8]);
    }

    #[test]
    fn params_are_written_as_agreed() {
        let lateness = Case::Lateness { tick: Tick::Tenth, load: Load::Busy };
        assert_eq!(lateness.param(), "tick=100us;load=busy");
        assert_eq!(Case::Reschedule { captures: 16 }.param(), "producers=1;captures=16");
    }
}
