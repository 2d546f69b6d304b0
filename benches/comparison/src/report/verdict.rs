//! Whether the numbers to reach are reached.

use super::results::Results;
use super::words::{self, factor, number};
use crate::catalogue::{Base, Goal, Target, WORKLOADS, Workload};
use crate::param;
use crate::rivals::{FLOOR, OURS};
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

/// All of them, measured or not.
pub fn all(results: &Results) -> Vec<Verdict> {
    let goals = WORKLOADS.iter().flat_map(|work| work.goals.iter().map(move |goal| (work, goal)));
    goals.map(|(work, goal)| Verdict::of(results, work, goal)).collect()
}

impl Verdict {
    fn of(results: &Results, work: &Workload, goal: &Goal) -> Self {
        let (measured, parts) = compare(results, work.name, goal);
        let unit = if matches!(goal.base, Base::One | Base::Worst) { "" } else { "x" };
        let against = match goal.base {
            Base::Rivals(rivals) => format!(": faster than {}", rivals.join(" or ")),
            Base::Control => " against the control".to_owned(),
            Base::FirstPoint => ": the dearest point against the first".to_owned(),
            Base::Floor(workload) => format!(": {workload} against it"),
            Base::One | Base::Worst => String::new(),
        };
        let setting = param::in_words(goal.param);
        let setting = [work.title, &setting, &words::metric(goal.metric)].map(str::to_owned);
        let named = setting.into_iter().filter(|part| !part.is_empty() && part != "-");
        let written = |value: f64| match unit {
            "x" => format!("{value:.2}x"),
            _ => number(value),
        };
        Self {
            claim: named.collect::<Vec<_>>().join(", ") + &against,
            target: match goal.target {
                Target::AtLeast(least) => format!("at least {least}{unit}"),
                Target::AtMost(most) => format!("at most {most}{unit}"),
            },
            measured: measured.map(written),
            judgement: judgement(measured, goal.target),
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

fn judgement(measured: Option<f64>, target: Target) -> String {
    // Never 0: what is missed is missed by something.
    let percent = |share: f64| (share * 100.0).round().max(1.0);
    match (measured, target) {
        (None, _) => "not measured".to_owned(),
        (Some(value), Target::AtLeast(least)) if value < least => {
            format!("missed: {} % short", percent(1.0 - value / least))
        }
        (Some(value), Target::AtMost(0.0)) if value > 0.0 => "missed".to_owned(),
        (Some(value), Target::AtMost(most)) if value >= 2.0 * most && most > 0.0 => {
            format!("missed: {} the limit", factor(value / most))
        }
        (Some(value), Target::AtMost(most)) if value > most => {
            format!("missed: {} % over", percent(value / most - 1.0))
        }
        _ => "reached".to_owned(),
    }
}

/// The figure or the quotient, and what it is computed from.
fn compare(results: &Results, workload: &str, goal: &Goal) -> (Option<f64>, String) {
    let median = |param: &str, rival| results.median(workload, param, goal.metric, rival);
    let ours = median(goal.param, OURS);
    let quotient = |base: Option<f64>| ours.zip(base).map(|(ours, base)| ours / base);
    let written = |value: Option<f64>| value.map_or("-".to_owned(), number);
    match goal.base {
        Base::One => (ours, String::new()),
        Base::Rivals(rivals) => {
            let known = rivals.iter().filter_map(|rival| median(goal.param, rival));
            let best = known.min_by(f64::total_cmp);
            let costs = rivals.iter().chain(&[OURS]);
            let costs =
                costs.map(|rival| format!("{rival} {}", written(median(goal.param, rival))));
            (quotient(best).map(f64::recip), costs.collect::<Vec<_>>().join(", "))
        }
        Base::Control => {
            let control = param::control_of(goal.param).and_then(|param| median(&param, OURS));
            (quotient(control), format!("{} against {}", written(ours), written(control)))
        }
        Base::Floor(ours) => {
            let ours = results.median(ours, goal.param, goal.metric, OURS);
            let parts = results.metrics(FLOOR);
            let part = |metric: &&str| results.median(FLOOR, "-", metric, FLOOR);
            let floor: Option<f64> = parts.iter().map(part).sum();
            let floor = floor.filter(|floor| *floor > 0.0);
            let quotient = ours.zip(floor).map(|(ours, floor)| ours / floor);
            (quotient, format!("{} against {}", written(ours), written(floor)))
        }
        Base::FirstPoint => {
            let params = results.params(workload);
            let points: Vec<_> = params.iter().filter_map(|param| median(param, OURS)).collect();
            let dearest = points.iter().copied().reduce(f64::max);
            // One point is no curve.
            let dearest = dearest.filter(|_| points.len() > 1).map(|most| most / points[0]);
            let written: Vec<_> = points.iter().map(|point| number(*point)).collect();
            (dearest, written.join(", "))
        }
        Base::Worst => {
            let params = results.params(workload).into_iter();
            let figures = params.filter_map(|p| results.figure(workload, p, goal.metric, OURS));
            (figures.map(|figure| figure.max).reduce(f64::max), String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_reached_missed_or_not_measured() {
        let verdicts = all(&Results::fixture());
        for (claim, measured, judgement) in [
            ("schedule, 1 producer, no captures, ns per operation: f", "3.00x", "reached"),
            (
                "schedule, 2 producers, no captures, ns per operation: faster than n",
                "2.00x",
                "missed: 50 % short",
            ),
            (
                "schedule, 2 producers, no captures, ns per operation: faster than p",
                "-",
                "not measured",
            ),
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
            let mut found = verdicts.iter().filter(|verdict| verdict.claim.starts_with(claim));
            let (Some(one), None) = (found.next(), found.next()) else { panic!("{claim}") };
            let found = (one.measured.as_deref().unwrap_or("-"), &*one.judgement);
            assert_eq!(found, (measured, judgement), "{claim}");
        }
    }
}
