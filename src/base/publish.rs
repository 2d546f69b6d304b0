//! Publishing values through the `metrics` facade, each with its description.
//!
//! Every publication describes and registers its metrics again. So a recorder may be installed at any
//! time, and nothing is kept between two publications.

use metrics::Label;
pub(crate) use metrics::Unit;

/// The metrics of one timer or idle manager: they all have the same labels.
pub(crate) struct Publication {
    labels: Vec<Label>,
}

impl Publication {
    pub(crate) fn labelled(labels: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self { labels: labels.into_iter().map(|(key, value)| Label::new(key, value)).collect() }
    }

    /// Publishes a count that only grows.
    pub(crate) fn counter(&self, name: &'static str, help: &'static str, value: u64) {
        metrics::describe_counter!(name, Unit::Count, help);
        metrics::counter!(name, self.labels.iter()).absolute(value);
    }

    /// Publishes a number of things that exist now.
    pub(crate) fn gauge(&self, name: &'static str, help: &'static str, unit: Unit, value: f64) {
        metrics::describe_gauge!(name, unit, help);
        metrics::gauge!(name, self.labels.iter()).set(value);
    }

    /// Publishes the values, in seconds, that a histogram has got since the last publication, each with
    /// its count.
    pub(crate) fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        values: impl Iterator<Item = (f64, u64)>,
    ) {
        metrics::describe_histogram!(name, Unit::Seconds, help);
        let histogram = metrics::histogram!(name, self.labels.iter());
        values.for_each(|(value, count)| histogram.record_many(value, count as usize));
    }
}
