//! A deadline for each request. The answer and the deadline race, and `cancel` decides who wins:
//! it is true for exactly one caller, and never after the deadline has fired.
//!
//! `cargo run --example request_deadlines`

use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use wheelwork::HashedWheelTimer;

const DEADLINE: Duration = Duration::from_millis(400);

/// Each request, and how long the work on it takes.
const REQUESTS: [(&str, Duration); 3] = [
    ("small", Duration::from_millis(50)),
    ("middling", Duration::from_millis(200)),
    ("large", Duration::from_millis(800)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10)).build()?;
    let (replies, received) = mpsc::channel();
    for (name, work) in REQUESTS {
        let reply = replies.clone();
        let too_late = move || drop(reply.send(format!("{name}: no answer within {DEADLINE:?}")));
        let deadline = timer.new_timeout(too_late, DEADLINE)?;

        let reply = replies.clone();
        thread::spawn(move || {
            thread::sleep(work);
            if deadline.cancel() {
                let _ = reply.send(format!("{name}: answered"));
            }
        });
    }
    drop(replies);
    // Ends when the last request has its reply: each task and thread drops its sender then.
    for reply in received {
        println!("{reply}");
    }
    let metrics = timer.metrics();
    println!("{} in time, {} too late", metrics.cancelled, metrics.expired);
    Ok(())
}
