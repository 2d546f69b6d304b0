//! The log, compressed in time.

use super::log::Log;
use std::time::Duration;

/// A message, by its times since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// When it is scheduled.
    pub(crate) at: Duration,
    /// How long after that it is due.
    pub(crate) delay: Duration,
}

#[derive(Debug)]
pub(crate) struct Plan {
    /// In the order of scheduling.
    pub(crate) messages: Vec<Message>,
    /// How many seconds of the log take one second here.
    pub(crate) factor: f64,
}

impl Plan {
    /// A plan for `jobs` messages in `duration`. If the log has fewer events, copies of it follow each other by
    /// fractions of a second of the log; if it has more, some are left out.
    pub(crate) fn new(log: &Log, jobs: u64, duration: Duration) -> Self {
        let start = log.events.first().map_or(0, |event| event.scheduled);
        let end = log.events.iter().map(|event| event.due).max().unwrap_or(start);
        let factor = (end.saturating_sub(start).max(1)) as f64 / duration.as_secs_f64();
        let (have, want) = (log.events.len() as u64, jobs);
        let copies = want.div_ceil(have.max(1)).max(1);
        let here = |seconds: f64| Duration::from_secs_f64((seconds / factor).max(0.0));
        let message = |n: u64| {
            // Message n is the copy n % copies of the event that lies at the same part of the log.
            let event = log.events[(u128::from(n) * u128::from(have) / u128::from(want)) as usize];
            let shift = (n % copies) as f64 / copies as f64;
            let at = event.scheduled.saturating_sub(start) as f64 + shift;
            let delay = event.due.saturating_sub(event.scheduled) as f64;
            Message { at: here(at), delay: here(delay) }
        };
        let mut messages: Vec<_> = (0..want).map(message).collect();
        messages.sort_by_key(|message| message.at);
        Self { messages, factor }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Event;
    use super::*;

    fn log() -> Log {
        let event = |scheduled| Event { scheduled, due: scheduled + 100 };
        Log { events: (0..10).map(|n| event(1_000 + 100 * n)).collect(), unreadable: 0 }
    }

    #[test]
    fn a_log_is_compressed_into_the_duration() {
        let plan = Plan::new(&log(), 10, Duration::from_secs(10));
        assert_eq!(plan.factor, 100.0);
        let second = Message { at: Duration::from_secs(1), delay: Duration::from_secs(1) };
        assert_eq!((plan.messages.len(), plan.messages[1]), (10, second));
    }

    #[test]
    fn a_log_is_repeated_or_thinned_out_over_all_of_the_duration() {
        for jobs in [1, 3, 10, 25, 1_000] {
            let plan = Plan::new(&log(), jobs, Duration::from_secs(10));
            assert_eq!(plan.messages.len() as u64, jobs);
            assert!(plan.messages.is_sorted_by_key(|message| message.at));
            assert_eq!(plan.messages[0].at, Duration::ZERO);
            let last = plan.messages.last().unwrap().at;
            assert!(jobs < 10 || last >= Duration::from_secs(9), "{jobs}: {last:?}");
        }
    }
}
