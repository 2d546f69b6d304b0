//! Measures one structure with one number of timeouts and one kind of delay.

use crate::compared::Timers;
use crate::costs::Costs;
use crate::workload::Delays;
use kit::{Random, cpu, median};
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The structure that takes only delays within a turn.
pub const SIMPLE: &str = "simple";

/// Rounds are repeated until this many timeouts have been inserted, and at least once.
const TIMEOUTS: usize = 300_000;

/// The limit for an expiry. After that, only the timeouts expired so far count.
const PATIENCE: Duration = Duration::from_secs(3);

/// Lateness and empty ticks are measured with this many timeouts at most.
const SAMPLE: usize = 1_000_000;

/// Ticks stepped through one by one while nothing is due.
const EMPTY_TICKS: u64 = 20_000;

/// Timeouts that lie beyond those ticks.
const FAR: u64 = 1 << 22;

/// The costs of the operations, and the lateness of the expiries in percent of their delay.
#[derive(Clone, Debug)]
pub struct Row {
    pub costs: Costs,
    /// Nanoseconds. `None` for a structure that takes no far timeouts.
    pub empty_tick: Option<f64>,
    pub late_mean: f64,
    pub late_most: f64,
}

/// One line that shows the progress.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Costs { structure, delays, n, insert, cancel, expire } = &self.costs;
        write!(f, "{n} {} {structure}: ", delays.name())?;
        write!(f, "insert {insert:.0}, cancel {cancel:.0}, expire {expire:.0} ns")
    }
}

pub fn measure<T: Timers>(
    structure: &'static str,
    n: usize,
    delays: Delays,
    new: impl Fn() -> T,
) -> Row {
    let deadlines = delays.draw(n);
    let rounds = (TIMEOUTS / n).max(1);
    let (mut inserts, mut cancels, mut expiries) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (insert, cancel, expire) = one_round(&deadlines, &new);
        inserts.push(insert);
        cancels.push(cancel);
        expiries.push(expire);
    }
    let sample = n.min(SAMPLE);
    let (late_mean, late_most) = lateness(&deadlines[..sample], &new);
    Row {
        costs: Costs {
            structure: structure.to_owned(),
            delays,
            n,
            insert: median(inserts),
            cancel: median(cancels),
            expire: median(expiries),
        },
        empty_tick: (structure != SIMPLE).then(|| empty_ticks(sample, &new)),
        late_mean,
        late_most,
    }
}

/// Inserts all, cancels half of them in an order without a pattern, and expires the rest.
fn one_round<T: Timers>(deadlines: &[u64], new: &impl Fn() -> T) -> (f64, f64, f64) {
    let mut timers = new();
    let mut keys = Vec::with_capacity(deadlines.len());
    let insert = seconds(|| {
        for (value, &deadline) in (0u64..).zip(deadlines) {
            keys.push(timers.insert(deadline, value));
        }
    });
    Random(1).shuffle(&mut keys);
    let half = keys.len() / 2;
    let cancel = seconds(|| {
        for &key in &keys[..half] {
            black_box(timers.cancel(key));
        }
    });
    let mut expired = 0usize;
    let expire = seconds(|| expire_all(&mut timers, |_, _, _| expired += 1));
    let each = |seconds: f64, count: usize| seconds * 1e9 / count.max(1) as f64;
    (each(insert, keys.len()), each(cancel, half), each(expire, expired))
}

/// Goes from one tick with something due to the next, as the timer's worker does.
fn expire_all<T: Timers>(timers: &mut T, mut expired: impl FnMut(u64, u64, u64)) {
    let started = Instant::now();
    let mut steps = 0u32;
    while let Some(now) = timers.next_expiry() {
        timers.expire(now, |deadline, value| expired(now, deadline, value));
        steps += 1;
        if steps % 256 == 0 && started.elapsed() > PATIENCE {
            return;
        }
    }
}

fn lateness<T: Timers>(deadlines: &[u64], new: &impl Fn() -> T) -> (f64, f64) {
    let mut timers = new();
    for (value, &deadline) in (0u64..).zip(deadlines) {
        timers.insert(deadline, value);
    }
    let (mut sum, mut most, mut count) = (0.0, 0f64, 0u32);
    expire_all(&mut timers, |now, deadline, _| {
        let late = 100.0 * (now - deadline) as f64 / deadline as f64;
        sum += late;
        count += 1;
        // For shorter delays, one tick is more than any percentage.
        if deadline >= 63 {
            most = most.max(late);
        }
    });
    (sum / f64::from(count.max(1)), most)
}

/// With `n` timeouts that are far away.
fn empty_ticks<T: Timers>(n: usize, new: &impl Fn() -> T) -> f64 {
    let mut timers = new();
    let mut random = Random(2);
    (0..n as u64).for_each(|value| _ = timers.insert(FAR + random.below(FAR), value));
    let spent = seconds(|| {
        for now in 1..=EMPTY_TICKS {
            timers.expire(black_box(now), |_, _| unreachable!("nothing is due"));
        }
    });
    spent * 1e9 / EMPTY_TICKS as f64
}

fn seconds(work: impl FnOnce()) -> f64 {
    let started = cpu::of_thread();
    work();
    cpu::of_thread() - started
}
