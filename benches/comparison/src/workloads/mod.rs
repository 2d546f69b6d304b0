//! The workloads: what a child process does with one rival.

mod batches;
mod calls;
mod far;
mod fire;
mod flood;
mod floor;
mod growth;
mod hot;
mod lateness;
mod memory;
mod probe;
mod queue;
mod tasks;
mod worker;

use crate::plan::Job;
use crate::rivals::{CANCEL_NEW, FLOOR, NO_LIMIT, OURS, Rival, TOKIO, TOKIO_ALT};
#[cfg(feature = "rivals")]
use crate::rivals::{DELAY_QUEUE, delay_queue::DelayQueue, ordered, others};
use crate::rivals::{sleeps::*, wheelwork};
use std::io;
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
    #[error("cannot read what the kernel knows of this process: {0}")]
    Proc(#[from] procfs::ProcError),
    #[error("the timeouts could not all be scheduled before the first was due")]
    TooSlow,
    #[error("{missing} of {all} timeouts had not run {after_seconds} s after the last was due")]
    NotRun { missing: u64, all: u64, after_seconds: u64 },
    #[error("this build does not measure {workload} with {rival}")]
    Unknown { workload: String, rival: String },
}

pub fn measure(job: &Job) -> Figures {
    match &*job.workload.name {
        FLOOR => Ok(floor::floor(job.sizes)),
        "calls" => Ok(calls::calls(job)),
        "stop" => Ok(calls::stop(job)),
        "async_queue" => in_queues(job),
        _ if job.workload.is_async() => in_tasks(job),
        _ => on_threads(job),
    }
}

fn unknown(job: &Job) -> Figures {
    let (workload, rival) = (job.workload.name.clone(), job.rival.name.clone());
    Err(Error::Unknown { workload, rival })
}

fn on_threads(job: &Job) -> Figures {
    match &*job.rival.name {
        OURS => workload::<wheelwork::Wheelwork<true>>(job),
        CANCEL_NEW => workload::<wheelwork::Wheelwork<false>>(job),
        TOKIO => workload::<Polled<Tokio<false>>>(job),
        TOKIO_ALT => workload::<Polled<Tokio<true>>>(job),
        "tokio-task" => workload::<TokioTask>(job),
        #[cfg(feature = "rivals")]
        name => match name {
            DELAY_QUEUE => workload::<DelayQueue>(job),
            "pingora-timeout" => workload::<Polled<others::Pingora>>(job),
            "async-io" => workload::<Polled<others::AsyncIo>>(job),
            "futures-timer" => workload::<Polled<others::FuturesTimer>>(job),
            "hashed_wheel_timer" => workload::<others::HashedWheel>(job),
            "hierarchical_hash_wheel_timer" => workload::<others::HierarchicalWheel>(job),
            "sorted-list" => workload::<ordered::List>(job),
            "binary-heap" => workload::<ordered::Heap>(job),
            "btree-map" => workload::<ordered::Tree>(job),
            "skiplist" => workload::<ordered::SkipList>(job),
            "nexus-timer" => workload::<others::Nexus>(job),
            _ => unknown(job),
        },
        #[cfg(not(feature = "rivals"))]
        _ => unknown(job),
    }
}

fn in_tasks(job: &Job) -> Figures {
    match &*job.rival.name {
        OURS => tasks::workload::<wheelwork::Sleeping>(job),
        TOKIO => tasks::workload::<Tokio<false>>(job),
        TOKIO_ALT => tasks::workload::<Tokio<true>>(job),
        NO_LIMIT => tasks::workload::<NoLimit>(job),
        #[cfg(feature = "rivals")]
        "pingora-timeout" => tasks::workload::<others::Pingora>(job),
        #[cfg(feature = "rivals")]
        "async-io" => tasks::workload::<others::AsyncIo>(job),
        #[cfg(feature = "rivals")]
        "futures-timer" => tasks::workload::<others::FuturesTimer>(job),
        _ => unknown(job),
    }
}

fn in_queues(job: &Job) -> Figures {
    match &*job.rival.name {
        OURS => Ok(queue::queue::<::wheelwork::future::DelayQueue<u64>>(job)),
        #[cfg(feature = "rivals")]
        DELAY_QUEUE => Ok(queue::queue::<tokio_util::time::DelayQueue<u64>>(job)),
        _ => unknown(job),
    }
}

fn workload<R: Rival>(job: &Job) -> Figures {
    let timer = R::start(job.tick());
    match &*job.workload.name {
        "fire_same_tick" => fire::same_tick(timer, job),
        "fire_spread" => {
            fire::spread(timer, job.count("timeouts"), Duration::from_secs(1), job.sizes)
        }
        "fire_reused" => fire::reused(timer, job),
        "far" => far::beside(timer, job),
        "kept" => far::kept(timer, job),
        "resident" => memory::resident(timer, job),
        "memory" => memory::pending(timer, job),
        "memory_storm" => memory::storm(timer, job.count("cancelled")),
        "short_lived" => memory::short_lived([R::start(job.tick()), timer], job),
        "lateness" => lateness::lateness(timer, job),
        "growth" => growth::growth(timer, job),
        "backlog" => flood::backlog(timer, job.sizes),
        "flood" => flood::flood(timer, job),
        "crowd" => hot::crowd(timer, job),
        _ => hot::path(timer, job),
    }
}
