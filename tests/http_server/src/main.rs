//! An HTTP server that keeps idle, header and request limits with one timer, judged by real clients.
//!
//! ```text
//! cargo run --release --example http_server
//! ```
//!
//! `examples/http_server` has the two files to copy, `server` and `client`, and what the server answers. The
//! judges are here, in `judge`. `cost` measures the processor time of a request.

#[path = "../../../examples/http_server/app.rs"]
mod app;
mod cli;
#[path = "../../../examples/http_server/client.rs"]
mod client;
mod cost;
mod judge;
mod progress;
#[path = "../../../examples/http_server/server.rs"]
mod server;
#[path = "../../../examples/terminal/mod.rs"]
mod terminal;

use cli::{Cli, Command};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli: Cli = terminal::parse();
    let is_good = match &cli.command {
        None => judge(&cli),
        Some(Command::Cost(args)) => cost(&args.rounds()),
    };
    match is_good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            terminal::report(error);
            ExitCode::FAILURE
        }
    }
}

fn judge(cli: &Cli) -> Result<bool, Box<dyn Error>> {
    let table = judge::run(&cli.judge.settings())?;
    // `println!` would panic where the disk is full.
    writeln!(std::io::stdout(), "{table}")?;
    Ok(table.is_good())
}

fn cost(rounds: &cost::Rounds) -> Result<bool, Box<dyn Error>> {
    writeln!(std::io::stdout(), "{}", cost::measure(rounds)?)?;
    Ok(true)
}
