//! The Grafana dashboard against the series of the exporter: it shows every metric, and nothing else.

use kit::dashboard::{self, Series};
use std::time::Duration;
use telemetry::Exporter;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdleTimeouts};

const DASHBOARD: &str = include_str!("../../../docs/grafana/wheelwork.json");

/// The labels of the exporter's series, by their names.
fn exported() -> Series {
    let exporter = Exporter::start();
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build();
    let timer = timer.expect("a timer");
    let (ran, has_run) = std::sync::mpsc::channel();
    timer.new_timeout(move || ran.send(()).unwrap_or_default(), Duration::ZERO).expect("a timeout");
    has_run.recv().expect("a run");
    timer.stop().expect("a stop");
    timer.publish_metrics();
    let idle = IdleTimeouts::new(&timer, |_: &mut (), _| Answer::StopWatching);
    idle.publish_metrics("clients");
    let mut exported = Series::new();
    for (name, labels, _) in exporter.scrape().series() {
        exported.entry(name).or_default().extend(labels.into_keys());
    }
    exported
}

#[test]
fn the_dashboard_shows_every_metric_and_names_no_other() {
    let shown = serde_json::from_str(DASHBOARD).expect("JSON");
    dashboard::shows_every_metric_and_no_other(&shown, &exported());
}

/// A panel that filters or groups by a label that its series lacks would be empty.
#[test]
fn the_dashboard_uses_only_labels_that_the_series_have() {
    let shown = serde_json::from_str(DASHBOARD).expect("JSON");
    dashboard::uses_only_labels_that_the_series_have(&shown, &exported(), 11);
}
