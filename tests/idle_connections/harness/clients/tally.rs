//! The sums of what the clients have seen.

use super::judge::Verdict;
use super::limits;
use super::outcome::Outcome;
use super::talker::Talker;
use hdrhistogram::Histogram;
use std::io;
use std::time::{Duration, Instant};

/// Microseconds: lateness is counted up to an hour, in three significant digits.
const LONGEST_LATENESS: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

pub(super) struct Tally {
    idle: Duration,
    pub(super) seen: Outcome,
    /// One entry for each connection that was rightly closed as idle.
    lateness: Histogram<u64>,
}

impl Tally {
    pub(super) fn new(idle: Duration) -> io::Result<Self> {
        let lateness =
            Histogram::new_with_max(LONGEST_LATENESS, DIGITS).map_err(io::Error::other)?;
        Ok(Self { idle, seen: Outcome::default(), lateness })
    }

    /// Judges a close that was seen at `at`.
    pub(super) fn judge(&mut self, talker: &Talker, at: Instant) {
        match talker.writes.judge(at, self.idle, talker.is_answered()) {
            Verdict::Idle { late } => {
                self.seen.closed_as_idle += 1;
                self.seen.garbled += u64::from(!talker.is_intact());
                self.lateness.saturating_record(late.as_micros() as u64);
            }
            // The last message was lost with the connection, so its echo is not asked for.
            Verdict::Excused => self.seen.excused += 1,
            Verdict::Wrong => self.seen.wrongly_closed += 1,
        }
    }

    /// All sums, with `open` connections by now.
    pub(super) fn outcome(&self, open: u64) -> io::Result<Outcome> {
        let late_us =
            [0.5, 0.99, 0.999, 1.0].map(|quantile| self.lateness.value_at_quantile(quantile));
        let cpu_us = limits::cpu_time()?.as_micros() as u64;
        Ok(Outcome { open, late_us, cpu_us, ..self.seen })
    }
}
