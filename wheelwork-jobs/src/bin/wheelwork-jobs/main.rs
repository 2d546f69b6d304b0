//! Shows and changes the jobs of a store.
//!
//! - `args`: the command line
//! - `open`: the store that it names
//! - `run`: the commands
//! - `table`: jobs and counts for people
//! - `json`: the same for programs
//! - `serve`: a web page

mod args;
mod json;
mod open;
mod run;
mod serve;
mod table;

use args::Args;
use clap::Parser;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match run::run(Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", table::printable(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}
