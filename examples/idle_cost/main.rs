//! What a million watched connections cost: memory, and processor time of the timer's thread.
//!
//! ```text
//! cargo run --release --example idle_cost -- touched --seconds 130
//! ```
//!
//! `--how single` does the same with one timeout of the timer for each connection, which looks at
//! the last touch and arms itself again: what the manager would be without wheels of its own.

mod single;
#[path = "../terminal/mod.rs"]
mod terminal;
mod usage;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::{counted, number};
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};

const DAY: u64 = 24 * 60 * 60;

/// Rounds in a second. Each touches a tenth of the connections.
const TENTHS: u64 = 10;

/// Measures what watched connections cost: the memory of each, and the processor time of the
/// timer's thread.
#[derive(Debug, Parser)]
#[command(name = "idle_cost", version, max_term_width = 80)]
struct Args {
    /// What the connections do
    scene: Scene,
    /// How the connections are watched
    #[arg(long, default_value = "manager")]
    how: How,
    /// The number of connections
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = number(1..=100_000_000))]
    connections: u64,
    /// The idle time, in seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = number(1..=DAY))]
    idle_seconds: u64,
    /// How long to measure, in seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = number(1..=DAY))]
    seconds: u64,
    /// The most that is added at random to an idle time, in milliseconds. The manager alone does it
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = number(0..=1000 * DAY))]
    jitter_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scene {
    /// Nobody says a word
    Silent,
    /// Each connection says something once a second
    Touched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// The idle manager
    Manager,
    /// One timeout of the timer for each connection
    Single,
}

/// A connection as the server has it in hand.
trait Touch {
    fn touch_at(&self, now: Instant);
}

impl Touch for Watch {
    fn touch_at(&self, now: Instant) {
        self.record_read_at(now);
    }
}

fn main() -> ExitCode {
    match run(&terminal::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::report(error);
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let timer = HashedWheelTimer::new()?;
    let idle = Duration::from_secs(args.idle_seconds);
    match args.how {
        How::Manager => {
            let manager = IdleTimeouts::new(&timer, |_: &mut u64, _| Answer::StopWatching);
            let policy =
                IdlePolicy::new().reader(idle).jitter(Duration::from_millis(args.jitter_ms));
            play(args, &timer, |id| Ok(manager.watch(id, &policy)?))
        }
        How::Single => play(args, &timer, |_| Ok(single::watch(&timer, idle)?)),
    }
}

/// Opens the connections, lets time pass, and says what it took.
fn play<W: Touch>(
    args: &Args,
    timer: &HashedWheelTimer,
    watch: impl Fn(u64) -> Result<W, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let bar = progress_bar(args.seconds * TENTHS);
    bar.set_message(format!("opening {}", counted(args.connections, "connection")));
    let mut watches = Vec::with_capacity(args.connections as usize);
    let memory = usage::resident_bytes()?;
    for id in 0..args.connections {
        watches.push(watch(id)?);
    }
    std::thread::sleep(Duration::from_secs(1)); // the worker takes in what was scheduled
    let grown = usage::resident_bytes()?.saturating_sub(memory);

    bar.set_message("measuring");
    let (cpu, wakeups) = (usage::timer_thread()?, timer.metrics().wakeups);
    let begun = Instant::now();
    for round in 0..args.seconds * TENTHS {
        if args.scene == Scene::Touched {
            let (now, first) = (Instant::now(), (round % TENTHS) as usize);
            watches.iter().skip(first).step_by(TENTHS as usize).for_each(|w| w.touch_at(now));
        }
        let next = begun + Duration::from_millis(100) * (round as u32 + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        bar.inc(1);
    }
    let spent = (usage::timer_thread()? - cpu).as_secs_f64();
    let elapsed = begun.elapsed().as_secs_f64();
    let wakeups = timer.metrics().wakeups - wakeups;
    bar.finish_and_clear();

    let each = grown as f64 / watches.len() as f64;
    let share = 100.0 * spent / elapsed;
    // `println!` would panic where the disk is full.
    let mut out = std::io::stdout().lock();
    writeln!(out, "{each:>8.1} bytes resident for each connection")?;
    writeln!(out, "{share:>8.4} % of a core for the timer's thread over {elapsed:.0} s")?;
    writeln!(out, "{wakeups:>8} wake-ups of that thread")?;
    Ok(())
}

/// On standard error, if that is a terminal.
fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {msg}");
    let bar = ProgressBar::new(steps);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}
