//! What a `Jobs` has done.
//!
//! - `kinds`: the counts of each kind, which are bounded in number
//! - `histogram`: times in fixed ranges
//! - `text`: all of it as Prometheus reads it

mod histogram;
mod kinds;
mod text;

pub use self::histogram::Histogram;
pub(crate) use self::text::{escape, head};

use self::kinds::Kinds;
use crate::lock::lock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A metric by kind: its name, and what it says.
type ByKind = (&'static str, &'static str, fn(&KindMetrics) -> u64);

/// Makes both structures: each count stands once, with what it is here and for Prometheus.
macro_rules! counts {
    ($($(#[$says:meta])+ $count:ident: $metric:literal, $help:literal;)+) => {
        /// What this `Jobs` has done since it was opened, and what it holds.
        #[derive(Clone, Debug, Default)]
        #[non_exhaustive]
        pub struct Metrics {
            $($(#[$says])+ pub $count: u64,)+
            /// Jobs that it has freed because their node had died.
            pub taken_over: u64,
            /// Times at which the others had taken this node for dead.
            pub lapsed: u64,
            /// Times at which the database's clock jumped.
            pub clock_steps: u64,
            /// Calls of the store that failed, of those that the node makes for itself.
            pub store_errors: u64,
            /// Whether it has died, as [`Jobs::health`](crate::Jobs::health) reports.
            pub died: bool,
            /// The same by kind, by name.
            pub kinds: Vec<KindMetrics>,
        }

        /// What a [`Jobs`](crate::Jobs) has done with the jobs of one kind since it was opened, and what it holds.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct KindMetrics {
            /// The kind, or [`OTHERS`](Self::OTHERS).
            pub kind: Arc<str>,
            $($(#[$says])+ pub $count: u64,)+
            /// How late handlers were called: from the due time to the call, by the database's clock.
            pub late_by: Histogram,
            /// How long runs took.
            pub took: Histogram,
        }

        impl Metrics {
            fn add(&mut self, kind: &KindMetrics) {
                $(self.$count += kind.$count;)+
            }
        }

        const BY_KIND: &[ByKind] = &[$(($metric, $help, |kind| kind.$count)),+];
    };
}

counts! {
    /// Jobs that it has stored, without those in transactions of yours.
    scheduled: "scheduled_total", "Jobs stored, without those in transactions of users.";
    /// Jobs that it has claimed.
    claimed: "claimed_total", "Jobs claimed.";
    /// Jobs whose handler was called.
    fired: "fired_total", "Jobs whose handler was called.";
    /// Jobs that were done.
    done: "done_total", "Jobs done.";
    /// Runs that ended with an error or a panic, or were dropped after their limit.
    failed: "failed_total", "Runs that failed.";
    /// Failures after which a job runs again.
    retried: "retried_total", "Failures after which a job runs again.";
    /// Runs whose handler has put the job off.
    snoozed: "snoozed_total", "Runs that have put their job off.";
    /// Failures after which a job was dead.
    buried: "buried_total", "Failures after which a job was dead.";
    /// Failures after which a periodic job gave up its occurrence.
    given_up: "given_up_total", "Occurrences of periodic jobs that were given up.";
    /// Occurrences of periodic jobs that were too late to run.
    skipped: "skipped_total", "Occurrences of periodic jobs too late to run.";
    /// Jobs that it has cancelled: its calls that have returned true.
    cancelled: "cancelled_total", "Jobs cancelled by this process.";
    /// Runs whose claim did not hold any more at their end: cancelled, rescheduled or taken over meanwhile. A run whose
    /// end was stored counts here too, and not as done, if the answer of the store was late or did not arrive: the node
    /// then tells the end again, when the claim is over.
    lost: "lost_total", "Runs whose claim did not hold at their end.";
    /// Jobs that it holds now, in its wheel or running.
    held: "held", "Jobs held, waiting or running.";
    /// Handlers that run now.
    running: "running", "Handlers that run.";
}

/// The counts behind [`Metrics`].
pub(crate) struct Counts {
    /// The counts that are not kept by kind.
    all: Mutex<Metrics>,
    kinds: Mutex<Kinds>,
}

impl Counts {
    pub(crate) fn new(handled: &[Arc<str>]) -> Self {
        Self { all: Mutex::default(), kinds: Mutex::new(Kinds::new(handled)) }
    }

    /// Counts what has no kind.
    pub(crate) fn count(&self, count: impl FnOnce(&mut Metrics)) {
        count(&mut lock(&self.all));
    }

    /// Counts what a job of a kind does.
    pub(crate) fn count_of(&self, kind: &str, count: impl FnOnce(&mut KindMetrics)) {
        count(lock(&self.kinds).of(kind));
    }

    /// A handler is called.
    pub(crate) fn fired(&self, kind: &str, late_by: Duration) {
        self.count_of(kind, |counts| {
            counts.fired += 1;
            counts.late_by.record(late_by);
        });
    }

    /// A run has ended, which took `time`.
    pub(crate) fn took(&self, kind: &str, time: Duration) {
        self.count_of(kind, |counts| counts.took.record(time));
    }

    /// `holds` is what the node holds of each of its kinds: held and running.
    pub(crate) fn read<'a>(
        &self,
        holds: impl Iterator<Item = (&'a Arc<str>, (usize, usize))>,
        died: bool,
    ) -> Metrics {
        let mut kinds = lock(&self.kinds).clone();
        for (kind, (held, running)) in holds {
            let kind = kinds.of(kind);
            kind.held += held as u64;
            kind.running += running as u64;
        }
        let kinds = kinds.0;
        let mut all = Metrics { died, ..lock(&self.all).clone() };
        for kind in &kinds {
            all.add(kind);
        }
        Metrics { kinds, ..all }
    }
}
