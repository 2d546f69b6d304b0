//! The processor time of a request with all limits, and without any.
//!
//! Two servers run in this process, each with one thread, and one keep-alive connection to each. Rounds
//! of requests alternate between them. The handler waits once, so that the deadline of the request is
//! armed.

mod bare;
mod keep_alive;

use crate::app::app;
use crate::progress;
use crate::server::{self, Limits};
use crate::terminal::grouped;
use clap::ValueEnum;
use keep_alive::KeepAlive;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime;
use wheelwork::{BuildError, HashedWheelTimer};

/// As a server in production may have them.
const LIMITS: Limits = Limits {
    idle: Duration::from_secs(60),
    header: Duration::from_secs(30),
    request: Duration::from_secs(10),
    shutdown: Duration::from_secs(10),
};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) rounds: u64,
    pub(crate) requests: u64,
    pub(crate) only: Option<Which>,
}

/// One of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// With idle, header and request limits
    With,
    /// Without limits and without a timer
    Without,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CostError {
    #[error("cannot run the servers: {0}")]
    Io(#[from] io::Error),
    #[error("cannot start the timer: {0}")]
    Timer(#[from] BuildError),
    #[error("cannot read the processor time: {0}")]
    Usage(#[from] nix::Error),
}

/// Processor time of each request in each round, in microseconds.
pub(crate) struct Costs {
    rounds: Rounds,
    with: Vec<f64>,
    without: Vec<f64>,
}

pub(crate) fn measure(rounds: &Rounds) -> Result<Costs, CostError> {
    let timer = HashedWheelTimer::new()?;
    let with = start(move |listener| async move {
        // It is never told to end.
        let _ = server::serve(listener, app(), timer, LIMITS, std::future::pending()).await;
    })?;
    let without = start(|listener| bare::serve(listener, app()))?;
    let mut with = (Which::With, KeepAlive::connect(with)?, Vec::new());
    let mut without = (Which::Without, KeepAlive::connect(without)?, Vec::new());
    let bar = progress::bar(rounds.rounds, "rounds");
    for round in 0..=rounds.rounds {
        bar.set_position(round);
        let mut pair = [&mut with, &mut without];
        if round % 2 == 1 {
            pair.reverse();
        }
        for (which, client, costs) in pair {
            if rounds.only.is_none_or(|only| only == *which) {
                let cost = cost_of(client, rounds.requests)?;
                // The first round warms up.
                costs.extend((round > 0).then_some(cost));
            }
        }
    }
    bar.finish_and_clear();
    Ok(Costs { rounds: *rounds, with: with.2, without: without.2 })
}

/// Runs a server on a thread of its own, on a runtime without a timer.
fn start<F: Future<Output = ()>>(
    serve: impl FnOnce(TcpListener) -> F + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    thread::Builder::new().spawn(move || runtime.block_on(serve(listener)))?;
    Ok(address)
}

/// Microseconds of processor time for each of `requests`, without those of this thread.
fn cost_of(client: &mut KeepAlive, requests: u64) -> Result<f64, CostError> {
    let before = others()?;
    for _ in 0..requests {
        client.request()?;
    }
    Ok((others()? - before) / requests as f64)
}

/// Microseconds of processor time that the other threads of the process have used.
fn others() -> Result<f64, CostError> {
    Ok(used(UsageWho::RUSAGE_SELF)? - used(UsageWho::RUSAGE_THREAD)?)
}

fn used(who: UsageWho) -> Result<f64, CostError> {
    let usage = getrusage(who)?;
    let micros = |time: TimeVal| time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64;
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounds { rounds, requests, .. } = self.rounds;
        let (rounds, requests) = (grouped(rounds), grouped(requests));
        writeln!(f, "Processor time of a request, server and timer, without the client.")?;
        writeln!(f, "Medians of {rounds} rounds with {requests} requests each; quartiles.\n")?;
        writeln!(f, "| limits                   |       µs |     25 % |     75 % |")?;
        writeln!(f, "|--------------------------|---------:|---------:|---------:|")?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, values: &[f64]| {
            let Some([low, median, high]) = quartiles(values) else { return Ok(()) };
            writeln!(f, "| {name:<24} | {median:>8.3} | {low:>8.3} | {high:>8.3} |")
        };
        row(f, "none", &self.without)?;
        row(f, "idle, header and request", &self.with)?;
        let pairs = self.with.iter().zip(&self.without);
        let ratios: Vec<_> = pairs.map(|(with, without)| with / without).collect();
        row(f, "ratio of each pair", &ratios)
    }
}

fn quartiles(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([1, 2, 3].map(|quarter| sorted[last * quarter / 4]))
}
