//! A number to reach: what is asked for, what was measured, and how far off it is.

use super::results::{OURS, Results, Setting};
use super::wording::{self, count_in, count_of, factor, number};
use crate::rivals::{CANCEL_NEW, netty};

const ONE_PRODUCER: &str = "producers=1;captures=0";
pub const TOKIO: [&str; 2] = ["tokio-sleep", "tokio-task"];
pub const NETTY_AND_TOKIO: [&str; 3] = [netty::BEST.name, TOKIO[0], TOKIO[1]];

#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    Reached,
    /// The measured value as a share of the target.
    Missed(f64),
    NotMeasured,
}

#[derive(Debug)]
pub struct Goal {
    pub claim: String,
    target: Target,
    /// Behind every number.
    unit: &'static str,
    measured: Option<f64>,
    /// What it is computed from.
    pub parts: String,
}

impl Goal {
    pub fn verdict(&self) -> Verdict {
        match (self.measured, self.target) {
            (None, _) => Verdict::NotMeasured,
            (Some(value), Target::AtLeast(least)) if value >= least => Verdict::Reached,
            (Some(value), Target::AtMost(most)) if value <= most => Verdict::Reached,
            (Some(value), Target::AtLeast(target) | Target::AtMost(target)) => {
                Verdict::Missed(value / target)
            }
        }
    }

    pub fn target(&self) -> String {
        match self.target {
            Target::AtLeast(least) => format!("at least {least}{}", self.unit),
            Target::AtMost(most) => format!("at most {most}{}", self.unit),
        }
    }

    pub fn measured(&self) -> String {
        match self.measured {
            None => "-".to_owned(),
            Some(value) if self.unit == RATIO => format!("{value:.2}{RATIO}"),
            Some(value) => format!("{}{}", number(value), self.unit),
        }
    }

    pub fn judgement(&self) -> String {
        match self.verdict() {
            Verdict::Reached => "reached".to_owned(),
            Verdict::NotMeasured => "not measured".to_owned(),
            Verdict::Missed(share) if !share.is_finite() => "missed".to_owned(),
            Verdict::Missed(share) if share >= 2.0 => {
                format!("missed: {} the limit", factor(share))
            }
            Verdict::Missed(share) if share > 1.0 => {
                format!("missed: {} % over", percent(share - 1.0))
            }
            Verdict::Missed(share) => format!("missed: {} % short", percent(1.0 - share)),
        }
    }
}

const RATIO: &str = "x";

/// Never 0: what is missed is missed by something.
fn percent(share: f64) -> String {
    format!("{:.0}", (share * 100.0).max(1.0))
}

/// Finds figures, and says what was found.
pub struct Look<'a>(pub &'a Results);

impl Look<'_> {
    /// How many times as long the fastest of these rivals takes.
    pub fn speed_up(
        &self,
        name: &str,
        workload: &str,
        param: &str,
        rivals: &[&str],
        least: f64,
    ) -> Goal {
        let setting = Setting { workload, param };
        let cost = |rival: &str| self.0.median(setting, "ns_per_op", rival);
        let known = rivals.iter().filter_map(|rival| Some((*rival, cost(rival)?)));
        let best = known.min_by(|(_, a), (_, b)| a.total_cmp(b));
        let ours = cost(OURS);
        let mut parts = Vec::new();
        parts.extend(best.map(|(rival, cost)| format!("{rival} {} ns", number(cost))));
        parts.extend(ours.map(|cost| format!("{OURS} {} ns", number(cost))));
        parts.extend(
            rivals.iter().filter(|rival| cost(rival).is_none()).map(|r| format!("no {r} here")),
        );
        Goal {
            claim: format!("{name}, {}: faster than {}", wording::param(param), one_of(rivals)),
            target: Target::AtLeast(least),
            unit: RATIO,
            measured: best.zip(ours).map(|((_rival, best), ours)| best / ours),
            parts: parts.join(", "),
        }
    }

    pub fn distance_to_the_floor(&self) -> Goal {
        let floor = Setting { workload: "floor", param: "-" };
        let part = |metric| self.0.median(floor, metric, crate::rivals::FLOOR);
        let setting = Setting { workload: "schedule_cancel", param: ONE_PRODUCER };
        let ours = self.0.median(setting, "ns_per_op", OURS);
        let all = [part("clock_ns"), part("atomic_ns"), part("queue_push_ns")];
        let (measured, parts) = match (all, ours) {
            ([Some(clock), Some(atomic), Some(push)], Some(ours)) => (
                Some(ours / (clock + atomic + push)),
                format!(
                    "{OURS} {} ns; clock {} + atomic {} + queue push {} ns",
                    number(ours),
                    number(clock),
                    number(atomic),
                    number(push)
                ),
            ),
            _ => (None, String::new()),
        };
        Goal {
            claim: "schedule and cancel, 1 producer: distance to the floor".to_owned(),
            target: Target::AtMost(2.0),
            unit: RATIO,
            measured,
            parts,
        }
    }

    /// Divides the cost in one setting by the cost in another.
    pub fn quotient(
        &self,
        claim: &str,
        workload: &str,
        [param, base]: [&str; 2],
        metric: &str,
        most: f64,
    ) -> Goal {
        let figure = |param| self.0.median(Setting { workload, param }, metric, OURS);
        let both = figure(param).zip(figure(base));
        let unit = wording::unit(metric);
        let parts = |(ours, base)| format!("{} against {} {unit}", number(ours), number(base));
        Goal {
            claim: claim.to_owned(),
            target: Target::AtMost(most),
            unit: RATIO,
            measured: both.map(|(ours, base)| ours / base),
            parts: both.map(parts).unwrap_or_default(),
        }
    }

    pub fn limit(
        &self,
        claim: &str,
        setting: Setting<'_>,
        metric: &str,
        most: f64,
        unit: &'static str,
    ) -> Goal {
        let rivals = NETTY_AND_TOKIO.iter().filter_map(|rival| {
            let value = self.0.median(setting, metric, rival)?;
            Some(format!("{rival} {}", number(value)))
        });
        Goal {
            claim: claim.to_owned(),
            target: Target::AtMost(most),
            unit,
            measured: self.0.median(setting, metric, OURS),
            parts: rivals.collect::<Vec<_>>().join(", "),
        }
    }

    /// The most of any setting and round: one is too many.
    pub fn never_early(&self) -> Goal {
        let params = self.0.params("lateness").into_iter();
        let early = params.filter_map(|param| {
            self.0.figure(Setting { workload: "lateness", param }, "early", OURS)
        });
        Goal {
            claim: "lateness: runs that came early".to_owned(),
            target: Target::AtMost(0.0),
            unit: "",
            measured: early.map(|figure| figure.max).reduce(f64::max),
            parts: "every tick, load and round".to_owned(),
        }
    }

    /// The dearest point of the curve in terms of its first.
    pub fn flat(&self, claim: &str, metric: &str) -> Goal {
        let params = self.0.params("growth").into_iter();
        let mut points: Vec<_> = params
            .filter_map(|param| {
                let setting = Setting { workload: "growth", param };
                Some((count_in(param), self.0.median(setting, metric, OURS)?))
            })
            .collect();
        points.sort_by_key(|(present, _cost)| *present);
        let written = points.iter().map(|(_present, cost)| number(*cost));
        let parts = written.collect::<Vec<_>>().join(", ") + " ns";
        let ends = points.first().zip(points.last());
        let range = ends.map_or(String::new(), |((fewest, _), (most, _))| {
            format!(", {} to {} present", count_of(*fewest), count_of(*most))
        });
        let dearest = points.iter().map(|(_present, cost)| *cost).reduce(f64::max);
        Goal {
            claim: format!("{claim}{range}"),
            target: Target::AtMost(2.0),
            unit: RATIO,
            // One point is no curve.
            measured: dearest.filter(|_| points.len() > 1).map(|dearest| dearest / points[0].1),
            parts: if points.is_empty() { String::new() } else { parts },
        }
    }
}

fn one_of(rivals: &[&str]) -> String {
    match rivals {
        [only] if *only == CANCEL_NEW => "cancel + new_timeout".to_owned(),
        [only] => (*only).to_owned(),
        _ if rivals == TOKIO => "tokio".to_owned(),
        _ => "the best of netty and tokio".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_nothing() {
        let missed = Goal {
            claim: String::new(),
            target: Target::AtMost(0.0),
            unit: "",
            measured: Some(3.0),
            parts: String::new(),
        };
        assert_eq!(missed.judgement(), "missed");
        assert_eq!(missed.measured(), "3");
    }
}
