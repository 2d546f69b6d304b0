//! The tables of this program: the workloads, in the order in which they are run, and the numbers to
//! reach.

use crate::param;
use crate::sizes::Sizes;
use itertools::Itertools;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
pub struct Workload {
    pub name: String,
    pub title: String,
    pub about: String,
    /// Patterns for [`param::expand`], separated by blanks.
    params: String,
    /// For timers whose tick can be set.
    pub tick_ms: u64,
    /// Two rounds show that steady figures agree; the hot paths and the firing vary more.
    pub most_rounds: Option<u32>,
    /// Whether it counts what its own process uses, and no time: two can run side by side.
    pub counts_only: bool,
    plot: String,
}

/// A row for each rival, with bars or dots.
#[derive(Debug, Clone, Copy)]
pub enum Plot<'a> {
    /// A bar of this metric for each param.
    Bars(&'a str),
    /// A panel for each metric, a dot for each param.
    Growth,
    /// A panel for each param, a dot for each of these metrics: from the median to the worst.
    Late(&'a str),
}

/// A claim about our figure.
#[derive(Debug, Deserialize)]
pub struct Goal {
    /// Separated by blanks; the claim is about each of them.
    workloads: String,
    /// Empty if it is about all params of the workload.
    pub param: String,
    pub metric: String,
    /// What the figure is compared with:
    /// - `figure`: nothing, the limit is for the figure itself
    /// - `worst`: nothing, the greatest of all params and rounds counts
    /// - `control`: ours in the control
    /// - `first point`: ours at the first point of the curve, and the dearest point counts
    /// - `floor`: the sum of the floor's parts, and the figure is ours in `schedule_cancel`
    /// - names of rivals: the fastest of them, which has to take `limit` times as long
    pub base: String,
    pub limit: f64,
}

pub static WORKLOADS: LazyLock<Vec<Workload>> =
    LazyLock::new(|| table(include_str!("workloads.csv")));
static GOALS: LazyLock<Vec<Goal>> = LazyLock::new(|| table(include_str!("goals.csv")));

pub fn table<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    rows.collect::<Result<_, _>>().expect("the tables of this program are valid")
}

pub fn workload(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

/// The numbers to reach in each workload.
pub fn goals() -> impl Iterator<Item = (&'static Workload, &'static Goal)> {
    let pairs = WORKLOADS.iter().cartesian_product(GOALS.iter());
    pairs.filter(|(work, goal)| goal.workloads.split(' ').contains(&&*work.name))
}

impl Workload {
    /// Whether tasks on a runtime use the timers, as futures or as delay queues.
    pub fn is_async(&self) -> bool {
        self.name.starts_with("async")
    }

    pub fn params(&self, sizes: &Sizes, cores: u64) -> Vec<String> {
        let patterns = self.params.split(' ');
        patterns.flat_map(|pattern| param::expand(pattern, sizes, cores)).collect()
    }

    pub fn plot(&self) -> Option<Plot<'_>> {
        match self.plot.split_once(' ') {
            Some(("bars", metric)) => Some(Plot::Bars(metric)),
            Some((_, metrics)) => Some(Plot::Late(metrics)),
            None => (self.plot == "growth").then_some(Plot::Growth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals;
    use crate::sizes::{FULL, QUICK};

    #[test]
    fn every_goal_is_about_a_case_and_rivals_that_are_run() {
        let mut names = GOALS.iter().flat_map(|goal| goal.workloads.split(' '));
        assert!(names.all(|name| workload(name).is_some()));
        for (work, Goal { param, base, .. }) in goals() {
            let work = if base == "floor" { workload("schedule_cancel").unwrap() } else { work };
            let params = work.params(&FULL, 2);
            assert!(param.is_empty() || params.contains(param), "{}: {param}", work.name);
            let known = ["floor", "figure", "worst", "control", "first point"].contains(&&**base);
            assert!(known || base.split(' ').all(|name| rivals::facts(name).is_some()), "{base}");
        }
    }

    #[test]
    fn params_tell_cases_apart() {
        let all = WORKLOADS.iter().flat_map(|work| [&FULL, &QUICK].map(|s| work.params(s, 8)));
        all.for_each(|params| assert!(params.iter().all_unique(), "{params:?}"));
    }
}
