//! A Grafana dashboard against the series that an exporter has.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The labels of series, by the names of these.
pub type Series = BTreeMap<String, BTreeSet<String>>;

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

/// # Panics
///
/// If a series is not shown, or a metric is named that is none.
pub fn shows_every_metric_and_no_other(dashboard: &Value, exported: &Series) {
    let mut found = Vec::new();
    expressions(dashboard, &mut found);
    let mut shown = BTreeSet::new();
    for expression in &found {
        for name in words(expression).filter(|word| word.starts_with("wheelwork_")) {
            assert!(exported.contains_key(name), "{expression}: no series {name}");
            shown.insert(name);
        }
    }
    for name in exported.keys() {
        let is_part = name.ends_with("_sum") || name.ends_with("_count");
        assert!(is_part || shown.contains(&**name), "the dashboard does not show {name}");
    }
}

/// A panel that filters or groups by a label that its series lacks would be empty.
///
/// # Panics
///
/// If there is such a panel, or if there are fewer than `least` expressions.
pub fn uses_only_labels_that_the_series_have(dashboard: &Value, exported: &Series, least: usize) {
    let mut found = Vec::new();
    expressions(&dashboard["panels"], &mut found);
    assert!(found.len() >= least, "{} expressions", found.len());
    let labels: BTreeSet<&str> = exported.values().flatten().map(String::as_str).collect();
    for expression in &found {
        let name = words(expression).find(|word| exported.contains_key(*word)).expect("a series");
        for label in words(expression).filter(|word| labels.contains(word)) {
            assert!(exported[name].contains(label), "{expression}: {name} has no label {label}");
        }
    }
}
