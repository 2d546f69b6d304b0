//! The Grafana dashboard against the metrics: it shows each of them, and names no other. The guide names them, too.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, NewJob, Redb};

const DASHBOARD: &str = include_str!("../docs/grafana/wheelwork-jobs.json");
const GUIDE: &str = include_str!("../docs/guide.md");

/// All values of the keys `expr` and `query` in a piece of JSON.
fn expressions(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "expr" || key == "query" => {
                        found.push(text.clone());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

/// The words of an expression, except for the dashboard's variables.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || "_$".contains(c)));
    words.filter(|word| !word.starts_with('$'))
}

/// The labels of all series, by their names. Prometheus adds the label `instance`.
async fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let folder = tempfile::tempdir().unwrap();
    let store = Redb::open(folder.path().join("jobs.redb")).unwrap();
    let handle = |_: Job<(), Redb>| async { Ok::<(), String>(()) };
    let jobs = Jobs::builder(store).handle("mail", handle).open().await.unwrap();
    let far = NewJob::new("mail", &()).unwrap().due(Duration::from_secs(3_600));
    jobs.schedule(far).await.unwrap();
    let text = jobs.metrics().to_prometheus() + &jobs.glance().await.unwrap().to_prometheus();
    let mut exported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
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
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let exported = exported().await;
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    let mut shown = BTreeSet::new();
    for expression in &found {
        for name in words(expression).filter(|word| word.starts_with("wheelwork_")) {
            assert!(exported.contains_key(name), "{expression}: no series {name}");
            shown.insert(name.to_owned());
        }
    }
    for name in exported.keys() {
        let is_part = name.ends_with("_sum") || name.ends_with("_count");
        assert!(is_part || shown.contains(name), "the dashboard does not show {name}");
    }
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
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let exported = exported().await;
    let mut found = Vec::new();
    expressions(&dashboard["panels"], &mut found);
    assert!(found.len() > 20, "{} expressions", found.len());
    let labels: BTreeSet<&str> = exported.values().flatten().map(String::as_str).collect();
    for expression in &found {
        let name = words(expression).find(|word| exported.contains_key(*word)).unwrap();
        for label in words(expression).filter(|word| labels.contains(word)) {
            assert!(exported[name].contains(label), "{expression}: {name} has no label {label}");
        }
    }
}
