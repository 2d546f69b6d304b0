//! Rules for kinds that have a rate over all nodes.

use super::{Oracle, Rule};
use std::time::Duration;

/// The most jobs that are claimed in a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) most: usize,
    pub(crate) period: Duration,
}

/// A backlog is judged when it has lasted this long.
const BACKLOG: Duration = Duration::from_secs(2);

/// Claims and backlog of the kind with a rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Rated {
    /// The claims: when they were seen, and what the database's clock showed when they were made.
    claims: Vec<(Duration, u64)>,
    /// Since when jobs have waited without a break, and how many were claimed before.
    backlog: Option<(Duration, usize)>,
}

impl Oracle {
    /// All claims so far of the kind with a rate, by the database's clock, and whether more are due.
    pub(crate) fn claimed_at_a_rate(&mut self, claims: &[u64], wait: bool, now: Duration) {
        for &clock in &claims[self.rated.claims.len()..] {
            self.rated.claims.push((now, clock));
            self.judge_rate(clock, now);
        }
        let well = !self.fault.since(now.saturating_sub(self.limits.late()));
        if !wait || !well {
            self.rated.backlog = None;
            return;
        }
        let (since, before) = *self.rated.backlog.get_or_insert((now, claims.len()));
        let claimed = claims.len() - before;
        if now - since >= BACKLOG && claimed < self.least_claimed(now - since) {
            let what = format!("{claimed} claimed in {:?}, and more wait", now - since);
            self.violated(Rule::Slow, what);
        }
    }

    /// Least number of claims in `time` from a backlog: three quarters of the rate.
    fn least_claimed(&self, time: Duration) -> usize {
        let super::Rate { most, period } = self.limits.rate;
        let all = most as u128 * time.as_micros() / period.as_micros();
        usize::try_from(3 * all / 4).unwrap_or(usize::MAX).saturating_sub(2)
    }

    fn judge_rate(&mut self, clock: u64, now: Duration) {
        let Rate { most, period } = self.limits.rate;
        let from = clock.saturating_sub(u64::try_from(period.as_micros()).unwrap_or(u64::MAX));
        let claims = self.rated.claims.iter().filter(|(_, at)| (from..=clock).contains(at));
        let first = claims.clone().map(|(seen, _)| *seen).min().unwrap_or(now);
        let count = claims.count();
        let set_back = self.set_back.iter().any(|(at, _)| *at + period >= first);
        if count > most && !set_back {
            self.violated(Rule::TooFast, format!("{count} were claimed in {period:?} at {now:?}"));
        }
    }

    /// Since when the rate may allow one more.
    pub(super) fn rate_since(&self) -> Duration {
        let Rate { most, period } = self.limits.rate;
        let pace = 2 * period / u32::try_from(most).unwrap_or(1).max(1);
        self.rated.claims.last().map_or(Duration::ZERO, |(seen, _)| *seen + pace)
    }
}
