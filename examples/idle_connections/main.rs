//! A TCP echo server that closes idle connections, judged by ten thousand real clients.
//!
//! ```text
//! cargo run --release --example idle_connections
//! ```
//!
//! | server process | | client process |
//! |---|---|---|
//! | `server`: an event loop, threads or tokio tasks | TCP, loopback | `client`: one event loop, a `talker` for each connection |
//! | the idle manager says who has been silent for its time | | `script`: who says what and when, from the seed |
//! | `watch`, `live`, `summary`: what the terminal shows | pipe, `record` | `judge`, `tally`: was it right to close? |
//!
//! The pattern to take home is in `server`: a byte that arrives touches the connection's watch, and
//! an idle event looks at the socket once more before it closes. So no unread byte is ever thrown
//! away. `--server` chooses among three kinds of server.
//!
//! `--sabotage early` and `--sabotage never` break the server, to see that the judge notices: such
//! a run must fail.

mod alarm;
mod cli;
mod client;
mod echo;
mod judge;
mod limits;
mod live;
mod record;
mod script;
mod server;
mod slots;
mod summary;
mod talker;
mod tally;
mod watch;

use clap::Parser;
use cli::Args;
use live::LiveLine;
use server::Server;
use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use summary::{Summary, grouped};
use watch::ClientProcess;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.clients_of {
        Some(server) => client::run(&args, server, &mut std::io::stdout().lock())
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
        None => run(args),
    };
    result.unwrap_or_else(|error: Box<dyn Error>| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
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
    let server = server::start(args.server, args.server_idle(), args.tick())?;
    let expected = expected(&args);
    say(introduction(&args, &*server, expected))?;

    let begun = Instant::now();
    let live = LiveLine::new(expected);
    let clients = ClientProcess::start(&args, &*server)?;
    let outcome = clients.watch(&*server, &live, limit(&args));
    live.clear();
    let elapsed = begun.elapsed();
    // What the server died of says more than that the clients were left alone.
    let report = server.stop()?;
    let outcome = outcome?;
    let server_cpu = limits::cpu_time()? - cpu_before;
    let peak_memory = limits::peak_memory()?;

    let summary =
        Summary { outcome, report, asked, open_file_limit, elapsed, server_cpu, peak_memory };
    say(&summary)?;
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn introduction(args: &Args, server: &dyn Server, expected: Duration) -> String {
    format!(
        "{} clients of an echo server at {}, which closes what is idle for {:?}; about {:.0} s",
        grouped(args.connections),
        server.address(),
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
    let opening = args.connections as f64 / client::OPENINGS_PER_SECOND as f64;
    Duration::from_secs_f64(opening) + args.talk() + args.idle() + args.tick()
}

/// After this long something hangs, however slow the machine.
fn limit(args: &Args) -> Duration {
    (expected(args) + args.grace()) * 3 + Duration::from_secs(60)
}
