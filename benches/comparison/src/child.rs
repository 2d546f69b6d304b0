//! One measurement in a process of its own: both sides of it.

use crate::args::Measure as Args;
use crate::case::Case;
use crate::failure::Failure;
use crate::plan::{self, Job};
use crate::rivals;
use crate::sizes::Sizes;
use crate::wait::wait;
use crate::workloads::{self, Figure, Measure};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const FIGURES: &str = "figures.csv";
const MESSAGES: &str = "messages.txt";
/// The allocator keeps what is freed, as the heap of Netty's virtual machine does: otherwise most of
/// scheduling a million timeouts again and again is page faults, for every rival in Rust.
const KEEP_MEMORY: &str = "glibc.malloc.trim_threshold=4294967296:\
    glibc.malloc.mmap_threshold=4294967296:glibc.malloc.top_pad=67108864";

/// In the parent: the figures that the program found as a child.
pub fn measure(
    program: &Path,
    job: &Job,
    quick: bool,
) -> io::Result<Result<Vec<(String, f64)>, Failure>> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.arg("measure").args([job.case.workload(), &job.case.param(), job.rival.name]);
    command.arg(folder.path());
    if quick {
        command.arg("--quick");
    }
    if !plan::counts_only(job.case) {
        command.env("GLIBC_TUNABLES", KEEP_MEMORY);
    }
    supervise(command, folder.path(), Sizes::of(quick).limit)
}

/// The outer error is the machine's, the inner one the rival's.
fn supervise(
    mut command: Command,
    folder: &Path,
    limit: Duration,
) -> io::Result<Result<Vec<(String, f64)>, Failure>> {
    // Criterion talks on the standard output.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(folder.join(MESSAGES))?);
    let Some(status) = wait(command.spawn()?, limit)? else {
        return Ok(Err(Failure::TimedOut(limit)));
    };
    if !status.success() {
        return Ok(Err(crashed(status, folder)?));
    }
    let figures = csv::Reader::from_path(folder.join(FIGURES))?;
    Ok(Ok(figures.into_deserialize().collect::<Result<_, _>>()?))
}

fn crashed(status: ExitStatus, folder: &Path) -> io::Result<Failure> {
    let messages = fs::read_to_string(folder.join(MESSAGES))?;
    Ok(Failure::crashed(status, messages.trim().lines().last()))
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no workload {workload} with {param}")]
    UnknownCase { workload: String, param: String },
    #[error("no rival {0} that runs in this process")]
    UnknownRival(String),
    #[error(transparent)]
    Workload(#[from] workloads::Error),
    #[error("cannot write the figures: {0}")]
    Write(#[from] csv::Error),
}

/// In the child: measures, and leaves the figures in the folder.
pub fn run(args: Args, cores: u64) -> Result<(), Error> {
    let sizes = Sizes::of(args.quick);
    let case = Case::all(&sizes, cores)
        .into_iter()
        .find(|case| case.workload() == args.workload && case.param() == args.param);
    let Some(case) = case else {
        return Err(Error::UnknownCase { workload: args.workload, param: args.param });
    };
    let measure = Measure { case, sizes, folder: args.folder.clone() };
    let figures = if case == Case::Floor {
        workloads::floor(&measure)?
    } else {
        rivals::visit(&args.rival, measure).ok_or(Error::UnknownRival(args.rival))??
    };
    write(&args.folder, &figures)
}

fn write(folder: &Path, figures: &[Figure]) -> Result<(), Error> {
    let mut file = csv::Writer::from_path(folder.join(FIGURES))?;
    file.write_record(["metric", "value"])?;
    figures.iter().try_for_each(|figure| file.serialize(figure))?;
    Ok(file.flush().map_err(csv::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervised(script: &str, limit: Duration) -> Result<Vec<(String, f64)>, Failure> {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("p50_us", 1.25), ("early", 0.0)]).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        supervise(command, folder.path(), limit).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn figures_come_back() {
        let figures = supervised("echo noise", LONG).unwrap();
        assert_eq!(figures, [("p50_us".to_owned(), 1.25), ("early".to_owned(), 0.0)]);
    }

    #[test]
    fn a_crash_is_told_with_its_last_words() {
        let failure = supervised("echo first >&2; echo last >&2; exit 3", LONG).unwrap_err();
        assert_eq!(failure.figure(), ("crashed", 3.0));
        assert_eq!(failure.to_string(), "crashed (3): last");
        let killed = supervised("kill -KILL $$", LONG).unwrap_err();
        assert_eq!(killed.figure(), ("crashed", -9.0));
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let failure = supervised("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert_eq!(failure.figure(), ("timed_out", 0.05));
    }
}
