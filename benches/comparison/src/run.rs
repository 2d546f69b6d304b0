//! The whole comparison: job after job, and the results.

use crate::child;
use crate::equipment::Equipment;
use crate::kernel;
use crate::plan::{self, Job};
use crate::report::{self, Measurement, Results};
use crate::sizes::{FULL, QUICK};
use crate::{Run, fit};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io;
use std::path::Path;
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
pub fn run(args: &Run, folder: &Path, page: &Path) -> Result<Vec<String>, Error> {
    let (sizes, rounds) = if args.quick { (&QUICK, 1) } else { (&FULL, args.rounds) };
    let cores = thread::available_parallelism()?.get() as u64;
    let mut jobs = plan::jobs(sizes, cores, rounds, &args.only, &args.rivals);
    if jobs.is_empty() {
        return Err(Error::NothingToRun);
    }
    fs::create_dir_all(folder)?;
    let equipment = &Equipment::find(&jobs, args.quick);
    let path = folder.join("measurements.csv");
    let mut csv = if args.resume {
        let measured = Results::read(&path)?;
        jobs.retain(|job| !measured.have(job));
        let file = fs::File::options().append(true).open(&path)?;
        csv::WriterBuilder::new().has_headers(false).from_writer(file)
    } else {
        let machine = kernel::machine(equipment.netty_version(), rounds);
        fs::write(folder.join("machine.md"), machine)?;
        csv::Writer::from_path(&path)?
    };
    let progress = &progress_bar(jobs.len() as u64);
    let case = |job: &Job| (&*job.workload.name, job.param.clone(), job.round);
    for turn in jobs.chunk_by(|a, b| case(a) == case(b)) {
        // The figures of a quick run mean nothing.
        let side_by_side =
            if args.quick { 4 } else { 1 + usize::from(turn[0].workload.counts_only) };
        for jobs in turn.chunks(side_by_side) {
            progress.set_message(title(&jobs[0]));
            let lines = thread::scope(|scope| {
                let start = |job| scope.spawn(move || measure(job, equipment, progress));
                let running: Vec<_> = jobs.iter().map(start).collect();
                running.into_iter().flat_map(|job| job.join().expect("it does not panic")).collect()
            });
            write(&mut csv, lines)?;
            progress.inc(jobs.len() as u64);
        }
    }
    progress.finish_and_clear();
    Ok(report::write(folder, page)?)
}

/// Each line is flushed: an interrupted run loses nothing.
fn write(csv: &mut csv::Writer<fs::File>, lines: Vec<Measurement>) -> Result<(), csv::Error> {
    lines.into_iter().try_for_each(|line| csv.serialize(line))?;
    Ok(csv.flush()?)
}

/// A failure of a rival is a figure of its own kind, and a line above the progress bar.
fn measure(job: &Job, equipment: &Equipment, progress: &ProgressBar) -> Vec<Measurement> {
    let skipped = plan::skip_reason(&job.workload.name, &job.param, job.rival).is_some();
    let figures = match equipment.command(job).filter(|_| !skipped) {
        Some(mut command) => {
            child::measure(&mut command, job.sizes.limit_s).unwrap_or_else(|failure| {
                progress.println(fit(&format!("{}: {}", title(job), failure.message)));
                vec![(failure.metric.to_owned(), failure.value)]
            })
        }
        // Once is enough to say so.
        None if job.round == 1 => vec![("skipped".to_owned(), 0.0)],
        None => Vec::new(),
    };
    let line = |(metric, value)| Measurement {
        workload: job.workload.name.clone(),
        param: job.param.clone(),
        rival: job.rival.name.clone(),
        round: job.round,
        metric,
        value,
    };
    figures.into_iter().map(line).collect()
}

fn title(job: &Job) -> String {
    format!("round {}: {} {} {}", job.round, job.workload.name, job.param, job.rival.name)
}

/// It is drawn between measurements only: a thread that draws would disturb them.
fn progress_bar(jobs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{wide_bar} {pos}/{len}, {elapsed} so far, about {eta} to go\n{wide_msg}",
    );
    ProgressBar::new(jobs).with_style(style.expect("the template is valid"))
}
