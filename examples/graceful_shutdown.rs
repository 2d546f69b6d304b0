//! Timeouts that outlive the program: what `stop` returns goes into a file, and the next start
//! schedules it again.
//!
//! `cargo run --example graceful_shutdown`

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};
use wheelwork::HashedWheelTimer;
use wheelwork::task::{Next, Run, TimerTask};

/// A task of a type of its own, so that it can be told what it is when it comes back.
struct Reminder(String);

impl TimerTask for Reminder {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        println!("  reminder: {}", self.0);
        Next::done()
    }
}

/// One run of the program, which ends after `lifetime`.
fn run(file: &Path, new: &[(&str, u64)], lifetime: Duration) -> Result<(), Box<dyn Error>> {
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10)).build()?;
    let saved = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(), // the first start
        saved => saved?,
    };
    println!("start, reminders in the file: {}", saved.lines().count());
    for line in saved.lines() {
        let (due, text) = line.split_once(' ').ok_or("expected a time and a text")?;
        // What fell due in between has no delay left, and runs at once.
        let due = Duration::from_millis(due.parse()?);
        let delay = due.saturating_sub(SystemTime::now().duration_since(UNIX_EPOCH)?);
        timer.new_timeout(Reminder(text.to_owned()), delay)?;
    }
    for &(text, millis) in new {
        timer.new_timeout(Reminder(text.to_owned()), Duration::from_millis(millis))?;
    }
    thread::sleep(lifetime);

    let (mut lines, now) = (String::new(), Instant::now());
    for unprocessed in timer.stop()? {
        // An `Instant` means nothing to the next run, so the file has the time of day.
        let due = SystemTime::now() + unprocessed.deadline().saturating_duration_since(now);
        let Ok(Reminder(text)) = unprocessed.downcast() else { continue };
        lines += &format!("{} {text}\n", due.duration_since(UNIX_EPOCH)?.as_millis());
    }
    fs::write(file, &lines)?;
    println!("stop, reminders saved: {}", lines.lines().count());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::temp_dir().join(format!("reminders-{}.txt", process::id()));
    run(&file, &[("tea", 100), ("bread", 500), ("cake", 700)], Duration::from_millis(300))?;
    run(&file, &[], Duration::from_millis(700))?;
    Ok(fs::remove_file(&file)?)
}
