//! The Grafana dashboard against the series of the exporter: it shows every metric, and nothing else.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use telemetry::Exporter;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdleTimeouts};

const DASHBOARD: &str = include_str!("../../../docs/grafana/wheelwork.json");

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

/// The labels of the exporter's series, by their names.
fn exported() -> BTreeMap<String, BTreeSet<String>> {
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
    let mut exported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, labels, _) in exporter.scrape().series() {
        exported.entry(name).or_default().extend(labels.into_keys());
    }
    exported
}

#[test]
fn the_dashboard_shows_every_metric_and_names_no_other() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let exported = exported();
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
        let part_of_histogram = name.ends_with("_sum") || name.ends_with("_count");
        assert!(part_of_histogram || shown.contains(name), "the dashboard does not show {name}");
    }
}

/// A panel that filters or groups by a label that its series lacks would be empty.
#[test]
fn the_dashboard_uses_only_labels_that_the_series_have() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let exported = exported();
    let mut found = Vec::new();
    expressions(&dashboard["panels"], &mut found);
    assert!(found.len() > 10, "{} expressions", found.len());
    let labels: BTreeSet<&str> = exported.values().flatten().map(String::as_str).collect();
    for expression in &found {
        let name = words(expression).find(|word| exported.contains_key(*word)).expect("a series");
        for label in words(expression).filter(|word| labels.contains(word)) {
            assert!(exported[name].contains(label), "{expression}: {name} has no label {label}");
        }
    }
}
