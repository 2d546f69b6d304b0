//! Medians and spreads of what was measured in several rounds.

use crate::measurement::{self, Measurement};
use std::fs::File;
use std::io;
use std::path::Path;

/// The rival that the others are compared with.
pub use crate::rivals::OURS;

/// Metrics that are no figures, but say why there is none, or of what.
const SKIPPED: &str = "skipped";
const CRASHED: &str = "crashed";
const TIMED_OUT: &str = "timed_out";
const CAPPED_AT: &str = "capped_at";

/// A figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Figure {
    /// `None` of no values.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, min, max })
    }
}

/// What has to be said of a rival in a workload beside its figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Remark {
    Skipped,
    Crashed { code: f64 },
    TimedOut { seconds: f64 },
    CappedAt { timeouts: f64 },
}

/// A workload with its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<'a> {
    pub workload: &'a str,
    pub param: &'a str,
}

#[derive(Debug)]
pub struct Results(Vec<Measurement>);

impl Results {
    pub fn read(csv: &Path) -> io::Result<Self> {
        Ok(Self(measurement::read(File::open(csv)?)?))
    }

    /// In the order in which they were run.
    pub fn workloads(&self) -> Vec<&str> {
        distinct(self.0.iter().map(|line| line.workload.as_str()))
    }

    /// In the order in which they were run.
    pub fn params(&self, workload: &str) -> Vec<&str> {
        let lines = self.0.iter().filter(|line| line.workload == workload);
        distinct(lines.map(|line| line.param.as_str()))
    }

    /// Those that are figures.
    pub fn metrics(&self, workload: &str) -> Vec<&str> {
        let lines = self.0.iter().filter(|line| line.workload == workload);
        let figures = lines.filter(|line| remark(line).is_none());
        distinct(figures.map(|line| line.metric.as_str()))
    }

    pub fn rivals(&self, workload: &str) -> Vec<&str> {
        let lines = self.0.iter().filter(|line| line.workload == workload);
        distinct(lines.map(|line| line.rival.as_str()))
    }

    pub fn figure(&self, setting: Setting<'_>, metric: &str, rival: &str) -> Option<Figure> {
        let lines = self.lines(setting, rival).filter(|line| line.metric == metric);
        Figure::of(lines.map(|line| line.value).collect())
    }

    pub fn median(&self, setting: Setting<'_>, metric: &str, rival: &str) -> Option<f64> {
        self.figure(setting, metric, rival).map(|figure| figure.median)
    }

    /// One of each kind, however many rounds they are from.
    pub fn remarks(&self, setting: Setting<'_>, rival: &str) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for remark in self.lines(setting, rival).filter_map(remark) {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        remarks
    }

    fn lines(&self, setting: Setting<'_>, rival: &str) -> impl Iterator<Item = &Measurement> {
        self.0.iter().filter(move |line| {
            line.rival == rival && line.param == setting.param && line.workload == setting.workload
        })
    }
}

fn remark(line: &Measurement) -> Option<Remark> {
    match line.metric.as_str() {
        SKIPPED => Some(Remark::Skipped),
        CRASHED => Some(Remark::Crashed { code: line.value }),
        TIMED_OUT => Some(Remark::TimedOut { seconds: line.value }),
        CAPPED_AT => Some(Remark::CappedAt { timeouts: line.value }),
        _ => None,
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// A small run: two rounds, a rival that was skipped, one that crashed, one that got less.
#[cfg(test)]
pub const FIXTURE: &str = "\
workload,param,rival,round,metric,value
floor,-,floor,1,clock_ns,9
floor,-,floor,1,atomic_ns,5
floor,-,floor,1,queue_push_ns,6
schedule,producers=1;captures=0,wheelwork,1,ns_per_op,20
schedule,producers=1;captures=0,wheelwork,2,ns_per_op,22
schedule,producers=1;captures=0,netty-best,1,ns_per_op,60
schedule,producers=1;captures=0,netty-best,2,ns_per_op,66
schedule,producers=1;captures=0,tokio-sleep,1,ns_per_op,80
schedule,producers=1;captures=0,tokio-sleep,2,ns_per_op,90
schedule,producers=1;captures=0,sorted-list,1,ns_per_op,9000
schedule,producers=1;captures=0,sorted-list,1,capped_at,20000
schedule,producers=2;captures=0,wheelwork,1,ns_per_op,30
schedule,producers=2;captures=0,netty-best,1,ns_per_op,60
schedule,producers=2;captures=0,tokio-sleep,1,crashed,-11
schedule_cancel,producers=1;captures=0,wheelwork,1,ns_per_op,36
growth,present=1000,wheelwork,1,schedule_ns,20
growth,present=10000,wheelwork,1,schedule_ns,30
growth,present=100000,wheelwork,1,schedule_ns,25
growth,present=1000,sorted-list,1,schedule_ns,900
growth,present=1000000,sorted-list,1,skipped,0
resident,pending=0,wheelwork,1,cpu_percent,0
resident,pending=0,netty-best,1,cpu_percent,3.5
lateness,tick=1ms;load=idle,wheelwork,1,p50_us,650
lateness,tick=1ms;load=idle,wheelwork,1,p99_us,1300
lateness,tick=1ms;load=idle,wheelwork,1,p999_us,1500
lateness,tick=1ms;load=idle,wheelwork,1,max_us,2000
lateness,tick=1ms;load=idle,wheelwork,1,early,0
flood,threads=16;flood=reschedule;timer=same,wheelwork,1,p99_ms,40
flood,threads=16;flood=reschedule;timer=other,wheelwork,1,p99_ms,5
";

#[cfg(test)]
impl Results {
    pub fn fixture() -> Self {
        Self(measurement::read(FIXTURE.as_bytes()).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Setting<'_> = Setting { workload: "schedule", param: "producers=1;captures=0" };
    const TWO: Setting<'_> = Setting { workload: "schedule", param: "producers=2;captures=0" };

    #[test]
    fn median_and_spread() {
        let figure = |values: &[f64]| Figure::of(values.to_vec());
        assert_eq!(figure(&[]), None);
        let odd = figure(&[3.0, 1.0, 8.0]).unwrap();
        assert_eq!(odd, Figure { median: 3.0, min: 1.0, max: 8.0 });
        assert_eq!(figure(&[3.0, 1.0]).unwrap().median, 2.0);
    }

    #[test]
    fn figures_are_found() {
        let results = Results::fixture();
        assert_eq!(results.median(ONE, "ns_per_op", "netty-best"), Some(63.0));
        assert_eq!(results.median(ONE, "ns_per_op", "nobody"), None);
        assert_eq!(
            results.params("schedule"),
            ["producers=1;captures=0", "producers=2;captures=0"]
        );
        let rivals = ["wheelwork", "netty-best", "tokio-sleep", "sorted-list"];
        assert_eq!(results.rivals("schedule"), rivals);
    }

    #[test]
    fn what_is_no_figure_is_a_remark() {
        let results = Results::fixture();
        assert_eq!(results.metrics("schedule"), ["ns_per_op"]);
        assert_eq!(results.median(TWO, "ns_per_op", "tokio-sleep"), None);
        assert_eq!(results.remarks(TWO, "tokio-sleep"), [Remark::Crashed { code: -11.0 }]);
        let capped = Remark::CappedAt { timeouts: 20_000.0 };
        assert_eq!(results.remarks(ONE, "sorted-list"), [capped]);
        assert_eq!(results.remarks(ONE, "netty-best"), []);
    }
}
