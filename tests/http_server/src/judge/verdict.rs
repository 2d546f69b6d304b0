//! Whether something happened when it should, by the client's clock.

use std::time::{Duration, Instant};

/// What the client knows of an instant: it was neither before `earliest` nor after `latest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) earliest: Instant,
    pub(crate) latest: Instant,
}

impl Span {
    /// From `earliest` until now.
    pub(crate) fn since(earliest: Instant) -> Self {
        Self { earliest, latest: Instant::now() }
    }

    /// The span in which something is due that follows after `limit`.
    pub(crate) fn after(self, limit: Duration) -> Self {
        Self { earliest: self.earliest + limit, latest: self.latest + limit }
    }

    /// The span in which the first of two things is due.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { earliest: self.earliest.min(other.earliest), latest: self.latest.min(other.latest) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It happened in time, `late` after the earliest instant.
    Right { late: Duration },
    /// Something else happened, or it happened too early.
    Wrong(String),
    /// It had not happened when it was overdue.
    Missed,
}

impl Verdict {
    /// Judges what happened at `at`. It was due in `due`, and may come later by `slack`.
    pub(crate) fn of(due: Span, at: Instant, slack: Duration) -> Self {
        if at < due.earliest {
            let early = due.earliest - at;
            return Self::Wrong(format!("{early:.1?} too early"));
        }
        if at > due.latest + slack {
            return Self::Missed;
        }
        Self::Right { late: at - due.earliest }
    }

    pub(crate) fn wrong(what: impl ToString) -> Self {
        Self::Wrong(what.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: Duration = Duration::from_millis(10);

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    fn span(start: Instant, earliest: u64, latest: u64) -> Span {
        Span { earliest: at(start, earliest), latest: at(start, latest) }
    }

    #[test]
    fn an_event_before_the_limit_is_wrong_and_one_after_the_slack_is_missed() {
        let start = Instant::now();
        let due = span(start, 0, 5).after(Duration::from_millis(100));
        let verdict = |millis| Verdict::of(due, at(start, millis), SLACK);
        assert_eq!(verdict(99), Verdict::wrong("1.0ms too early"));
        for millis in [100, 115] {
            let late = Duration::from_millis(millis - 100);
            assert_eq!(verdict(millis), Verdict::Right { late });
        }
        assert_eq!(verdict(116), Verdict::Missed);
    }

    #[test]
    fn the_first_of_two_limits_counts() {
        let start = Instant::now();
        let due = span(start, 50, 80).or(span(start, 60, 70));
        assert_eq!(Verdict::of(due, at(start, 50), SLACK), Verdict::Right { late: Duration::ZERO });
        assert_eq!(Verdict::of(due, at(start, 81), SLACK), Verdict::Missed);
    }
}
