//! Medians and spreads of what was measured in several rounds.

use crate::plan::Job;
use itertools::Itertools;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A line of `measurements.csv`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measurement {
    pub workload: String,
    pub param: String,
    pub rival: String,
    pub round: u32,
    pub metric: String,
    pub value: f64,
}

/// Metrics that are no figures, but say why there is none, or of what.
pub const REMARKS: [&str; 4] = ["skipped", "crashed", "timed_out", "capped_at"];

/// A figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

#[derive(Debug)]
pub struct Results(Vec<Measurement>);

impl Results {
    pub fn read(csv: &Path) -> io::Result<Self> {
        Ok(Self(csv::Reader::from_path(csv)?.deserialize().collect::<Result<_, _>>()?))
    }

    /// Whether there is a line of the job.
    pub fn have(&self, job: &Job) -> bool {
        self.of(&job.workload.name).any(|line| {
            (&line.param, &line.rival, line.round) == (&job.param, &job.rival.name, job.round)
        })
    }

    /// In the order in which they were run, like all the names below.
    pub fn params(&self, workload: &str) -> Vec<&str> {
        self.of(workload).map(|line| &*line.param).unique().collect()
    }

    /// Those that are figures.
    pub fn metrics(&self, workload: &str) -> Vec<&str> {
        let metrics = self.of(workload).map(|line| &*line.metric).unique();
        metrics.filter(|metric| !REMARKS.contains(metric)).collect()
    }

    pub fn rivals(&self, workload: &str) -> Vec<&str> {
        self.of(workload).map(|line| &*line.rival).unique().collect()
    }

    pub fn figure(&self, workload: &str, param: &str, metric: &str, rival: &str) -> Option<Figure> {
        let rounds = self
            .of(workload)
            .filter(|line| line.rival == rival && line.param == param && line.metric == metric);
        let values = rounds.map(|line| line.value).sorted_by(f64::total_cmp).collect_vec();
        let (min, max) = (*values.first()?, *values.last()?);
        let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Figure { median, min, max })
    }

    pub fn median(&self, workload: &str, param: &str, metric: &str, rival: &str) -> Option<f64> {
        self.figure(workload, param, metric, rival).map(|figure| figure.median)
    }

    fn of(&self, workload: &str) -> impl Iterator<Item = &Measurement> {
        self.0.iter().filter(move |line| line.workload == workload)
    }
}

#[cfg(test)]
impl Results {
    /// A small run: two rounds, a rival that was skipped, one that crashed, one that got less.
    pub fn fixture() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/fixture.csv");
        Self::read(&path).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use crate::sizes::QUICK;

    #[test]
    fn a_run_that_goes_on_measures_only_what_is_missing() {
        let jobs = |rounds| plan::jobs(&QUICK, 2, rounds, &["schedule".to_owned()], &[]);
        let line = |job: &Job| Measurement {
            workload: job.workload.name.clone(),
            param: job.param.clone(),
            rival: job.rival.name.clone(),
            round: job.round,
            metric: "ns_per_op".to_owned(),
            value: 1.0,
        };
        let measured = Results(jobs(1).iter().map(line).collect());
        let missing: Vec<_> = jobs(2).into_iter().filter(|job| !measured.have(job)).collect();
        assert_eq!(missing.len(), jobs(1).len());
        assert!(missing.iter().all(|job| job.round == 2));
    }
}
