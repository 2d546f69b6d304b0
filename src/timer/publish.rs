//! Publishing a timer's metrics through the `metrics` facade.

use super::hashed_wheel_timer::HashedWheelTimer;
use crate::base::publish::{Publication, Unit};
use crate::metrics::{Lateness, Metrics};

impl HashedWheelTimer {
    /// Publishes a snapshot of the timer's [`metrics`](Self::metrics) through the
    /// [`metrics`](https://docs.rs/metrics) facade.
    ///
    /// Call it before each scrape, or every few seconds. The timer counts for itself and publishes
    /// nothing in between, so the facade costs scheduling and expiry nothing. It takes two locks for a short time. Only
    /// threads that ask for counts, that schedule for the first time, or that end can wait for them.
    ///
    /// Each timeout that has expired since the last call is one record of the histogram. If millions expire,
    /// publish on a thread other than the worker.
    ///
    /// | metric | type | meaning |
    /// |---|---|---|
    /// | `wheelwork_scheduled_total` | counter | timeouts accepted |
    /// | `wheelwork_rearmed_total` | counter | runs after which the timeout went on |
    /// | `wheelwork_rescheduled_total` | counter | successful reschedules |
    /// | `wheelwork_expired_total` | counter | timeouts handed to the executor |
    /// | `wheelwork_cancelled_total` | counter | timeouts cancelled before a run |
    /// | `wheelwork_returned_total` | counter | timeouts returned by a stop |
    /// | `wheelwork_rejected_total` | counter | timeouts refused by the timer |
    /// | `wheelwork_panicked_total` | counter | tasks and callbacks that panicked |
    /// | `wheelwork_refused_total` | counter | jobs that the executor gave back |
    /// | `wheelwork_abandoned_total` | counter | jobs that the executor dropped |
    /// | `wheelwork_passes_with_backlog_total` | counter | passes that reached the drain cap |
    /// | `wheelwork_ticks_skipped_total` | counter | ticks without a pass of the worker |
    /// | `wheelwork_wakeups_total` | counter | wake-ups of the worker |
    /// | `wheelwork_sweeps_total` | counter | sweeps of the wheel for dead entries |
    /// | `wheelwork_pending` | gauge | pending timeouts |
    /// | `wheelwork_slots` | gauge | slots for timeouts, used and free |
    /// | `wheelwork_lateness_seconds` | histogram | from a deadline to the executor |
    /// | `wheelwork_lateness_max_seconds` | gauge | the greatest lateness so far |
    ///
    /// Each has the label `timer`, the [name of the worker's thread](crate::timer::Builder::thread_name). Two
    /// timers of one name share their metrics, so give each timer its own name. A value of the histogram
    /// is the end of its bucket in [`Lateness`](crate::metrics::Lateness), so it is at most 25 % too high. Each value
    /// is recorded once, however many threads publish.
    ///
    /// # Examples
    ///
    /// The timer publishes its own metrics. The task has a weak handle, because a handle would keep the timer alive.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let timer = wheelwork::HashedWheelTimer::builder().thread_name("requests").build()?;
    /// let published = timer.downgrade();
    /// let publish = move || published.upgrade().into_iter().for_each(|timer| timer.publish_metrics());
    /// timer.new_periodic(publish, Duration::from_secs(5))?;
    /// # timer.stop()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// The Prometheus exporter, with buckets for the histogram. Without them, it makes a summary, and the
    /// dashboard `docs/grafana/wheelwork.json` shows no quantiles.
    ///
    /// ```text
    /// PrometheusBuilder::new()
    ///     .set_buckets_for_metric(
    ///         Matcher::Full("wheelwork_lateness_seconds".into()),
    ///         &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0],
    ///     )?
    ///     .install()?; // serves http://0.0.0.0:9000/metrics
    /// ```
    pub fn publish_metrics(&self) {
        let (metrics, recent) = self.snapshot_to_publish();
        let timer = Publication::labelled([("timer", self.shared().name().to_owned())]);
        publish(&timer, &metrics, &recent);
    }

    /// A snapshot, and the lateness that no publication has had yet.
    fn snapshot_to_publish(&self) -> (Metrics, Lateness) {
        let mut published = self.0.published.lock();
        let metrics = self.metrics();
        let recent = metrics.lateness.since(&published);
        *published = metrics.lateness.clone();
        (metrics, recent)
    }
}

fn publish(timer: &Publication, metrics: &Metrics, recent: &Lateness) {
    // All fields by name, so that a new one that is not published does not compile without a warning.
    for (name, help, value) in [
        ("wheelwork_scheduled_total", "Timeouts accepted.", metrics.scheduled),
        ("wheelwork_rearmed_total", "Runs that armed the timeout again.", metrics.rearmed),
        ("wheelwork_rescheduled_total", "Successful reschedules.", metrics.rescheduled),
        ("wheelwork_expired_total", "Timeouts handed to the executor.", metrics.expired),
        ("wheelwork_cancelled_total", "Timeouts cancelled before a run.", metrics.cancelled),
        ("wheelwork_returned_total", "Timeouts returned by a stop.", metrics.returned),
        ("wheelwork_rejected_total", "Timeouts refused by the timer.", metrics.rejected),
        ("wheelwork_panicked_total", "Tasks and callbacks that panicked.", metrics.panicked),
        ("wheelwork_refused_total", "Jobs that the executor gave back.", metrics.refused),
        ("wheelwork_abandoned_total", "Jobs that the executor dropped.", metrics.abandoned),
        (
            "wheelwork_passes_with_backlog_total",
            "Passes of the worker that reached the drain cap.",
            metrics.passes_with_backlog,
        ),
        (
            "wheelwork_ticks_skipped_total",
            "Ticks without a pass of the worker.",
            metrics.ticks_skipped,
        ),
        ("wheelwork_wakeups_total", "Wake-ups of the worker.", metrics.wakeups),
        ("wheelwork_sweeps_total", "Sweeps of the wheel for dead entries.", metrics.sweeps),
    ] {
        timer.counter(name, help, value);
    }
    timer.gauge("wheelwork_pending", "Pending timeouts.", Unit::Count, metrics.pending as f64);
    let slots = "Slots for timeouts, used and free.";
    timer.gauge("wheelwork_slots", slots, Unit::Count, metrics.slots as f64);
    timer.histogram(
        "wheelwork_lateness_seconds",
        "Time from a timeout's deadline until it was handed to the executor.",
        recent.buckets().map(|(lateness, count)| (lateness.as_secs_f64(), count)),
    );
    let (latest, help) = (metrics.lateness.max(), "The greatest lateness so far.");
    timer.gauge("wheelwork_lateness_max_seconds", help, Unit::Seconds, latest.as_secs_f64());
}
