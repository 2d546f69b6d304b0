//! Publishing an idle manager's metrics through the `metrics` facade.

use super::kind::IdleKind;
use super::timeouts::IdleTimeouts;
use crate::base::publish::{Publication, Unit};

impl<T: Send + 'static> IdleTimeouts<T> {
    /// Publishes the manager's counts through the [`metrics`](https://docs.rs/metrics) facade, as
    /// [`HashedWheelTimer::publish_metrics`](crate::HashedWheelTimer::publish_metrics) does for its timer.
    ///
    /// | metric | type | meaning |
    /// |---|---|---|
    /// | `wheelwork_idle_watched` | gauge | watched connections |
    /// | `wheelwork_idle_reported_total` | counter | reports, by the label `kind` |
    /// | `wheelwork_idle_panicked_total` | counter | callback calls that panicked |
    ///
    /// Each has two labels: `timer`, the name of the worker's thread, and `manager`, the name given here.
    /// The values of `kind` are `reader`, `writer`, `both`, `waiting_write`, `age` and `timer_stopped`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::{HashedWheelTimer, idle::{Answer, IdleTimeouts}};
    /// # let timer = HashedWheelTimer::new()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// idle.publish_metrics("clients");
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn publish_metrics(&self, manager: &str) {
        let labels = || {
            [
                ("timer", self.manager.timer.shared().name().to_owned()),
                ("manager", manager.to_owned()),
            ]
        };
        let all = Publication::labelled(labels());
        let watched = self.watched() as f64;
        all.gauge("wheelwork_idle_watched", "Watched connections.", Unit::Count, watched);
        all.counter(
            "wheelwork_idle_panicked_total",
            "Calls of the idle callback that panicked.",
            self.panicked(),
        );
        for kind in IdleKind::EVERY {
            Publication::labelled(labels().into_iter().chain([("kind", kind.name().to_owned())]))
                .counter(
                    "wheelwork_idle_reported_total",
                    "Reports of silent connections.",
                    self.reported(kind),
                );
        }
    }
}
