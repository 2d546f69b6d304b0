//! The Grafana dashboard against the metrics: it shows each of them, and names no other. The guide names them, too.

use kit::dashboard::{self, Series};
use std::collections::BTreeSet;
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, NewJob, Redb};

const DASHBOARD: &str = include_str!("../docs/grafana/wheelwork-jobs.json");
const GUIDE: &str = include_str!("../docs/guide.md");

/// The labels of all series, by their names. Prometheus adds the label `instance`.
async fn exported() -> Series {
    let folder = tempfile::tempdir().unwrap();
    let store = Redb::open(folder.path().join("jobs.redb")).unwrap();
    let handle = |_: Job<(), Redb>| async { Ok::<(), String>(()) };
    let jobs = Jobs::builder(store).handle("mail", handle).open().await.unwrap();
    let far = NewJob::new("mail", &()).unwrap().due(Duration::from_secs(3_600));
    jobs.schedule(far).await.unwrap();
    let text = jobs.metrics().to_prometheus() + &jobs.glance().await.unwrap().to_prometheus();
    let mut exported = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let series = line.rsplit_once(' ').unwrap().0;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels =
            labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        exported.entry(name.to_owned()).or_default().extend(labels.chain(["instance".to_owned()]));
    }
    exported
}

#[tokio::test]
async fn the_dashboard_shows_every_metric_and_names_no_other() {
    let shown = serde_json::from_str(DASHBOARD).unwrap();
    dashboard::shows_every_metric_and_no_other(&shown, &exported().await);
}

/// The guide leaves out what all names begin with.
#[tokio::test]
async fn the_guide_names_every_metric() {
    let named: BTreeSet<&str> = GUIDE.split('`').collect();
    for name in exported().await.keys() {
        let name = name.strip_prefix("wheelwork_jobs_").unwrap();
        let metric = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
        assert!(named.contains(metric.unwrap_or(name)), "the guide does not name {name}");
    }
}

/// A panel that filters or groups by a label that its series lacks would be empty.
#[tokio::test]
async fn the_dashboard_uses_only_labels_that_the_series_have() {
    let shown = serde_json::from_str(DASHBOARD).unwrap();
    dashboard::uses_only_labels_that_the_series_have(&shown, &exported().await, 21);
}
