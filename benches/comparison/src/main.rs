//! Wheelwork beside other timers: one command that measures all of them on one machine.
//!
//! The parent plans, starts a child process for each measurement, and writes the results; what is
//! measured, and how, is in `README.md`. Imports point down this list:
//!
//! | file | what |
//! |---|---|
//! | `main.rs`, `run.rs`, `scale.rs` | the commands |
//! | `equipment.rs`, `child.rs` | a measurement in a process of its own |
//! | `workloads/` | what is measured |
//! | `report/` | table and plots |
//! | `plan.rs` | who is put through what, and what is left out |
//! | `catalogue/` | the tables of workloads and of the numbers to reach |
//! | `rivals/` | a timer each |
//! | `param.rs`, `sizes.rs`, `delays.rs`, `task.rs`, `kernel.rs` | the vocabulary |
#![forbid(unsafe_code)]

mod catalogue;
mod child;
mod delays;
mod equipment;
mod kernel;
mod param;
mod plan;
mod report;
mod rivals;
mod run;
mod scale;
mod sizes;
mod task;
mod workloads;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use plan::Job;
use sizes::{FULL, QUICK};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use textwrap::{Options, WordSplitter};

/// Measures wheelwork beside other timers on this machine, and writes a table and plots.
///
/// Leave the machine alone meanwhile. Without options it takes two to three hours.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
struct Run {
    /// How often each measurement is repeated
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only these workloads
    #[arg(long, value_delimiter = ',', value_parser = workload_names())]
    only: Vec<String>,
    /// Only these rivals
    #[arg(long, value_delimiter = ',', value_parser = rival_names())]
    rivals: Vec<String>,
    /// Small sizes and one round, to see that everything works; the figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Go on with a run that was interrupted, on the same machine: what it has measured stays
    #[arg(long)]
    resume: bool,
    /// Measure nothing: write the table and the plots again, from benches/results/measurements.csv
    #[arg(long, conflicts_with_all = ["rounds", "only", "rivals", "quick", "resume"])]
    report_only: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Scale(scale::Scale),
    /// One measurement, in a process of its own: what the command starts for each
    #[command(hide = true)]
    Measure {
        #[arg(value_parser = workload_names())]
        workload: String,
        param: String,
        #[arg(value_parser = rival_names())]
        rival: String,
        #[arg(long)]
        quick: bool,
    },
}

fn workload_names() -> PossibleValuesParser {
    PossibleValuesParser::new(catalogue::WORKLOADS.iter().map(|workload| &*workload.name))
}

fn rival_names() -> PossibleValuesParser {
    PossibleValuesParser::new(rivals::all().map(|facts| &*facts.name))
}

impl Run {
    /// A run that leaves something out does not replace the full results.
    fn folder(&self) -> PathBuf {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("results");
        if self.is_partial() { results.join("partial") } else { results }
    }

    /// The page of figures.
    fn page(&self) -> PathBuf {
        let page = if self.is_partial() { "speed.md" } else { "../../docs/speed.md" };
        self.folder().join(page)
    }

    fn is_partial(&self) -> bool {
        self.quick || !self.only.is_empty() || !self.rivals.is_empty()
    }

    fn run(&self) -> Result<(), run::Error> {
        let (folder, page) = (self.folder(), self.page());
        let verdicts = if self.report_only {
            report::write(&folder, &page)?
        } else {
            run::run(self, &folder, &page)?
        };
        verdicts.iter().for_each(|verdict| println!("{}", fit(verdict)));
        println!("\nWritten to {}", folder.display());
        Ok(())
    }
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| match error.use_stderr() {
        false => error.exit(),
        true => {
            // It lists all possible values in one line.
            say(error.to_string().trim_end());
            std::process::exit(error.exit_code());
        }
    });
    let outcome = match cli.command {
        Some(Command::Scale(args)) => {
            scale::run(&args);
            Ok(())
        }
        Some(Command::Measure { workload, param, rival, quick }) => {
            measure(&workload, param, &rival, quick).map_err(|error| error.to_string())
        }
        None => cli.run.run().map_err(|error| error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

/// As lines that fit a terminal of 80 columns. The hyphen of a name does not end a line.
fn fit(text: &str) -> String {
    let options = Options::new(80).subsequent_indent("    ");
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation))
}

fn say(text: &str) {
    eprintln!("{}", fit(text));
}

/// Prints a line `metric value` for each figure. The timers' threads end with the process, whatever
/// they hold.
fn measure(
    workload: &str,
    param: String,
    rival: &str,
    quick: bool,
) -> Result<(), workloads::Error> {
    let workload = catalogue::workload(workload).expect("the arguments were checked");
    let rival = rivals::facts(rival).expect("the arguments were checked");
    let sizes = if quick { &QUICK } else { &FULL };
    for (metric, value) in workloads::measure(&Job { workload, param, rival, round: 1, sizes })? {
        println!("{metric} {value}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrowed_run_does_not_replace_the_full_results() {
        let run = |args: &[&str]| Cli::parse_from(args).run.folder();
        assert!(run(&["comparison"]).ends_with("results"));
        assert!(run(&["comparison", "--quick"]).ends_with("results/partial"));
        assert!(run(&["comparison", "--rivals", "netty-best"]).ends_with("partial"));
    }
}
