//! Many that do fire: all at one instant, and spread over a second.

use super::probe::{self, Connection, Hit};
use super::{Error, Figures, PATIENCE};
use crate::delays;
use crate::kernel;
use crate::plan::Job;
use crate::rivals::{Rival, Timer};
use crate::sizes::Sizes;
use crate::task::{Nothing, Task};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A multiple of the time of the trial: it gets dearer with what is present.
const RESERVE: u32 = 6;
/// Longer than a step of settling.
const MARGIN: Duration = Duration::from_millis(150);

/// From the first run to the last of tasks that count themselves. What a timer does before it runs
/// the first is not in that, so the CPU time of all of it stands beside.
pub fn same_tick<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let timeouts = job.count("timeouts");
    probe::expect(timeouts);
    let mut fire = Fire { timer: timer(), timeouts };
    let lead = fire.lead(job.sizes, |_| delays::HOUR);
    let due = Instant::now() + lead;
    let (span, cpu) = match job.value("captures") {
        "0" => fire.fire(due, due, |_| (Hit, due))?,
        _ => {
            let hit = Arc::new(Connection);
            fire.fire(due, due, |_| (hit.clone(), due))?
        }
    };
    Ok(vec![("ns_per_op", span), ("cpu_ns_per_op", cpu)])
}

/// CPU time from before the first is due until the last has run, and how late they were.
pub fn spread<R: Rival>(timer: Timer<R>, timeouts: u64, over: Duration, sizes: &Sizes) -> Figures {
    probe::expect(timeouts);
    let mut fire = Fire { timer: timer(), timeouts };
    let lead = fire.lead(sizes, delays::among_far);
    let start = Instant::now() + lead;
    let (_span, cpu) = fire.fire(start, start + over, |i| {
        let deadline = start + delays::within(over, i, timeouts);
        (probe::late(deadline), deadline)
    })?;
    let late = probe::lateness();
    let p99 = probe::quantile(&late, 0.99, 1e3);
    Ok(vec![("cpu_ns_per_op", cpu), ("p99_late_us", p99), ("early", probe::early(&late))])
}

/// How many were there before.
const CANCELLED: u64 = 5;

/// As [`same_tick`], in places that earlier timeouts left in random order.
pub fn reused<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let timeouts = job.count("timeouts");
    probe::expect(timeouts);
    let mut fire = Fire { timer: timer(), timeouts };
    let mut live: Vec<_> = (0..timeouts * CANCELLED)
        .map(|i| fire.timer.schedule(Nothing, delays::remote(i)))
        .collect();
    kernel::settle(Duration::from_secs(2));
    for i in 0..live.len() as u64 {
        let any = delays::scatter(i, live.len() as u64) as usize;
        fire.timer.cancel(live.swap_remove(any));
    }
    let lead = fire.lead(job.sizes, |_| delays::HOUR);
    let due = Instant::now() + lead;
    let (span, cpu) = fire.fire(due, due, |_| (Hit, due))?;
    Ok(vec![("ns_per_op", span), ("cpu_ns_per_op", cpu)])
}

struct Fire<R> {
    timer: R,
    timeouts: u64,
}

impl<R: Rival> Fire<R> {
    /// Time to schedule all before the first is due, and to file them: by a trial with a tenth of
    /// them in the same order, which also warms the timer up.
    fn lead(&mut self, sizes: &Sizes, delay: impl Fn(u64) -> Duration) -> Duration {
        let begin = Instant::now();
        let trial = 0..self.timeouts / 10;
        let kept: Vec<_> = trial.map(|i| self.timer.schedule(Nothing, delay(i))).collect();
        let took = begin.elapsed();
        kept.into_iter().for_each(|handle| self.timer.cancel(handle));
        kernel::settle(Duration::from_secs(2));
        Duration::from_millis(sizes.lead_ms).max(took * 10 * RESERVE)
    }

    /// For each timeout: from the first run to the last, and the CPU time until then.
    fn fire<T: Task>(
        &mut self,
        first: Instant,
        last: Instant,
        timeout: impl Fn(u64) -> (T, Instant),
    ) -> Result<(f64, f64), Error> {
        let schedule = |i| {
            let (task, deadline) = timeout(i);
            self.timer.schedule(task, until(deadline))
        };
        // Kept: some of them need their handle to live.
        let _kept: Vec<_> = (0..self.timeouts).map(schedule).collect();
        // Not up to the last moment, for timers that never rest.
        kernel::settle(until(first).saturating_sub(MARGIN));
        if Instant::now() >= first {
            return Err(Error::TooSlow);
        }
        let before = kernel::cpu_time();
        let span = probe::wait(last, PATIENCE)?;
        let cpu = kernel::cpu_time() - before;
        Ok((self.each(span), self.each(cpu)))
    }

    fn each(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.timeouts as f64
    }
}

fn until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}
