//! The workloads: what a child process does with one rival.

mod backlog;
mod calls;
mod crowd;
mod fire;
mod flood;
mod floor;
mod growth;
mod heartbeat;
mod hits;
mod late;
mod lateness;
mod memory;
mod micro;
mod resident;
mod short_lived;

use crate::case::{Case, Load};
use crate::crew;
use crate::floods::Target;
use crate::rivals::{Rival, Visit};
use crate::sizes::Sizes;
use crate::task::{Captures, Nothing, Task};
use hits::{Connection, Hit, HitWithArc};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A metric and its value.
pub type Figure = (&'static str, f64);

/// A case, and what it needs besides a rival.
pub struct Measure {
    pub case: Case,
    pub sizes: Sizes,
    /// For criterion's files.
    pub folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the timeouts could not all be scheduled before the first was due")]
    TooSlow,
    #[error("{missing} of {all} timeouts had not run {after_seconds} s after the last was due")]
    NotRun { missing: u64, all: u64, after_seconds: u64 },
}

pub fn floor(measure: &Measure) -> Result<Vec<Figure>, Error> {
    floor::floor(&measure.sizes, &measure.folder)
}

pub fn calls(measure: &Measure, threads: u64) -> Vec<Figure> {
    calls::calls(threads, &measure.sizes)
}

impl Visit for Measure {
    type Output = Result<Vec<Figure>, Error>;

    fn visit<R: Rival>(self) -> Self::Output {
        let sizes = if R::IS_LINEAR { self.sizes.for_linear() } else { self.sizes };
        // Never taken down: that takes long for some, and the process ends anyway.
        let start = || -> &'static R { Box::leak(Box::new(R::start(self.case.tick()))) };
        let timer = start();
        match self.case {
            Case::Floor => self::floor(&self),
            Case::Calls { threads } => Ok(self::calls(&self, threads)),
            Case::Schedule { captures, .. }
            | Case::ScheduleCancel { captures, .. }
            | Case::Rolling { captures, .. }
            | Case::Reschedule { captures } => match captures {
                0 => self.hot_path(timer, Nothing, &sizes),
                _ => self.hot_path(timer, Captures([1, 2]), &sizes),
            },
            Case::FireSameTick { timeouts, with_arc: false } => {
                fire::same_tick(timer, timeouts, Hit, &sizes)
            }
            Case::FireSameTick { timeouts, with_arc: true } => {
                let hit = HitWithArc(Arc::new(Connection));
                fire::same_tick(timer, timeouts, hit, &sizes)
            }
            Case::FireSpread { timeouts } => fire::spread(timer, timeouts, &sizes),
            Case::Resident { pending } => resident::resident(timer, pending, &sizes),
            Case::Memory { captures: 0 } => memory::pending(timer, Nothing, &sizes),
            Case::Memory { captures: 16 } => memory::pending(timer, Captures([1, 2]), &sizes),
            Case::Memory { .. } => memory::pending(timer, Captures([1, 2, 3]), &sizes),
            Case::MemoryStorm { cancelled } => memory::storm(timer, cancelled),
            Case::Lateness { load, .. } => lateness::lateness(timer, load == Load::Busy, &sizes),
            Case::Growth { present } => growth::growth(timer, present, &sizes, &self.folder),
            Case::Crowd { producers } => crowd::crowd(timer, producers, &sizes, &self.folder),
            Case::ShortLived { threads } => short_lived::short_lived(timer, threads, &sizes),
            Case::Backlog => backlog::backlog(timer, self.case.tick(), &sizes),
            Case::Flood(flood) => {
                let flooded = if flood.target == Target::Same { timer } else { start() };
                flood::flood(timer, flooded, flood, &sizes)
            }
        }
    }
}

impl Measure {
    fn hot_path<R: Rival>(
        &self,
        timer: &R,
        task: impl Task,
        sizes: &Sizes,
    ) -> Result<Vec<Figure>, Error> {
        let window = sizes.window;
        match self.case {
            Case::Schedule { producers, .. } => self.schedule(timer, task, producers),
            Case::Rolling { producers, .. } => {
                self.micro(timer, &micro::Rolling { task, window }, producers, sizes)
            }
            Case::ScheduleCancel { producers, .. } => {
                self.micro(timer, &micro::ScheduleCancel { task }, producers, sizes)
            }
            _ => self.micro(timer, &micro::Reschedule { task, window }, 1, sizes),
        }
    }

    fn schedule<R: Rival>(
        &self,
        timer: &R,
        task: impl Task,
        producers: u64,
    ) -> Result<Vec<Figure>, Error> {
        let all = self.sizes.schedule.min(R::SCHEDULE_CAP);
        let sizes = Sizes { batch: all / producers, ..self.sizes };
        let mut figures = self.micro(timer, &micro::Schedule { task }, producers, &sizes)?;
        if all < self.sizes.schedule {
            figures.push(("capped_at", all as f64));
        }
        Ok(figures)
    }

    fn micro<R: Rival>(
        &self,
        timer: &R,
        routine: &impl crew::Routine,
        producers: u64,
        sizes: &Sizes,
    ) -> Result<Vec<Figure>, Error> {
        let ns = crew::measure(timer, routine, producers, sizes.batch, sizes, &self.folder)?;
        Ok(vec![("ns_per_op", ns)])
    }
}
