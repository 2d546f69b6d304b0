//! How late jobs are whose node was killed.

use crate::Failed;
use crate::recorder::Recorder;
use crate::rivals::wheelwork::{builder, job};
use crate::server::Server;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{Jobs, Postgres};

pub const LIVENESS: Duration = Duration::from_secs(3);
const WINDOW: Duration = Duration::from_secs(10);
const JOBS: u32 = 500;
/// The first node must have claimed all jobs by then.
const AHEAD: Duration = Duration::from_secs(4);
/// The jobs are due in this time.
const SPAN: Duration = Duration::from_secs(5);

/// The second node has taken over by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node that says when it is ready, and then waits to be killed.
pub async fn node(url: &str) -> Result<(), Failed> {
    let store = Postgres::new(url)?;
    let _jobs = builder(store, Recorder::new()?).liveness(LIVENESS).window(WINDOW).open().await?;
    println!("ready");
    std::future::pending().await
}

/// One node holds all jobs when it is killed. Returns what the other one has run.
pub async fn measure(server: &Server) -> Result<Recorder, Failed> {
    let url = server.database().await?;
    let user = Jobs::open(Postgres::new(&url)?).await?;
    let mut command = Command::new(std::env::current_exe()?);
    let mut first = command.args(["--node", &url]).stdout(Stdio::piped()).spawn()?;
    let output = first.stdout.take().ok_or("no standard output")?;
    BufReader::new(output).read_line(&mut String::new())?;

    let start = SystemTime::now() + AHEAD;
    let due = (0..JOBS).map(|n| job(start + SPAN * n / JOBS)).collect::<Result<Vec<_>, _>>()?;
    for result in user.schedule_all(due).await {
        result?;
    }
    while user.stats().await?.iter().any(|kind| kind.waiting > 0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let recorder = Recorder::new()?;
    let second = builder(Postgres::new(&url)?, recorder.clone());
    let second = second.liveness(LIVENESS).window(WINDOW).open().await?;
    let shortly_before = start - Duration::from_millis(200);
    tokio::time::sleep(shortly_before.duration_since(SystemTime::now()).unwrap_or_default()).await;
    first.kill()?;
    first.wait()?;
    if SystemTime::now() > start {
        return Err(
            "the node was killed after the first job was due: the machine is too busy".into()
        );
    }
    let missing = recorder.wait_for(u64::from(JOBS), PATIENCE).await;
    if missing > 0 {
        return Err(format!("{missing} jobs of the node that was killed have not run").into());
    }
    second.stop(Duration::from_secs(10)).await?;
    user.stop(Duration::from_secs(10)).await?;
    Ok(recorder)
}
