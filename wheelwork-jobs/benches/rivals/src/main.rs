//! Measures delayed jobs of wheelwork-jobs beside those of other crates, on one PostgreSQL server.
//!
//! - `args`: the command line
//! - `server`: the databases
//! - `rivals`: the crates
//! - `recorder`: what has run, and how late
//! - `lateness`, `throughput`, `fire`, `idle`, `takeover`: what is measured
//! - `report`: the tables

mod args;
mod fire;
mod idle;
mod lateness;
#[allow(dead_code)] // tests use the rest
#[path = "../../../tests/common/postgres.rs"]
mod postgres;
mod recorder;
mod report;
mod rivals;
mod server;
mod takeover;
mod throughput;

use args::{Args, Case};
use clap::Parser;
use std::process::ExitCode;

/// Whatever a database or a crate says has gone wrong.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), Failed> {
    if let Some(url) = &args.node {
        return takeover::node(url).await;
    }
    let server = server::Server::new(args.postgres.clone())?;
    println!("{}\n", server.describe().await?);
    for case in args.cases() {
        match case {
            Case::Lateness => report::lateness(&lateness::measure(&server, &args).await?, &args),
            Case::Throughput => {
                report::throughput(&throughput::measure(&server, &args).await?, &args)
            }
            Case::Fire => report::fire(&fire::measure(&server, &args).await?, &args),
            Case::Idle => report::idle(&idle::measure(&server, &args).await?, &args),
            Case::Takeover => report::takeover(&takeover::measure(&server).await?),
        }
    }
    Ok(())
}
