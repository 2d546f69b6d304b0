//! The trouble that the keys make, and what came of it.

use super::fill::Fill;
use super::{BUCKETS, Load, TICK, spawn};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, RefusalReason};

/// The timeouts of a burst: all are due in one tick.
pub(crate) const BURST: u32 = 100_000;

/// The timeouts that a storm schedules and cancels, on each of two threads.
const STORM: u32 = 500_000;

/// A stall keeps the worker for this time.
const STALL: Duration = Duration::from_millis(700);

impl Load {
    /// Schedules many timeouts for one tick, about a second from now.
    pub(crate) fn burst(&self) -> Result<(), RefusalReason> {
        let delay = TICK * (BUCKETS as u32 / 8);
        let due = self.timer.now() + delay;
        let burst = Arc::new(Burst {
            due,
            news: self.news.clone(),
            left: AtomicU32::new(BURST),
            early: AtomicU32::new(0),
            last: AtomicU64::new(0),
        });
        // Before they can have run, which is told then.
        say(&self.news, format!("burst: {} timeouts are due in one tick", grouped(BURST)));
        for _ in 0..BURST {
            self.fill.enter(due);
            let task = OfBurst(burst.clone(), self.fill.clone());
            if let Err(refused) = self.timer.new_timeout_at(task, due) {
                self.fill.leave(due);
                return Err(refused.reason());
            }
        }
        Ok(())
    }

    /// Schedules and cancels on two more threads, as fast as they can.
    pub(crate) fn storm(&self) -> io::Result<()> {
        say(&self.news, "storm: two threads schedule and cancel".to_owned());
        let (sender, times) = mpsc::channel();
        for number in [1, 2] {
            let (timer, sender) = (self.timer.clone(), sender.clone());
            spawn(format!("storm {number}"), move || {
                let _ = sender.send(schedule_and_cancel(&timer)); // the threads may outlive the view
            })?;
        }
        drop(sender);
        let news = self.news.clone();
        spawn("storm".to_owned(), move || {
            let (all, each) =
                (grouped(2 * STORM), times.iter().sum::<u64>() / 2 / u64::from(STORM));
            say(&news, format!("storm: {all} scheduled and cancelled, {each} ns for both"));
        })?;
        Ok(())
    }

    /// A task that keeps the worker. Meanwhile nothing can expire.
    pub(crate) fn stall(&self) -> Result<(), RefusalReason> {
        say(&self.news, format!("stall: a task keeps the worker for {STALL:?}"));
        let (timer, news) = (self.timer.clone(), self.news.clone());
        let stall = move || {
            let (before, end) = (timer.metrics().expired, Instant::now() + STALL);
            let observer = timer.clone();
            let caught_up = move || {
                let late = observer.metrics().expired - before;
                let after = end.elapsed();
                let late = grouped(u32::try_from(late).unwrap_or(u32::MAX));
                say(
                    &news,
                    format!("stall: {late} timeouts ran late; caught up {after:.0?} after it"),
                );
            };
            let _ = timer.new_timeout_at(caught_up, end);
            std::thread::sleep(STALL);
        };
        self.timer.new_timeout(stall, Duration::ZERO).map(drop).map_err(RefusalReason::from)
    }
}

/// Returns the time in nanoseconds. The strip does not show these timeouts, so that counting them takes
/// no time here.
fn schedule_and_cancel(timer: &HashedWheelTimer) -> u64 {
    let begun = Instant::now();
    for _ in 0..STORM {
        let Ok(timeout) = timer.new_timeout(|| (), Duration::from_secs(5)) else { break };
        timeout.cancel();
    }
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The state of a burst.
struct Burst {
    /// A run that was scheduled later than this has a later deadline.
    due: Instant,
    news: Arc<Mutex<String>>,
    left: AtomicU32,
    early: AtomicU32,
    /// The greatest lateness in microseconds.
    last: AtomicU64,
}

struct OfBurst(Arc<Burst>, Arc<Fill>);

impl TimerTask for OfBurst {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.1.leave(self.0.due);
        self.0.ran(run.now());
        Next::done()
    }
}

impl Burst {
    fn ran(&self, now: Instant) {
        self.early.fetch_add(u32::from(now < self.due), Relaxed);
        let late = now.saturating_duration_since(self.due);
        self.last.fetch_max(late.as_micros() as u64, Relaxed);
        if self.left.fetch_sub(1, Relaxed) == 1 {
            let (all, early) = (grouped(BURST), self.early.load(Relaxed));
            let last = self.last.load(Relaxed) / 1000;
            let text = format!("burst: {all} ran, {early} of them early, the last {last} ms late");
            say(&self.news, text);
        }
    }
}

fn say(news: &Mutex<String>, text: String) {
    if let Ok(mut news) = news.lock() {
        *news = text;
    }
}

/// A number with a comma after every three digits.
fn grouped(number: u32) -> String {
    crate::view::grouped(u64::from(number))
}
