//! Whether the numbers to reach are reached.

use super::results::Results;
use super::words::{self, factor, number};
use crate::catalogue::{self, Goal, Workload};
use crate::param;
use crate::rivals::{FLOOR, OURS};
use itertools::Itertools;
use std::fmt;

pub struct Verdict {
    pub claim: String,
    pub target: String,
    /// With its unit.
    pub measured: Option<String>,
    pub judgement: String,
    /// What it is computed from.
    pub parts: String,
}

impl Verdict {
    /// All of them, measured or not.
    pub fn all(results: &Results) -> Vec<Self> {
        catalogue::goals().map(|(work, goal)| Self::of(results, work, goal)).collect()
    }

    fn of(results: &Results, work: &Workload, goal: &Goal) -> Self {
        let (against, value, parts) = compare(results, &work.name, goal);
        let setting = [&work.title, &param::in_words(&goal.param), &words::metric(&goal.metric)]
            .into_iter()
            .filter(|part| !part.is_empty() && *part != "-")
            .join(", ");
        // The others are no quotients, or are better if they are smaller.
        let is_factor = !["figure", "worst"].contains(&&*goal.base);
        let is_speed = against.starts_with(": faster");
        let unit = if is_factor { "x" } else { "" };
        let measured = |value| if is_factor { format!("{value:.2}x") } else { number(value) };
        Self {
            claim: setting + &against,
            target: format!("at {} {}{unit}", if is_speed { "least" } else { "most" }, goal.limit),
            measured: value.map(measured),
            judgement: value.map_or("not measured".to_owned(), |value| match is_speed {
                true => short_of(value, goal.limit),
                false => beyond(value, goal.limit),
            }),
            parts,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, target, measured, judgement, .. } = self;
        let measured = measured.as_deref().unwrap_or("nothing");
        write!(f, "{claim}: {target}, measured {measured}: {judgement}")
    }
}

fn short_of(value: f64, least: f64) -> String {
    match value < least {
        true => format!("missed: {} % short", percent(1.0 - value / least)),
        false => "reached".to_owned(),
    }
}

fn beyond(value: f64, most: f64) -> String {
    match value {
        _ if value <= most => "reached".to_owned(),
        _ if most == 0.0 => "missed".to_owned(),
        _ if value >= 2.0 * most => format!("missed: {} the limit", factor(value / most)),
        _ => format!("missed: {} % over", percent(value / most - 1.0)),
    }
}

/// Never 0: what is missed is missed by something.
fn percent(share: f64) -> f64 {
    (share * 100.0).round().max(1.0)
}

/// What the base is called; the figure or the quotient; and what it is computed from.
fn compare(results: &Results, workload: &str, goal: &Goal) -> (String, Option<f64>, String) {
    let Goal { param, metric, base, .. } = goal;
    let median = |param: &str, rival| results.median(workload, param, metric, rival);
    let written = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let against = |name: &str, ours: Option<f64>, base: Option<f64>| {
        let parts = format!("{} against {}", written(ours), written(base));
        (name.to_owned(), ours.zip(base).map(|(ours, base)| ours / base), parts)
    };
    let params = results.params(workload).into_iter();
    let ours = median(param, OURS);
    match &**base {
        "figure" => (String::new(), ours, String::new()),
        "worst" => {
            let figures = params.filter_map(|param| results.figure(workload, param, metric, OURS));
            (String::new(), figures.map(|figure| figure.max).reduce(f64::max), String::new())
        }
        "control" => {
            let control = param::control_of(param).and_then(|param| median(&param, OURS));
            against(" against the control", ours, control)
        }
        "floor" => {
            let parts = results.metrics(FLOOR).into_iter();
            let floor = parts.filter_map(|metric| results.median(FLOOR, "-", metric, FLOOR)).sum();
            let ours = results.median("schedule_cancel", param, metric, OURS);
            against(": schedule_cancel against it", ours, Some(floor).filter(|sum| *sum > 0.0))
        }
        "first point" => {
            let points = params.filter_map(|param| median(param, OURS)).collect_vec();
            let dearest = points.iter().copied().reduce(f64::max);
            // One point is no curve.
            let dearest = dearest.filter(|_| points.len() > 1).map(|most| most / points[0]);
            let name = ": the dearest point against the first".to_owned();
            (name, dearest, points.iter().map(|point| number(*point)).join(", "))
        }
        rivals => {
            let costs = rivals.split(' ').map(|rival| (rival, median(param, rival)));
            let costs = costs.chain([(OURS, ours)]).collect_vec();
            let known = costs.iter().filter(|(rival, _)| *rival != OURS);
            let best = known.filter_map(|(_, cost)| *cost).reduce(f64::min);
            let name = format!(": faster than {}", rivals.split(' ').join(" or "));
            let mut parts = costs.iter().map(|(rival, cost)| format!("{rival} {}", written(*cost)));
            (name, best.zip(ours).map(|(best, ours)| best / ours), parts.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_reached_missed_or_not_measured() {
        let results = Results::fixture();
        let verdicts = Verdict::all(&results);
        let two = "schedule, 2 producers, no captures, ns per operation: faster than";
        for (claim, measured, judgement) in [
            ("schedule, 1 producer, no captures, ns per operation: f", "3.00x", "reached"),
            (&format!("{two} n"), "2.00x", "missed: 50 % short"),
            (&format!("{two} p"), "-", "not measured"),
            ("the floor", "1.80x", "reached"),
            ("lateness, tick 1 ms, idle, p99, µs", "1,300", "missed: 8 % over"),
            (
                "a heartbeat beside floods, 16 threads, reschedule, p99",
                "8.00x",
                "missed: 4.0x the limit",
            ),
            ("growth, schedule, ns: the dearest", "1.50x", "reached"),
            ("lateness, early", "0", "reached"),
        ] {
            let found = verdicts.iter().filter(|verdict| verdict.claim.starts_with(claim));
            let found = found.exactly_one().unwrap_or_else(|_| panic!("{claim}"));
            let found = (found.measured.as_deref().unwrap_or("-"), &*found.judgement);
            assert_eq!(found, (measured, judgement), "{claim}");
        }
    }
}
