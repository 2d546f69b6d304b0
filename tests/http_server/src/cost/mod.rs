//! The processor time of a request with each limit, with all, and with none.
//!
//! - `partial`: the server with one limit or none
//! - `keep_alive`: a client
//! - `cpu`: processor time of threads
//! - `table`: the result
//!
//! One server for each runs in this process, with a thread of its own and one keep-alive connection.
//! Short rounds alternate between a server with a limit and the one without: A B B A. So a machine that
//! becomes slower meanwhile affects both. The handler waits once, so that the deadline of the request
//! is armed.

mod cpu;
mod keep_alive;
mod partial;
mod table;

use crate::app::app;
use crate::progress;
use crate::server::{self, Limits};
use clap::ValueEnum;
use keep_alive::KeepAlive;
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime;
use wheelwork::{BuildError, HashedWheelTimer};

pub(crate) use table::Costs;

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
    pub(crate) tick: Duration,
    pub(crate) only: Option<Which>,
}

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// No limits
    None,
    /// The idle limit
    Idle,
    /// The header limit
    Header,
    /// The header limit, with a timer that does nothing: what hyper itself does for it
    HyperAlone,
    /// The request limit
    Request,
    /// Idle, header and request limits
    All,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CostError {
    #[error("cannot run the servers: {0}")]
    Io(#[from] io::Error),
    #[error("cannot start the timer: {0}")]
    Timer(#[from] BuildError),
    #[error("cannot read the processor time: {0}")]
    Usage(#[from] nix::Error),
    #[error("cannot ask the timer's thread for its processor time: {0}")]
    Worker(#[from] wheelwork::RefusalReason),
}

pub(crate) fn measure(rounds: &Rounds) -> Result<Costs, CostError> {
    let timer = HashedWheelTimer::builder().tick_duration(rounds.tick).build()?;
    if let Some(only) = rounds.only {
        return alone(rounds, &timer, only);
    }
    let mut costs = Costs::new(*rounds);
    let mut none = Server::start(Which::None, &timer)?;
    let mut limited = Vec::new();
    for which in Which::value_variants().iter().filter(|&&which| which != Which::None) {
        limited.push(Server::start(*which, &timer)?);
    }
    let bar = progress::bar(rounds.rounds, "rounds");
    let worker = cpu::Worker::begin(&timer)?;
    let begin = Instant::now();
    for round in 0..=rounds.rounds {
        bar.set_position(round);
        for server in &mut limited {
            let [first, second] = [none.cost(rounds)?, server.cost(rounds)?];
            let [third, fourth] = [server.cost(rounds)?, none.cost(rounds)?];
            // The first round warms up.
            if round > 0 {
                costs.add(server.which, (second + third) / 2.0, (first + fourth) / 2.0);
            }
        }
    }
    costs.worker = worker.used()? / begin.elapsed().as_secs_f64();
    bar.finish_and_clear();
    Ok(costs)
}

/// Measures one server alone, for a profiler.
fn alone(rounds: &Rounds, timer: &HashedWheelTimer, only: Which) -> Result<Costs, CostError> {
    let mut costs = Costs::new(*rounds);
    let mut server = Server::start(only, timer)?;
    for _ in 0..rounds.rounds {
        let cost = server.cost(rounds)?;
        costs.add(only, cost, cost);
    }
    Ok(costs)
}

/// A server, and a client that is connected to it.
struct Server {
    which: Which,
    client: KeepAlive,
}

impl Server {
    /// Runs a server on a thread of its own, on a runtime without a timer.
    fn start(which: Which, timer: &HashedWheelTimer) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let timer = timer.clone();
        let serve = async move {
            // It is never told to end, and ends with the process.
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            if which == Which::All {
                let until = std::future::pending();
                let _ = server::serve(listener, app(), timer, LIMITS, until).await;
            } else {
                partial::serve(listener, app(), timer, which).await;
            }
        };
        thread::Builder::new().spawn(move || runtime.block_on(serve))?;
        Ok(Self { which, client: KeepAlive::connect(address)? })
    }

    /// Microseconds of processor time for each request of a round, without those of this thread.
    fn cost(&mut self, rounds: &Rounds) -> Result<f64, CostError> {
        let before = cpu::of_others()?;
        for _ in 0..rounds.requests {
            self.client.request()?;
        }
        Ok((cpu::of_others()? - before) / rounds.requests as f64)
    }
}
