//! The timer's metrics over the last seconds, and the screen that they make.

use crate::load::{AGES, Load};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wheelwork::metrics::{Lateness, Metrics, ThreadMetrics};

/// The number of samples that are kept. At ten in a second, this is two seconds.
const SAMPLES: usize = 21;

/// Everything that a screen shows.
#[derive(Default)]
pub(crate) struct Screen {
    pub(crate) up: Duration,
    /// The number of timeouts in each bucket.
    pub(crate) buckets: Vec<u32>,
    /// The bucket of the current tick.
    pub(crate) hand: usize,
    pub(crate) pending: u64,
    pub(crate) slots: u64,
    pub(crate) rates: Vec<Rate>,
    /// The lateness of the last two seconds.
    pub(crate) lateness: Lateness,
    pub(crate) threads: Vec<Scheduled>,
    pub(crate) watched: usize,
    pub(crate) closed: u64,
    /// Connections that their clients complain about.
    pub(crate) wrong: u64,
    pub(crate) ages: [u64; AGES],
    pub(crate) news: String,
}

/// Events per second: now, and in each of the last samples.
pub(crate) struct Rate {
    pub(crate) name: &'static str,
    pub(crate) now: u64,
    pub(crate) past: Vec<u64>,
}

/// What a thread has scheduled.
pub(crate) struct Scheduled {
    pub(crate) thread: String,
    pub(crate) timeouts: u64,
}

impl From<ThreadMetrics> for Scheduled {
    fn from(ThreadMetrics { thread, scheduled, .. }: ThreadMetrics) -> Self {
        Self { thread, timeouts: scheduled }
    }
}

struct Sample {
    at: Instant,
    metrics: Metrics,
}

#[derive(Default)]
pub(crate) struct History(VecDeque<Sample>);

/// Reads one count.
type Count = fn(&Metrics) -> u64;

/// The counts per second.
const RATES: [(&str, Count); 5] = [
    ("scheduled", |metrics| metrics.scheduled),
    ("rescheduled", |metrics| metrics.rescheduled),
    ("cancelled", |metrics| metrics.cancelled),
    ("expired", |metrics| metrics.expired),
    ("wake-ups", |metrics| metrics.wakeups),
];

impl History {
    /// Adds the current metrics.
    pub(crate) fn take(&mut self, load: &Load) {
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(Sample { at: Instant::now(), metrics: load.timer.metrics() });
    }

    pub(crate) fn screen(&self, load: &Load) -> Screen {
        let (Some(first), Some(last)) = (self.0.front(), self.0.back()) else {
            return Screen::default();
        };
        Screen {
            up: last.at.saturating_duration_since(load.timer.started_at()),
            buckets: load.fill.counts(),
            hand: load.fill.hand(load.timer.now()),
            pending: last.metrics.pending,
            slots: last.metrics.slots,
            rates: RATES.map(|(name, count)| self.rate(name, count)).into(),
            lateness: last.metrics.lateness.since(&first.metrics.lateness),
            threads: load.timer.thread_metrics().into_iter().map(Scheduled::from).collect(),
            watched: load.connections.watched(),
            closed: load.connections.closed(),
            wrong: load.connections.wrong(),
            ages: load.connections.ages(),
            news: load.news(),
        }
    }

    fn rate(&self, name: &'static str, count: Count) -> Rate {
        let between = |earlier: &Sample, later: &Sample| {
            let events = count(&later.metrics) - count(&earlier.metrics);
            let time = later.at.saturating_duration_since(earlier.at).as_secs_f64();
            if time > 0.0 { (events as f64 / time) as u64 } else { 0 }
        };
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        let past = pairs.map(|(earlier, later)| between(earlier, later)).collect();
        let second = self.0.len().saturating_sub(11);
        let now = self.0.get(second).zip(self.0.back()).map_or(0, |(a, b)| between(a, b));
        Rate { name, now, past }
    }
}
