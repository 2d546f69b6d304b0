//! Wheelwork beside other timers: one command that measures all of them on one machine.
//!
//! The parent plans, starts a child process for each measurement, and writes the results; what is
//! measured, and how, is in `README.md`. Imports point down this list:
//!
//! | file | what |
//! |---|---|
//! | `args.rs`, `run.rs` | the command |
//! | `equipment.rs` | what some rivals need beside this program |
//! | `child.rs` | a measurement in a process of its own |
//! | `workloads/` | what is measured |
//! | `crew.rs`, `criterion_run.rs` | producer threads; criterion |
//! | `rivals/` | a timer each |
//! | `report/` | table and plots |
//! | `plan.rs` | who is put through what, and what is left out |
//! | `case.rs`, `floods.rs`, `sizes.rs`, `delays.rs`, `task.rs` | the vocabulary |
//! | `measurement.rs`, `failure.rs`, `statistics.rs` | figures |
//! | `process.rs`, `machine.rs`, `wait.rs` | what the kernel knows; a child's end |
#![forbid(unsafe_code)]

mod args;
mod case;
mod child;
mod crew;
mod criterion_run;
mod delays;
mod equipment;
mod failure;
mod floods;
mod machine;
mod measurement;
mod plan;
mod process;
mod report;
mod rivals;
mod run;
mod sizes;
mod statistics;
mod task;
mod wait;
mod workloads;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;
use std::thread;

fn main() -> ExitCode {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let cli = Cli::parse();
    let outcome = match cli.command {
        // The timers' threads end with the process, whatever they hold.
        Some(Command::Measure(args)) => child::run(args, cores).map_err(|e| e.to_string()),
        None => run::run(&cli.run, cores).map_err(|e| e.to_string()).map(|table| {
            println!("{table}");
            println!("Written to {}", cli.run.folder().display());
        }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
