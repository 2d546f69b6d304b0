//! The workloads: what a child process does with one rival.

mod calls;
mod fire;
mod flood;
mod floor;
mod growth;
mod lateness;
mod memory;
mod probe;
#[cfg(feature = "rivals")]
mod queue;
mod tasks;

use crate::batches;
use crate::catalogue::Case;
use crate::param;
use crate::rivals::{self, FLOOR, Rival, Trait, Visit};
use crate::sizes::Sizes;
use crate::task::{Nothing, TWO_WORDS, Task};
use crate::worker::Kind;
use probe::{Connection, Hit, HitWithArc};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A metric and its value.
pub type Figure = (&'static str, f64);
pub type Figures = Result<Vec<Figure>, Error>;

/// How long after the last deadline a timer is given up.
const PATIENCE: Duration = Duration::from_secs(30);

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

pub fn measure(case: &Case, rival: &str, sizes: &Sizes) -> Figures {
    let figures = match case.workload.name {
        FLOOR => Some(floor::floor(sizes)),
        "calls" => Some(Ok(calls::calls(case.count("threads"), sizes))),
        #[cfg(feature = "rivals")]
        "async_queue" => queue::visit(rival, case, sizes),
        _ if case.workload.is_async() => rivals::visit_sleep(rival, tasks::Measure { case, sizes }),
        _ => rivals::visit(rival, Measure { case, sizes }),
    };
    figures.unwrap_or_else(|| Err(Error::UnknownRival(rival.to_owned())))
}

/// Never taken down: that takes long for some, and the process ends anyway.
fn start<R: Rival>(case: &Case) -> &'static R::Timer {
    Box::leak(Box::new(R::start(case.tick())))
}

struct Measure<'a> {
    case: &'a Case,
    sizes: &'a Sizes,
}

impl Visit for Measure<'_> {
    type Output = Figures;

    fn visit<R: Rival>(self) -> Figures {
        let Self { case, sizes } = self;
        let timer = start::<R>(case);
        match case.workload.name {
            "fire_same_tick" if param::value(&case.param, "captures") == "0" => {
                fire::same_tick::<R>(timer, case.count("timeouts"), Hit, sizes)
            }
            "fire_same_tick" => {
                let hit = HitWithArc(Arc::new(Connection));
                fire::same_tick::<R>(timer, case.count("timeouts"), hit, sizes)
            }
            "fire_spread" => {
                fire::spread::<R>(timer, case.count("timeouts"), Duration::from_secs(1), sizes)
            }
            "resident" => memory::resident::<R>(timer, case.count("pending"), sizes),
            "memory" => memory::pending::<R>(timer, case.count("captures"), sizes),
            "memory_storm" => memory::storm::<R>(timer, case.count("cancelled")),
            "short_lived" => {
                memory::short_lived::<R>([start::<R>(case), timer], case.count("threads"), sizes)
            }
            "lateness" => {
                let busy = param::value(&case.param, "load") == "busy";
                lateness::lateness::<R>(timer, busy, sizes)
            }
            "growth" => growth::growth::<R>(timer, case.count("present"), sizes),
            "backlog" => flood::backlog::<R>(timer, sizes),
            "flood" => {
                let flooded = if param::is_control(&case.param) { start::<R>(case) } else { timer };
                flood::flood::<R>(timer, flooded, &case.param, sizes)
            }
            "crowd" => crowd::<R>(timer, case.count("producers"), sizes),
            name => match (Kind::named(name), case.count("captures")) {
                (Some(kind), 0) => Ok(hot_path::<R>(timer, kind, Nothing, case, sizes)),
                (Some(kind), _) => Ok(hot_path::<R>(timer, kind, TWO_WORDS, case, sizes)),
                (None, _) => unreachable!("{name} is in the catalogue, but not here"),
            },
        }
    }
}

fn hot_path<R: Rival>(
    timer: &'static R::Timer,
    kind: Kind,
    task: impl Task,
    case: &Case,
    sizes: &Sizes,
) -> Vec<Figure> {
    let producers = case.count("producers");
    let all = sizes.schedule.min(R::FACTS.cap());
    let operations = match kind {
        Kind::Schedule => all / producers,
        _ if R::FACTS.has(Trait::IsLinear) => sizes.batch.min(1_000),
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
