//! The whole comparison: job after job, and the results.

use crate::catalogue;
use crate::child;
use crate::equipment::Equipment;
use crate::kernel;
use crate::plan::{self, Job};
use crate::report::{self, Measurement};
use crate::sizes::{FULL, QUICK};
use crate::{Run, cores, fit};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io;
use std::panic;
use std::thread;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write the results: {0}")]
    Io(#[from] io::Error),
    #[error("cannot write or read the measurements: {0}")]
    Csv(#[from] csv::Error),
    #[error("nothing to run: the workloads and rivals named have no measurement in common")]
    NothingToRun,
}

/// Returns what the numbers to reach have come to.
pub fn run(args: &Run) -> Result<Vec<String>, Error> {
    let (sizes, rounds) = if args.quick { (QUICK, 1) } else { (FULL, args.rounds) };
    let cases = catalogue::cases(&sizes, cores());
    let jobs = plan::jobs(&cases, rounds, &args.only, &args.rivals);
    if jobs.is_empty() {
        return Err(Error::NothingToRun);
    }
    let folder = args.folder();
    fs::create_dir_all(&folder)?;
    let equipment = Equipment::find(&jobs, args.quick);
    fs::write(folder.join("machine.md"), kernel::machine(equipment.netty_version()))?;
    let csv = folder.join("measurements.csv");
    let progress = progress_bar(jobs.len() as u64);
    let campaign = Campaign { quick: args.quick, limit_s: sizes.limit_s, equipment, progress };
    campaign.run(&jobs, csv::Writer::from_path(&csv)?)?;
    Ok(report::write(&folder)?)
}

struct Campaign {
    quick: bool,
    limit_s: u64,
    equipment: Equipment,
    progress: ProgressBar,
}

impl Campaign {
    /// Each line is flushed: an interrupted run loses nothing.
    fn run(&self, jobs: &[Job], mut csv: csv::Writer<fs::File>) -> Result<(), Error> {
        let same_turn = |a: &Job, b: &Job| {
            (a.case.workload.name, &a.case.param, a.round)
                == (b.case.workload.name, &b.case.param, b.round)
        };
        for turn in jobs.chunk_by(same_turn) {
            for jobs in turn.chunks(self.side_by_side(&turn[0])) {
                self.progress.set_message(title(&jobs[0]));
                for line in self.measure_together(jobs)? {
                    csv.serialize(line)?;
                }
                csv.flush()?;
                self.progress.inc(jobs.len() as u64);
            }
        }
        self.progress.finish_and_clear();
        Ok(())
    }

    /// How many are measured at the same time. The figures of a quick run mean nothing.
    fn side_by_side(&self, job: &Job) -> usize {
        match (self.quick, job.case.workload.counts_only) {
            (true, _) => 4,
            (false, true) => 2,
            (false, false) => 1,
        }
    }

    fn measure_together(&self, jobs: &[Job]) -> Result<Vec<Measurement>, Error> {
        thread::scope(|scope| {
            let start = |job| scope.spawn(move || self.measure(job));
            let running: Vec<_> = jobs.iter().map(start).collect();
            let mut lines = Vec::new();
            for job in running {
                lines.extend(job.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?);
            }
            Ok(lines)
        })
    }

    /// A failure of a rival is a figure of its own kind, and a line above the progress bar.
    fn measure(&self, job: &Job) -> Result<Vec<Measurement>, Error> {
        let Job { case, rival, round } = job;
        let skipped = plan::skip_reason(case.workload.name, &case.param, rival).is_some();
        let command = self.equipment.command(job).filter(|_| !skipped);
        let figures = match command {
            Some(command) => child::measure(&command, self.limit_s)?.unwrap_or_else(|failure| {
                self.progress.println(fit(&format!("{}: {failure}", title(job))));
                vec![failure.figure()]
            }),
            // Once is enough to say so.
            None if *round == 1 => vec![("skipped".to_owned(), 0.0)],
            None => Vec::new(),
        };
        let line = |(metric, value)| Measurement {
            workload: case.workload.name.to_owned(),
            param: case.param.clone(),
            rival: rival.name.to_owned(),
            round: *round,
            metric,
            value,
        };
        Ok(figures.into_iter().map(line).collect())
    }
}

fn title(job: &Job) -> String {
    let Job { case, rival, round } = job;
    format!("round {round}: {} {} {}", case.workload.name, case.param, rival.name)
}

/// It is drawn between measurements only: a thread that draws would disturb them.
fn progress_bar(jobs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{wide_bar} {pos}/{len}, {elapsed} so far, about {eta} to go\n{wide_msg}",
    );
    ProgressBar::new(jobs).with_style(style.expect("the template is valid"))
}
