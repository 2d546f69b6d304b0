//! What a million watched connections cost: memory, and processor time of the timer's thread.
//!
//! ```text
//! cargo run --release --example idle_cost -- touched --seconds 130
//! ```
//!
//! `--how single` does the same with one timeout of the timer for each connection, which looks at
//! the last touch and arms itself again: what the manager would be without wheels of its own.

mod single;
mod usage;

use clap::{Parser, ValueEnum};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};

#[derive(Debug, Parser)]
struct Args {
    /// Silent: nobody says a word, and nobody is due. Touched: each once a second.
    scene: Scene,
    /// How the connections are watched.
    #[arg(long, default_value = "manager")]
    how: How,
    #[arg(long, default_value_t = 1_000_000)]
    connections: usize,
    /// The idle time.
    #[arg(long, value_name = "S", default_value_t = 60)]
    idle_seconds: u64,
    /// How long to watch the timer's thread.
    #[arg(long, value_name = "S", default_value_t = 30)]
    seconds: u64,
    /// Draws the idle times of a burst apart by up to this.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    jitter_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scene {
    Silent,
    Touched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    Manager,
    Single,
}

/// A connection as the server has it in hand.
trait Touch {
    fn touch_at(&self, now: Instant);
}

impl Touch for Watch {
    fn touch_at(&self, now: Instant) {
        self.read_at(now);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let timer = HashedWheelTimer::new()?;
    let idle = Duration::from_secs(args.idle_seconds);
    match args.how {
        How::Manager => {
            let manager = IdleTimeouts::new(&timer, |_: &mut u64, _| Answer::StopWatching);
            let policy =
                IdlePolicy::new().reader(idle).jitter(Duration::from_millis(args.jitter_ms));
            play(&args, &timer, |id| Ok(manager.watch(id, &policy)?))
        }
        How::Single => play(&args, &timer, |_| Ok(single::watch(&timer, idle)?)),
    }
}

/// Opens the connections, lets time pass, and says what it took.
fn play<W: Touch>(
    args: &Args,
    timer: &HashedWheelTimer,
    watch: impl Fn(u64) -> Result<W, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut watches = Vec::with_capacity(args.connections);
    let memory = usage::resident_bytes()?;
    for id in 0..args.connections as u64 {
        watches.push(watch(id)?);
    }
    std::thread::sleep(Duration::from_secs(1)); // the worker takes in what was scheduled
    let grown = usage::resident_bytes()?.saturating_sub(memory);
    // `println!` would panic where the disk is full.
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:>8.1} bytes resident for each connection",
        grown as f64 / watches.len() as f64
    )?;

    let (cpu, looks) = (usage::timer_thread()?, timer.metrics().expired);
    let begun = Instant::now();
    match args.scene {
        Scene::Silent => std::thread::sleep(Duration::from_secs(args.seconds)),
        Scene::Touched => (0..args.seconds * 10).for_each(|round| {
            let now = Instant::now();
            watches.iter().skip(round as usize % 10).step_by(10).for_each(|w| w.touch_at(now));
            let next = begun + Duration::from_millis(100) * (round as u32 + 1);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }),
    }
    let spent = (usage::timer_thread()? - cpu).as_secs_f64();
    let elapsed = begun.elapsed().as_secs_f64();
    let metrics = timer.metrics();
    writeln!(
        out,
        "{:>8.4} % of a core for the timer's thread over {elapsed:.0} s",
        100.0 * spent / elapsed
    )?;
    writeln!(out, "{:>8} timeouts of the timer expired", metrics.expired - looks)?;
    Ok(())
}
