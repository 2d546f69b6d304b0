//! Puts the servers of `examples/idle_connections` to the test: starts the one that `--server` chooses,
//! starts ten thousand real clients in a second process, and reports.
//!
//! ```text
//! cargo run --release --example idle_connections
//! ```
//!
//! The clients talk and fall silent, and judge whether the server closes each of them at its time.
//!
//! | server process | | client process |
//! |---|---|---|
//! | `server`: one of the servers, on a thread | TCP, loopback | `clients`: they talk, and judge the server |
//! | `client_process`: follows the clients; `live` shows it | pipe | the outcome, as lines |
//! | `summary`: the table and the verdict | | |
//!
//! The clients have a process of their own, so that they have files of their own. `cli` has the options.
//! `--sabotage early` and `--sabotage never` break the server, to see that the judge notices: such a run
//! must fail.

mod cli;
mod client_process;
mod clients;
mod live;
mod server;
#[path = "../../../examples/idle_connections/mod.rs"]
mod servers;
mod summary;

use cli::Args;
use client_process::ClientProcess;
use clients::limits;
use kit::{counted, terminal};
use server::Server;
use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use summary::Summary;

fn main() -> ExitCode {
    let args: Args = terminal::parse();
    let result = match args.clients_of {
        Some(server) => report_clients(&args, server),
        None => run(args),
    };
    result.unwrap_or_else(|error: Box<dyn Error>| {
        terminal::report(error);
        ExitCode::FAILURE
    })
}

/// Runs the clients, and prints what they have seen, one line at a time. Fails if nobody reads that any
/// more.
fn report_clients(args: &Args, server: SocketAddr) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    clients::run(args.plan(), server, |outcome| writeln!(out, "{}", outcome.line()))?;
    Ok(ExitCode::SUCCESS)
}

fn run(mut args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let open_file_limit = limits::raise_open_files()?;
    let asked = args.connections;
    args.connections = asked.min(limits::connections_within(open_file_limit));
    if args.connections == 0 {
        let reserve = limits::RESERVE;
        return Err(format!(
            "an open-file limit of {open_file_limit}: expected more than {reserve}"
        )
        .into());
    }

    let cpu_before = limits::cpu_time()?;
    let server = Server::start(args.server, args.server_idle(), args.tick())?;
    let expected = expected(&args);
    say(introduction(&args, expected))?;
    let begun = Instant::now();
    let clients = ClientProcess::start(&args, server.address)?;
    let outcome = clients.watch(&server, expected, limit(&args));
    let elapsed = begun.elapsed();
    // If the server has failed, its error says more than that of the clients.
    let report = server.report()?;

    let summary = Summary {
        outcome: outcome?,
        report,
        asked,
        open_file_limit,
        elapsed,
        server_cpu: limits::cpu_time()? - cpu_before,
        peak_memory: limits::peak_memory()?,
    };
    say(&summary)?;
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn introduction(args: &Args, expected: Duration) -> String {
    format!(
        "{}; a connection silent for {:?} must be closed. Takes about {:.0} s.",
        counted(args.connections, "client"),
        args.idle(),
        expected.as_secs_f64(),
    )
}

/// `println!` would panic where the disk is full.
fn say(text: impl Display) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{text}").and_then(|()| out.flush());
    said.map_err(|error| format!("cannot write the report: {error}"))
}

/// How long it takes if nothing is late: the last connection opens, talks and is closed.
fn expected(args: &Args) -> Duration {
    let opening = args.connections as f64 / clients::OPENINGS_PER_SECOND as f64;
    Duration::from_secs_f64(opening) + args.talk() + args.idle() + args.tick()
}

/// After this long something hangs, however slow the machine.
fn limit(args: &Args) -> Duration {
    (expected(args) + args.grace()) * 3 + Duration::from_secs(60)
}
