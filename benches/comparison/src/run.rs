//! The whole comparison: job after job, and the results.

use crate::args::Run;
use crate::case::Case;
use crate::child;
use crate::equipment::Equipment;
use crate::failure::Failure;
use crate::machine;
use crate::measurement::{Measurement, Writer};
use crate::plan::{self, Job, Selection};
use crate::report;
use crate::rivals::netty::{Form, Netty};
use crate::sizes::Sizes;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::{self, File};
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::thread;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the measurements: {0}")]
    Measurements(#[from] csv::Error),
    #[error("cannot start the measurement of {rival}: {source}")]
    Start { rival: &'static str, source: io::Error },
    #[error("cannot write the report: {0}")]
    Report(io::Error),
    #[error("nothing to run: the workloads and rivals named have no measurement in common")]
    NothingToRun,
}

/// Returns the table to print.
pub fn run(args: &Run, cores: u64) -> Result<String, Error> {
    let jobs = jobs(args, cores);
    if jobs.is_empty() {
        return Err(Error::NothingToRun);
    }
    let folder = args.folder();
    fs::create_dir_all(&folder).map_err(cannot_write(&folder))?;
    let equipment = Equipment::find(&jobs, args.quick);
    write_machine(&folder, equipment.netty())?;
    let csv = folder.join("measurements.csv");
    let file = File::create(&csv).map_err(cannot_write(&csv))?;
    Campaign { quick: args.quick, equipment }.run(&jobs, Writer::new(file))?;
    report::write(&csv, &folder).map_err(Error::Report)
}

fn jobs(args: &Run, cores: u64) -> Vec<Job> {
    let selection = Selection { workloads: args.only.clone(), rivals: args.rivals.clone() };
    let rounds = if args.quick { 1 } else { args.rounds };
    plan::jobs(&Case::all(&Sizes::of(args.quick), cores), rounds, &selection)
}

fn write_machine(folder: &Path, netty: Option<&Netty>) -> Result<(), Error> {
    let path = folder.join("machine.md");
    let mut text = machine::description();
    if let Some(netty) = netty {
        text.push_str(&format!("- Netty: {}\n", netty.version()));
    }
    fs::write(&path, text).map_err(cannot_write(&path))
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::Write { path, source }
}

struct Campaign {
    quick: bool,
    equipment: Equipment,
}

impl Campaign {
    fn run(&self, jobs: &[Job], mut writer: Writer<File>) -> Result<(), Error> {
        let progress = progress_bar(jobs.len() as u64);
        for group in jobs.chunk_by(|a, b| a.case == b.case && a.round == b.round) {
            for jobs in group.chunks(self.side_by_side(group[0].case)) {
                progress.set_message(title(&jobs[0]));
                writer.write(&self.measure_together(jobs, &progress)?)?;
                progress.inc(jobs.len() as u64);
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    /// How many are measured at the same time. The figures of a quick run mean nothing.
    fn side_by_side(&self, case: Case) -> usize {
        if self.quick {
            4
        } else if plan::counts_only(case) {
            2
        } else {
            1
        }
    }

    fn measure_together(
        &self,
        jobs: &[Job],
        progress: &ProgressBar,
    ) -> Result<Vec<Measurement>, Error> {
        thread::scope(|scope| {
            let start = |job| scope.spawn(move || self.measure(job, progress));
            let running: Vec<_> = jobs.iter().map(start).collect();
            let mut measurements = Vec::new();
            for job in running {
                let measured = job.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?;
                measurements.extend(measured);
            }
            Ok(measurements)
        })
    }

    /// A failure of a rival is a figure of its own kind, and a line above the progress bar.
    fn measure(&self, job: &Job, progress: &ProgressBar) -> Result<Vec<Measurement>, Error> {
        if plan::skip_reason(job.case, job.rival).is_some() || self.equipment.lacks(job.rival) {
            // Once is enough to say so.
            let first = job.round == 1;
            return Ok(first.then(|| measurement(job, "skipped", 0.0)).into_iter().collect());
        }
        let outcome = match (self.equipment.netty(), Form::of(job.rival.name)) {
            (Some(netty), Some(form)) => {
                netty.run(form, job.case.workload(), &job.case.param(), job.round)
            }
            _ => self.measure_in_child(job)?,
        };
        Ok(outcome.unwrap_or_else(|failure| {
            progress.println(format!("{}: {failure}", title(job)));
            let (metric, value) = failure.figure();
            vec![measurement(job, metric, value)]
        }))
    }

    fn measure_in_child(&self, job: &Job) -> Result<Result<Vec<Measurement>, Failure>, Error> {
        let program = self.equipment.program(job.rival);
        let outcome = program
            .and_then(|program| child::measure(&program, job, self.quick))
            .map_err(|source| Error::Start { rival: job.rival.name, source })?;
        Ok(outcome.map(|figures| {
            let named = |(metric, value): (String, f64)| measurement(job, &metric, value);
            figures.into_iter().map(named).collect()
        }))
    }
}

fn title(job: &Job) -> String {
    let Job { case, rival, round } = job;
    format!("round {round}: {} {} {}", case.workload(), case.param(), rival.name)
}

fn measurement(job: &Job, metric: &str, value: f64) -> Measurement {
    Measurement {
        workload: job.case.workload().to_owned(),
        param: job.case.param(),
        rival: job.rival.name.to_owned(),
        round: job.round,
        metric: metric.to_owned(),
        value,
    }
}

/// It is drawn between measurements only: a thread that draws would disturb them.
fn progress_bar(jobs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{wide_bar} {pos}/{len}, {elapsed} so far, about {eta} to go\n{msg}",
    );
    let bar = ProgressBar::new(jobs);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
