//! A heartbeat: a periodic timeout that ends itself when the peer has missed three beats.
//!
//! `cargo run --example heartbeat`

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use wheelwork::{HashedWheelTimer, MissedTickBehavior, Period};

const MOST_MISSED: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10)).build()?;
    let is_answering = Arc::new(AtomicBool::new(true));
    let peer = is_answering.clone();
    let (report, reports) = mpsc::channel();

    let mut missed = 0;
    let beat = move || {
        // A real heartbeat sends a ping here, and looks whether the last one was answered.
        missed = if peer.load(Ordering::Relaxed) { 0 } else { missed + 1 };
        let _ = report.send(missed);
        if missed < MOST_MISSED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // A beat is due 100 ms after the last one was due. Late beats are not made up for.
    let period = Period::fixed_rate_with(Duration::from_millis(100), MissedTickBehavior::Skip);
    timer.new_periodic(beat, period)?;

    thread::spawn(move || {
        thread::sleep(Duration::from_millis(550));
        is_answering.store(false, Ordering::Relaxed);
    });
    // Ends with the heartbeat, whose task is dropped then, and the sender with it.
    for missed in reports {
        println!("{}", if missed == 0 { "beat".to_owned() } else { format!("missed {missed}") });
    }
    println!("the peer is gone; timeouts left: {}", timer.stop()?.len());
    Ok(())
}
