//! How many jobs are scheduled and run in a second.

use crate::Failed;
use crate::args::Args;
use crate::recorder::Recorder;
use crate::rivals::Rival;
use crate::server::Server;
use std::time::{Instant, SystemTime};

/// So many are scheduled in one call.
const BATCH: u64 = 1_000;

/// Jobs per second.
pub async fn measure(server: &Server, args: &Args) -> Result<Vec<(Rival, f64)>, Failed> {
    let mut results = Vec::new();
    for rival in Rival::ALL {
        let recorder = Recorder::new()?;
        let running = rival.start(&server.database().await?, recorder.clone()).await?;
        let begun = Instant::now();
        let mut next = 0;
        while next < args.jobs {
            let size = BATCH.min(args.jobs - next);
            running.schedule(&vec![SystemTime::now(); size as usize]).await?;
            next += size;
        }
        recorder.wait_for(args.jobs).await?;
        results.push((rival, args.jobs as f64 / begun.elapsed().as_secs_f64()));
        running.stop().await?;
    }
    Ok(results)
}
