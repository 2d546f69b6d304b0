//! The timer in an async program, on a tokio runtime without tokio's own timer.
//!
//! `cargo run --example sleep_tokio`

use std::error::Error;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

const TENTH: Duration = Duration::from_millis(100);
const MINUTE: Duration = Duration::from_secs(60);

async fn answer(timer: &HashedWheelTimer, after: Duration) -> u32 {
    timer.sleep(after).await;
    42
}

async fn run(timer: HashedWheelTimer) -> Result<(), Box<dyn Error + Send + Sync>> {
    // A limit for a future.
    let quick = timer.timeout(MINUTE, answer(&timer, TENTH)).await;
    let slow = timer.timeout(TENTH, answer(&timer, MINUTE)).await;
    println!("quick: {quick:?}, slow: {slow:?}");

    // A beat.
    let (mut beats, begin) = (timer.interval(TENTH)?, Instant::now());
    for number in 1..=3 {
        beats.tick().await;
        println!("beat {number} after {:.1?}", begin.elapsed());
    }

    // A thousand tasks that wait for different times.
    let tasks = (0..1000).map(|n| tokio::spawn(timer.sleep(TENTH * n / 1000)));
    for task in tasks.collect::<Vec<_>>() {
        task.await?;
    }
    let unprocessed = timer.stop_async().await?;
    println!("1000 tasks have slept; left when the timer stopped: {}", unprocessed.len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10)).build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?; // no `enable_time`
    runtime.block_on(run(timer))
}
