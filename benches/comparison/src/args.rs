//! The command line.

use crate::case::WORKLOADS;
use crate::rivals;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Measures wheelwork beside other timers on this machine, and writes a table and plots.
///
/// Leave the machine alone meanwhile. Without options it takes one to two hours.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: Run,
}

#[derive(Debug, Args)]
pub struct Run {
    /// How often each measurement is repeated
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Only these workloads
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(WORKLOADS))]
    pub only: Vec<String>,
    /// Only these rivals
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(rival_names()))]
    pub rivals: Vec<String>,
    /// Small sizes and one round, to see that everything works; the figures mean nothing
    #[arg(long)]
    pub quick: bool,
    /// The folder to write to [default: benches/results, or its folder `partial` if anything is
    /// left out]
    #[arg(long)]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// One measurement, in a process of its own: what the command starts for each
    #[command(hide = true)]
    Measure(Measure),
}

#[derive(Debug, Args)]
pub struct Measure {
    pub workload: String,
    pub param: String,
    pub rival: String,
    /// Where the figures are written, and whatever else falls off
    pub folder: PathBuf,
    #[arg(long)]
    pub quick: bool,
}

fn rival_names() -> Vec<&'static str> {
    rivals::all().map(|facts| facts.name).collect()
}

impl Run {
    /// Whether something that belongs to the comparison is left out.
    pub fn is_partial(&self) -> bool {
        self.quick || !self.only.is_empty() || !self.rivals.is_empty()
    }

    pub fn folder(&self) -> PathBuf {
        let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../results");
        match &self.out {
            Some(folder) => folder.clone(),
            None if self.is_partial() => PathBuf::from(results).join("partial"),
            None => PathBuf::from(results),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_narrowed_run_does_not_replace_the_full_results() {
        let run = |args: &[&str]| Cli::parse_from(args).run;
        assert!(run(&["comparison"]).folder().ends_with("results"));
        assert!(run(&["comparison", "--quick"]).folder().ends_with("results/partial"));
        assert!(run(&["comparison", "--rivals", "netty-best"]).folder().ends_with("partial"));
        assert!(run(&["comparison", "--quick", "--out", "x"]).folder().ends_with("x"));
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(Cli::try_parse_from(["comparison", "--only", "sleeping"]).is_err());
        assert!(Cli::try_parse_from(["comparison", "--rivals", "sundial"]).is_err());
        let two = Cli::try_parse_from(["comparison", "--only", "growth,backlog"]).unwrap();
        assert_eq!(two.run.only, ["growth", "backlog"]);
    }
}
