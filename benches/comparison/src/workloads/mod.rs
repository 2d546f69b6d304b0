//! The workloads: what a child process does with one rival.

mod calls;
mod fire;
mod flood;
mod floor;
mod growth;
mod heartbeat;
mod lateness;
mod memory;
mod probe;
mod resident;

use crate::batches;
use crate::catalogue::Case;
use crate::param::{self, CONTROL};
use crate::rivals::{self, FLOOR, Rival, Visit};
use crate::sizes::Sizes;
use crate::task::{Nothing, TWO_WORDS, Task};
use crate::worker::Kind;
use probe::{Connection, Hit, HitWithArc};
use std::io;
use std::sync::Arc;
use std::thread;

/// A metric and its value.
pub type Figure = (&'static str, f64);
pub type Figures = Result<Vec<Figure>, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the timeouts could not all be scheduled before the first was due")]
    TooSlow,
    #[error("{missing} of {all} timeouts had not run {after_seconds} s after the last was due")]
    NotRun { missing: u64, all: u64, after_seconds: u64 },
    #[error("no rival {0} that runs in this process")]
    UnknownRival(String),
}

pub fn measure(case: Case, rival: &str, sizes: Sizes) -> Figures {
    match case.workload.name {
        FLOOR => floor::floor(&sizes),
        "calls" => Ok(calls::calls(case.count("threads"), &sizes)),
        _ => rivals::visit(rival, Measure { case, sizes })
            .unwrap_or_else(|| Err(Error::UnknownRival(rival.to_owned()))),
    }
}

struct Measure {
    case: Case,
    sizes: Sizes,
}

impl Visit for Measure {
    type Output = Figures;

    fn visit<R: Rival>(self) -> Figures {
        let Self { case, sizes } = &self;
        // Never taken down: that takes long for some, and the process ends anyway.
        let start = || &*Box::leak(Box::new(R::start(case.workload.tick(&case.param))));
        let timer = start();
        match case.workload.name {
            "fire_same_tick" if param::value(&case.param, "captures") == "0" => {
                fire::same_tick::<R>(timer, case.count("timeouts"), Hit, sizes)
            }
            "fire_same_tick" => {
                let hit = HitWithArc(Arc::new(Connection));
                fire::same_tick::<R>(timer, case.count("timeouts"), hit, sizes)
            }
            "fire_spread" => fire::spread::<R>(timer, case.count("timeouts"), sizes),
            "resident" => resident::resident::<R>(timer, case.count("pending"), sizes),
            "memory" => memory::pending::<R>(timer, case.count("captures"), sizes),
            "memory_storm" => memory::storm::<R>(timer, case.count("cancelled")),
            "short_lived" => memory::short_lived::<R>(timer, case.count("threads"), sizes),
            "lateness" => {
                let busy = param::value(&case.param, "load") == "busy";
                lateness::lateness::<R>(timer, busy, sizes)
            }
            "growth" => growth::growth::<R>(timer, case.count("present"), sizes),
            "backlog" => flood::backlog::<R>(timer, sizes),
            "flood" => {
                let flooded = if case.param.ends_with(CONTROL) { start() } else { timer };
                flood::flood::<R>(timer, flooded, &case.param, sizes)
            }
            "crowd" => crowd::<R>(timer, case.count("producers"), sizes),
            name => match (Kind::named(name), case.count("captures")) {
                (Some(kind), 0) => Ok(hot_path::<R>(timer, kind, Nothing, &self)),
                (Some(kind), _) => Ok(hot_path::<R>(timer, kind, TWO_WORDS, &self)),
                (None, _) => unreachable!("{name} is in the catalogue, but not here"),
            },
        }
    }
}

fn hot_path<R: Rival>(
    timer: &'static R::Timer,
    kind: Kind,
    task: impl Task,
    Measure { case, sizes }: &Measure,
) -> Vec<Figure> {
    let producers = case.count("producers");
    let all = sizes.schedule.min(R::FACTS.cap);
    let operations = match kind {
        Kind::Schedule => all / producers,
        _ if R::FACTS.is_linear => sizes.batch.min(1_000),
        _ => sizes.batch,
    };
    let nanos = batches::measure::<R>(timer, kind, task, (producers, operations), sizes);
    let mut figures = vec![("ns_per_op", nanos)];
    if kind == Kind::Schedule && all < sizes.schedule {
        figures.push(("capped_at", all as f64));
    }
    figures
}

/// Many more threads than cores. Producers beyond the number of cores take turns, so their waiting
/// is not counted: what is left is the core time of an operation.
fn crowd<R: Rival>(timer: &'static R::Timer, producers: u64, sizes: &Sizes) -> Figures {
    let crew = (producers, sizes.crowd / producers);
    let waited = batches::measure::<R>(timer, Kind::ScheduleCancel, TWO_WORDS, crew, sizes);
    let at_once = producers.min(thread::available_parallelism()?.get() as u64);
    Ok(vec![("ns_per_op", waited * at_once as f64 / producers as f64)])
}
