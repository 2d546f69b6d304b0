//! Sends messages at the times of a real log, and judges whether each was sent once, and when.
//!
//! Without arguments the messages are in an embedded store. With `--postgres URL` three node processes
//! share a database, and `--kill` and `--pause` disturb them meanwhile.
//!
//! - `log`, `plan`: when messages are scheduled and due, from a log that is compressed in time
//! - `clock`: the store's clock, as a process sees it
//! - `node`: a process that sends messages; `cluster` starts, kills and pauses these
//! - `conduct`: schedules the messages, and collects what was sent
//! - `evidence`: what happened; `judge`, `report`, `plot`: what it was like

mod args;
mod clock;
mod cluster;
mod conduct;
mod evidence;
mod judge;
mod log;
mod node;
mod plan;
mod plot;
mod report;

use args::Args;
use clock::Shared as Clock;
use cluster::Cluster;
use conduct::{Conduct, ConductError};
use evidence::Evidence;
use kit::terminal;
use plan::Plan;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use wheelwork_jobs::{Jobs, OpenError, Postgres, Redb, StopError, StoreError};

/// Why there is no judgement.
#[derive(Debug, thiserror::Error)]
enum MainError {
    #[error(transparent)]
    Log(#[from] log::LogError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    Conduct(#[from] ConductError),
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    #[error(transparent)]
    Node(#[from] node::NodeError),
    #[error(
        "the database has {0} jobs already: expected one without jobs, which this run may fill"
    )]
    NotEmpty(u64),
    #[error("cannot write the plot to {path:?}: {source}")]
    Plot { path: PathBuf, source: std::io::Error },
    #[error("cannot make a temporary folder: {0}")]
    Folder(std::io::Error),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(terminal::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            terminal::report(error);
            ExitCode::FAILURE
        }
    }
}

/// Whether the judgement is good.
async fn run(args: Args) -> Result<bool, MainError> {
    if let (Some(number), Some(url)) = (args.node, &args.postgres) {
        node::run(number, url).await?;
        return Ok(true);
    }
    let plan = Plan::new(&log::Log::open(&args.log)?, args.jobs, args.duration());
    report::announce(&args, &plan);
    let evidence = match &args.postgres {
        None => embedded(plan).await?,
        Some(url) => shared(plan, url, &args).await?,
    };
    let verdict = evidence.judge();
    report::print(&verdict);
    let path = args.plot_path();
    plot::draw(&evidence, &verdict, &path)
        .map_err(|source| MainError::Plot { path: path.clone(), source })?;
    println!("plot: {}", Path::display(&path));
    Ok(verdict.is_good())
}

/// Schedules and sends in this process.
async fn embedded(plan: Plan) -> Result<Evidence, MainError> {
    let folder = tempfile::tempdir().map_err(MainError::Folder)?;
    let store = Redb::open(folder.path().join("jobs.redb"))?;
    let (reports, reported) = mpsc::channel();
    let clock = Clock::measure(store.clone()).await?;
    let jobs = node::builder(store, 0, clock.clone(), move |report| {
        let _ = reports.send(report); // nobody listens at the end
    });
    let jobs = jobs.open().await?;
    let evidence = Conduct::new(plan, &jobs, clock, reported).run(None).await?;
    jobs.stop(node::PATIENCE).await?;
    Ok(evidence)
}

/// Schedules in this process, and sends in three others.
async fn shared(plan: Plan, url: &str, args: &Args) -> Result<Evidence, MainError> {
    let jobs = Jobs::open(Postgres::new(url)?).await?;
    let stored: u64 =
        jobs.stats().await?.iter().map(|kind| kind.waiting + kind.claimed + kind.dead).sum();
    if stored > 0 {
        return Err(MainError::NotEmpty(stored));
    }
    let (reports, reported) = mpsc::channel();
    let mut cluster = Cluster::start(url, args.disturbances(), reports)?;
    let clock = Clock::measure(Postgres::new(url)?).await?;
    let evidence = Conduct::new(plan, &jobs, clock, reported).run(Some(&mut cluster)).await?;
    jobs.stop(node::PATIENCE).await?;
    Ok(evidence)
}
