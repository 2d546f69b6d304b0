//! How many jobs are scheduled and run in a second.

use crate::Failed;
use crate::args::Args;
use crate::recorder::Recorder;
use crate::rivals::Rival;
use crate::server::Server;
use std::time::{Duration, Instant, SystemTime};

/// So many are scheduled in one call.
const BATCH: u64 = 1_000;

/// A crate that has not done by then is judged by what it has done.
const LIMIT: Duration = Duration::from_secs(60);

/// Jobs per second whose end is stored.
pub async fn measure(server: &Server, args: &Args) -> Result<Vec<(Rival, f64)>, Failed> {
    let mut results = Vec::new();
    for rival in args.rivals() {
        let recorder = Recorder::new()?;
        let running = rival.start(&server.database().await?, recorder.clone()).await?;
        let begun = Instant::now();
        let mut next = 0;
        while next < args.jobs {
            let size = BATCH.min(args.jobs - next);
            running.schedule(&vec![SystemTime::now(); size as usize]).await?;
            next += size;
        }
        let left = LIMIT.saturating_sub(begun.elapsed());
        recorder.wait_for(args.jobs, left).await;
        let mut unfinished = running.unfinished().await?;
        while unfinished > 0 && begun.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_millis(1)).await;
            unfinished = running.unfinished().await?;
        }
        let done = args.jobs - unfinished;
        results.push((rival, done as f64 / begun.elapsed().as_secs_f64()));
        running.stop().await?;
    }
    Ok(results)
}
