//! Who notices that a runtime is blocked: the watchdog and a plain timeout do while it is blocked, futures do not.
//!
//! `cargo run --example watchdog`

use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::watchdog::{Feeder, Watchdog, WatchdogEvent};

const LIMIT: Duration = Duration::from_millis(100);
const BLOCKED: Duration = Duration::from_secs(1);

/// A task of the runtime. While the runtime polls it, the runtime is alive. A stop of the timer ends it.
async fn heartbeat(timer: HashedWheelTimer, runtime: Feeder) {
    let Ok(mut beats) = timer.interval(LIMIT / 4) else { return };
    while beats.tick().await.is_some() {
        runtime.feed();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10)).build()?;
    let (sender, seen) = mpsc::channel();
    let stuck = sender.clone();
    let watchdog = Watchdog::new(&timer, move |name: &str, event| {
        if let WatchdogEvent::Stuck { first: true, unfed_for } = event {
            println!("{name} is stuck, not fed for {unfed_for:.0?}"); // the runtime cannot say so
            let _ = stuck.send(("the watchdog", Instant::now()));
        }
    });

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let begun = runtime.block_on(async {
        let feeder = watchdog.watch("the runtime", LIMIT)?;
        tokio::spawn(heartbeat(timer.clone(), feeder));
        timer.sleep(LIMIT).await; // the heart beats

        let begun = Instant::now();
        let note = |what| {
            let sender = sender.clone();
            move || {
                let _ = sender.send((what, Instant::now()));
            }
        };
        timer.new_timeout(note("a plain timeout"), LIMIT)?;
        let (ours, note_ours) = (timer.sleep(LIMIT), note("a future"));
        let (theirs, note_theirs) = (tokio::time::sleep(LIMIT), note("tokio::time"));
        let ours = tokio::spawn(async move {
            ours.await;
            note_ours();
        });
        let theirs = tokio::spawn(async move {
            theirs.await;
            note_theirs();
        });
        tokio::task::yield_now().await; // both are polled

        std::thread::sleep(BLOCKED); // the defect: this blocks the runtime
        ours.await?;
        theirs.await?;
        Ok::<_, Box<dyn Error>>(begun)
    })?;

    println!("\nthe runtime was blocked for {BLOCKED:?}, and each was due after {LIMIT:?}:");
    for (what, at) in seen.try_iter() {
        println!("{what}: after {} ms", (at - begun).as_millis());
    }
    Ok(())
}
