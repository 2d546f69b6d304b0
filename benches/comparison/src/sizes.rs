//! How much each workload does: in full, and small enough for a check that all of it works.

use crate::floods::Kind;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Timeouts in a batch of `schedule`, over all producers.
    pub schedule: u64,
    /// Operations of one producer in a batch of the other micro-benches.
    pub batch: u64,
    /// Live timeouts of one producer in `rolling` and `reschedule`.
    pub window: u64,
    /// How long criterion measures.
    pub measurement: Duration,
    pub warm_up: Duration,
    pub fire: u64,
    /// The least time to schedule all of `fire` before the first is due.
    pub lead: Duration,
    pub memory: u64,
    pub storm: u64,
    pub resident: Duration,
    pub lateness: Duration,
    pub backlog: Duration,
    /// Timeouts that expire together in `growth`.
    pub expire: u64,
    pub pending: &'static [u64],
    pub present: &'static [u64],
    /// Threads, and what each does.
    pub floods: &'static [(u64, Kind)],
    /// Live timeouts of each thread of a flood.
    pub flood_window: u64,
    pub flood: Duration,
    /// How often each call is timed under a flood, and the threads of that.
    pub calls: u64,
    pub call_threads: u64,
    /// Operations in a batch of `crowd`, over all producers.
    pub crowd: u64,
    pub crowds: &'static [u64],
    /// Timeouts of short-lived threads.
    pub short_lived: u64,
    /// A measurement that takes longer is given up.
    pub limit: Duration,
}

pub const FULL: Sizes = Sizes {
    schedule: 1_000_000,
    batch: 100_000,
    window: 100_000,
    measurement: Duration::from_millis(400),
    warm_up: Duration::from_millis(100),
    fire: 1_000_000,
    lead: Duration::from_secs(1),
    memory: 1_000_000,
    storm: 50_000_000,
    resident: Duration::from_secs(3),
    lateness: Duration::from_secs(5),
    backlog: Duration::from_secs(3),
    expire: 10_000,
    pending: &[0, 10_000, 100_000, 1_000_000, 10_000_000],
    present: &[1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    floods: &[
        (4, Kind::ScheduleCancel),
        (4, Kind::Rolling),
        (16, Kind::ScheduleCancel),
        (16, Kind::Reschedule),
        (16, Kind::CancelEnded),
        (64, Kind::ScheduleCancel),
    ],
    flood_window: 20_000,
    flood: Duration::from_secs(3),
    calls: 9,
    call_threads: 16,
    crowd: 2_000_000,
    crowds: &[2, 128],
    short_lived: 10_000,
    limit: Duration::from_secs(90),
};

pub const QUICK: Sizes = Sizes {
    schedule: 2_000,
    batch: 1_000,
    window: 1_000,
    measurement: Duration::from_millis(10),
    warm_up: Duration::from_millis(1),
    fire: 5_000,
    lead: Duration::from_millis(300),
    memory: 10_000,
    storm: 100_000,
    resident: Duration::from_millis(100),
    lateness: Duration::from_millis(200),
    backlog: Duration::from_millis(100),
    expire: 1_000,
    pending: &[0, 10_000],
    present: &[1_000],
    floods: &[
        (2, Kind::ScheduleCancel),
        (2, Kind::Rolling),
        (2, Kind::Reschedule),
        (2, Kind::CancelEnded),
    ],
    flood_window: 100,
    flood: Duration::from_millis(50),
    calls: 2,
    call_threads: 4,
    crowd: 2_000,
    crowds: &[2, 8],
    short_lived: 100,
    limit: Duration::from_secs(30),
};

impl Sizes {
    pub const fn of(quick: bool) -> Self {
        if quick { QUICK } else { FULL }
    }

    /// What a timer is given whose insertion takes time proportional to what is present.
    pub fn for_linear(self) -> Self {
        Self { batch: self.batch.min(1_000), ..self }
    }
}
