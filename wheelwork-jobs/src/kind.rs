//! How the jobs of one kind are run.

use std::sync::Arc;
use std::time::Duration;

/// How the jobs of one kind are run: how many at once, and what happens after a failure.
///
/// A name alone means the defaults.
///
/// ```
/// # use std::time::Duration;
/// use wheelwork_jobs::{Kind, Retry};
///
/// let retry = Retry::default().attempts(5).first(Duration::from_secs(10));
/// let mail = Kind::new("mail").concurrency(8).retry(retry);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    pub(crate) name: Arc<str>,
    pub(crate) concurrency: usize,
    pub(crate) most_held: usize,
    pub(crate) most_held_bytes: usize,
    pub(crate) max_claims: u32,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) total_concurrency: Option<usize>,
    pub(crate) rate: Option<Rate>,
    pub(crate) keep_done: Option<Duration>,
    pub(crate) retry: Retry,
}

/// How many jobs may be claimed in a period: some at once, and then one after each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How many at once.
    pub(crate) burst: u32,
    /// Between two others.
    pub(crate) interval: Duration,
}

impl Rate {
    /// A hundred years. A longer period means this one.
    const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

    /// At most `most` in any period: a fiftieth of them at once, and the rest evenly. Those at once are missing
    /// from the even rest, so a backlog loses one less.
    pub(crate) fn new(most: u32, period: Duration) -> Self {
        let most = most.max(1);
        let burst = most.div_ceil(50);
        let interval = period.min(Self::LONGEST) / (most - burst + 1) + Duration::from_micros(1);
        Self { burst, interval }
    }
}

impl Kind {
    /// The defaults: 64 at once, 20,000 and 64 MiB held, 10 claims, the default [`Retry`].
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            concurrency: 64,
            most_held: 20_000,
            most_held_bytes: 64 << 20,
            max_claims: 10,
            time_limit: None,
            total_concurrency: None,
            rate: None,
            keep_done: None,
            retry: Retry::default(),
        }
    }

    /// How many of these jobs this node runs at once.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// How many of these jobs this node claims at most: those that wait in its wheel, and those that run.
    /// The other nodes claim the rest. At least 1.
    ///
    /// Where jobs have [priorities](crate::NewJob::priority), choose a small number, such as twice the concurrency: an
    /// urgent job waits for room behind what its node has claimed, and a quarter of that must have ended before
    /// the node looks again.
    pub fn most_held(mut self, most_held: usize) -> Self {
        self.most_held = most_held.max(1);
        self
    }

    /// How many bytes of payloads of these jobs this node claims at most: 64 MiB by default. A claim
    /// expects payloads as large as the largest of the last ones, so one call may exceed this. At least one
    /// job is claimed, however large.
    pub fn most_held_bytes(mut self, most_held_bytes: usize) -> Self {
        self.most_held_bytes = most_held_bytes;
        self
    }

    /// How often an attempt may begin and not end, because its process has ended or lost contact. After that, the job
    /// is dead. At least 1. The first beginning does not count and costs no write, while the node hears notices.
    ///
    /// Without this limit, a job that ends its process each time it runs would take down one node after the other.
    /// The embedded store does not count, so such a job runs again at each start of the process.
    pub fn max_claims(mut self, max_claims: u32) -> Self {
        self.max_claims = max_claims.max(1);
        self
    }

    /// How long a handler has to return after its [`time_limit`](Self::time_limit).
    pub const GRACE: Duration = Duration::from_secs(5);

    /// How long a run may take: without a limit by default. At the limit, its
    /// [`cancellation`](crate::Job::cancellation) is cancelled. An async handler that has not returned after
    /// [`GRACE`](Self::GRACE) is dropped, and the attempt has failed. A handler that blocks cannot be dropped.
    pub fn time_limit(mut self, time_limit: impl Into<Option<Duration>>) -> Self {
        self.time_limit = time_limit.into();
        self
    }

    /// How many of these jobs run at once on all nodes together: without a limit by default. At least 1.
    ///
    /// A node claims such jobs when they are due and not before, as many as it can run at once. A claim counts until
    /// its end is stored. The claims of a dead node count until the end of its liveness.
    ///
    /// The limit is hard for claims: at no time have all nodes together more. There can be more handlers than claims if
    /// a job is cancelled or moved while it runs, if a node loses contact for longer than its liveness, if it stops
    /// before its handlers end, or if a handler goes on after the commit of [`complete_in`](crate::Job::complete_in):
    /// another job can begin. But for the last, the handler is [told to end](crate::Job::cancellation). Each node obeys
    /// its own setting, and counts the claims of the nodes that have one.
    pub fn total_concurrency(mut self, most: impl Into<Option<usize>>) -> Self {
        self.total_concurrency = most.into().map(|most| most.max(1));
        self
    }

    /// How many of these jobs begin in a period on all nodes together: without a limit by default. At least 1 job, in a
    /// period of at least a microsecond. Each attempt counts.
    ///
    /// In no period of this length are more jobs claimed, by the database's clock, and a node begins what it has
    /// claimed at once. They are spread: a fiftieth may begin together (one, if there are at most fifty), the others
    /// follow evenly. So a backlog gets 98 % of the rate. With at most fifty in a period, it also loses the time by
    /// which each claim is late. All nodes together have one count; each obeys its own setting. In the embedded store,
    /// the count begins anew with each process.
    pub fn rate(mut self, most: u32, period: Duration) -> Self {
        self.rate = Some(Rate::new(most, period));
        self
    }

    /// Whether the kind is limited over all nodes.
    pub(crate) fn is_limited(&self) -> bool {
        self.total_concurrency.is_some() || self.rate.is_some()
    }

    /// How many of these jobs the node holds at most. Jobs of a limited kind that it cannot run at once are for others.
    pub(crate) fn room(&self) -> usize {
        if self.is_limited() { self.most_held.min(self.concurrency) } else { self.most_held }
    }

    /// How long a job that is done can be seen, with the [result](crate::Job::set_result) of its run: not at all by
    /// default. Afterwards, any node with a kind that keeps jobs deletes it. A kept job does not hold its key.
    ///
    /// It costs an insert and later a delete for each job.
    pub fn keep_done(mut self, keep_done: impl Into<Option<Duration>>) -> Self {
        self.keep_done = keep_done.into();
        self
    }

    /// What happens after a failure.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }
}

impl<T: Into<Arc<str>>> From<T> for Kind {
    fn from(name: T) -> Self {
        Self::new(name)
    }
}

/// When a job runs again after a failure, and when it is dead.
///
/// After the n-th failure the delay is `first` times `2^(n - 1)`, at most `longest`. With `jitter` of 0.5,
/// a random part of up to half of the delay is taken away, so that jobs which failed together do not come
/// again together.
///
/// The default has 10 attempts, the first retry after 5 s, at most an hour between two, and a jitter of 0.5. So a job is
/// dead after 20 to 45 minutes of failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
    jitter: f64,
}

impl Default for Retry {
    fn default() -> Self {
        let (first, longest) = (Duration::from_secs(5), Duration::from_secs(3600));
        Self { attempts: 10, first, longest, jitter: 0.5 }
    }
}

impl Retry {
    /// About 34,000 years, which floating point can multiply.
    const LONGEST: Duration = Duration::from_secs(1 << 40);

    /// No retry: a job that fails is dead.
    pub fn never() -> Self {
        Self::default().attempts(1)
    }

    /// How many attempts a job has. At least 1.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The delay after the first failure.
    pub fn first(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// The longest delay.
    pub fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Which part of a delay is random, from 0 to 1.
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
        self
    }

    /// The delay after this many failures, without its random part. `None` if the job is dead.
    pub fn delay_after(&self, failures: u32) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.longest))
    }

    /// The delay with its random part.
    pub(crate) fn next(&self, failures: u32) -> Option<Duration> {
        let delay = self.delay_after(failures)?.min(Self::LONGEST);
        Some(delay - delay.mul_f64(self.jitter * fastrand::f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn delays_double_up_to_the_longest_one() {
        let retry = Retry::default().attempts(6).first(s(10)).longest(s(60));
        let delays: Vec<_> = (1..=6).map(|n| retry.delay_after(n)).collect();
        assert_eq!(delays, [Some(s(10)), Some(s(20)), Some(s(40)), Some(s(60)), Some(s(60)), None]);
    }

    #[test]
    fn jitter_takes_away_a_part_of_the_delay() {
        let retry = Retry::default().first(s(10)).jitter(0.5);
        let delays: Vec<_> = (0..200).filter_map(|_| retry.next(1)).collect();
        assert!(delays.iter().all(|d| (s(5)..=s(10)).contains(d)), "{delays:?}");
        assert!(delays.iter().min() < delays.iter().max());
    }

    /// What a bucket of this rate lets through in a period, at worst.
    #[test]
    fn a_rate_is_kept_in_each_period() {
        for most in [1, 2, 9, 10, 11, 50, 51, 100, 12_345] {
            for period in [Duration::from_millis(1_500), s(1), s(60)] {
                let Rate { burst, interval } = Rate::new(most, period);
                let others = (period.as_nanos() - 1) / interval.as_nanos();
                let all = u128::from(burst) + others;
                assert!(all <= u128::from(most), "{all} of {most} in {period:?}");
                assert!(all * 100 >= u128::from(most) * 98, "{all} of {most} in {period:?}");
            }
        }
    }

    #[test]
    fn extreme_delays_are_ordinary() {
        assert_eq!(Rate::new(0, Duration::MAX).burst, 1);
        assert!(!Rate::new(u32::MAX, Duration::ZERO).interval.is_zero());
        let retry = Retry::default().attempts(u32::MAX).first(Duration::MAX).longest(Duration::MAX);
        assert_eq!(retry.delay_after(u32::MAX - 1), Some(Duration::MAX));
        let _ = retry.jitter(f64::NAN).next(100);
    }
}
