//! How late jobs are that are due at a steady rate.

use crate::Failed;
use crate::args::Args;
use crate::recorder::Recorder;
use crate::rivals::Rival;
use crate::server::Server;
use std::time::{Duration, SystemTime};

/// How long before its due time a job is scheduled.
const AHEAD: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);

/// How long to wait for jobs that are late.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Lateness {
    pub rival: Rival,
    pub recorder: Recorder,
    /// How many jobs had not run in the end.
    pub missing: u64,
}

pub async fn measure(server: &Server, args: &Args) -> Result<Vec<Lateness>, Failed> {
    let mut results = Vec::new();
    for rival in args.rivals() {
        let recorder = Recorder::new()?;
        let running = rival.start(&server.database().await?, recorder.clone()).await?;
        let jobs = args.rate * args.seconds;
        let first = SystemTime::now() + AHEAD;
        let due = |n: u64| first + Duration::from_secs(1).mul_f64(n as f64 / args.rate as f64);
        let mut step = tokio::time::interval(STEP);
        let mut next = 0;
        while next < jobs {
            step.tick().await;
            let horizon = SystemTime::now() + AHEAD;
            let batch: Vec<_> = (next..jobs).map(due).take_while(|due| *due <= horizon).collect();
            if !batch.is_empty() {
                running.schedule(&batch).await?;
                next += batch.len() as u64;
            }
        }
        let missing = recorder.wait_for(jobs, PATIENCE).await;
        running.stop().await?;
        results.push(Lateness { rival, recorder, missing });
    }
    Ok(results)
}
