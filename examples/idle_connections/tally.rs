//! The sums of what the clients have seen.

use crate::judge::Verdict;
use crate::limits;
use crate::record::Outcome;
use crate::talker::Talker;
use hdrhistogram::Histogram;
use std::io;
use std::time::{Duration, Instant};

/// Microseconds: lateness is counted up to an hour, in three significant digits.
const LONGEST_LATENESS: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

pub(crate) struct Tally {
    idle: Duration,
    pub(crate) opened: u64,
    pub(crate) cut_short_by: Option<i32>,
    pub(crate) unconnected: u64,
    pub(crate) echoed: u64,
    /// Open and silent at present.
    pub(crate) silent: u64,
    pub(crate) missed: u64,
    /// Went by themselves, without a FIN.
    pub(crate) reset: u64,
    wrongly_closed: u64,
    excused: u64,
    garbled: u64,
    /// One entry for each connection that was rightly closed as idle.
    lateness: Histogram<u64>,
}

impl Tally {
    pub(crate) fn new(idle: Duration) -> io::Result<Self> {
        let lateness =
            Histogram::new_with_max(LONGEST_LATENESS, DIGITS).map_err(io::Error::other)?;
        Ok(Self {
            idle,
            opened: 0,
            cut_short_by: None,
            unconnected: 0,
            echoed: 0,
            silent: 0,
            missed: 0,
            reset: 0,
            wrongly_closed: 0,
            excused: 0,
            garbled: 0,
            lateness,
        })
    }

    /// Judges a close that was seen at `seen`.
    pub(crate) fn judge(&mut self, talker: &Talker, seen: Instant) {
        match talker.writes.judge(seen, self.idle) {
            Verdict::Idle { late } => {
                self.lateness.saturating_record(late.as_micros() as u64);
                self.garbled += u64::from(!talker.is_intact());
            }
            // The last message was lost with the connection, so its echo is not asked for.
            Verdict::Excused => self.excused += 1,
            Verdict::Wrong => self.wrongly_closed += 1,
        }
    }

    /// Connections that the server has closed.
    pub(crate) fn closed(&self) -> u64 {
        self.lateness.len() + self.excused + self.wrongly_closed
    }

    pub(crate) fn outcome(&self) -> io::Result<Outcome> {
        let late = |quantile| self.lateness.value_at_quantile(quantile);
        Ok(Outcome {
            opened: self.opened,
            cut_short_by: self.cut_short_by.unwrap_or_default() as u64,
            unconnected: self.unconnected,
            echoed: self.echoed,
            closed_as_idle: self.lateness.len(),
            wrongly_closed: self.wrongly_closed,
            missed: self.missed,
            reset: self.reset,
            excused: self.excused,
            garbled: self.garbled,
            late_p50_us: late(0.5),
            late_p99_us: late(0.99),
            late_p999_us: late(0.999),
            late_max_us: self.lateness.max(),
            cpu_us: limits::cpu_time()?.as_micros() as u64,
        })
    }
}
