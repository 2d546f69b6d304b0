//! What an operator sees at a glance, at a bounded cost.

use crate::metrics;
use crate::store::KindStats;
use std::fmt::{self, Write};
use std::time::SystemTime;

/// The number of jobs of each kind, counted up to a limit: it takes at most 40,000 rows, however many jobs there
/// are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Glance {
    /// The kinds, by name.
    pub kinds: Vec<KindStats>,
    /// Whether all kinds that have free jobs are included.
    pub all_kinds: bool,
    /// The most free jobs that were counted of each kind, the earliest first: a count of `waiting` or
    /// `overdue` that has reached this may be too low.
    pub most_waiting: u64,
    /// Whether all claimed jobs were counted.
    pub all_claimed: bool,
    /// Whether all dead jobs were counted.
    pub all_dead: bool,
    /// When it was taken, by the database's clock.
    pub at: Option<SystemTime>,
}

/// How many jobs are counted, at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Kinds whose free jobs are counted.
    pub(crate) kinds: usize,
    /// Free jobs, of all kinds together. Each kind has the same share.
    pub(crate) free: usize,
    /// Claimed jobs, and as many dead ones.
    pub(crate) others: usize,
}

impl Most {
    pub(crate) const ALL: Self = Self { kinds: usize::MAX, free: usize::MAX, others: usize::MAX };

    pub(crate) const GLANCE: Self =
        Self { kinds: Glance::MOST_KINDS, free: Glance::MOST_FREE, others: Glance::MOST_OTHERS };
}

impl Glance {
    /// The most kinds whose free jobs are counted.
    pub const MOST_KINDS: usize = 100;
    /// The most free jobs that are counted, of all kinds together. Each kind has the same share.
    pub const MOST_FREE: usize = 20_000;
    /// The most claimed jobs that are counted, of all kinds together (in [`Redb`](crate::Redb), these are within
    /// `MOST_FREE`). The same holds for dead ones.
    pub const MOST_OTHERS: usize = 10_000;

    /// The counts in the text format of Prometheus, with names that begin with `wheelwork_jobs_store_`. One
    /// process should report them, and not each node.
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        // A `String` takes all that is written.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let gauges: [Gauge; 6] = [
            ("waiting", "Free jobs, counted up to a limit.", |kind, _| Some(kind.waiting as f64)),
            ("overdue", "Free jobs that are overdue.", |kind, _| Some(kind.overdue as f64)),
            ("claimed", "Jobs that nodes have claimed.", |kind, _| Some(kind.claimed as f64)),
            ("dead", "Jobs whose attempts are used up.", |kind, _| Some(kind.dead as f64)),
            ("paused", "1 if the kind is paused.", |kind, _| Some(f64::from(kind.paused))),
            ("late_seconds", "How long the first job is overdue.", |kind, at| {
                Some(at.duration_since(kind.next_due?).unwrap_or_default().as_secs_f64())
            }),
        ];
        let at = self.at.unwrap_or(SystemTime::UNIX_EPOCH);
        for (name, help, value) in gauges {
            metrics::head(text, &format!("store_{name}"), help, "gauge")?;
            for kind in &self.kinds {
                if let Some(value) = value(kind, at) {
                    let label = metrics::escape(&kind.kind);
                    writeln!(text, "wheelwork_jobs_store_{name}{{kind=\"{label}\"}} {value}")?;
                }
            }
        }
        Ok(())
    }
}

type Gauge = (&'static str, &'static str, fn(&KindStats, SystemTime) -> Option<f64>);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_text_has_a_line_for_each_gauge_and_kind() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let kind = KindStats {
            kind: "a\"b".into(),
            waiting: 3,
            overdue: 2,
            claimed: 1,
            dead: 0,
            paused: false,
            next_due: Some(at - Duration::from_millis(1_500)),
        };
        let glance = Glance { kinds: vec![kind], at: Some(at), ..Glance::default() };
        let text = glance.to_prometheus();
        assert!(text.contains("\nwheelwork_jobs_store_overdue{kind=\"a\\\"b\"} 2\n"), "{text}");
        assert!(
            text.contains("\nwheelwork_jobs_store_late_seconds{kind=\"a\\\"b\"} 1.5\n"),
            "{text}"
        );
    }
}
