//! The command line.

use crate::server::Kind;
use clap::{Parser, ValueEnum, value_parser};
use std::net::SocketAddr;
use std::time::Duration;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A TCP echo server that closes idle connections, put to the test by thousands of real clients.
///
/// The server watches each connection with the idle manager of one wheel timer. The clients, in a second
/// process, talk, pause and go silent by a schedule that follows from the seed, and judge by their
/// own clock whether each connection was closed when it should be. The exit code is 0 if every one
/// was, and 1 if an active connection was closed or an idle one was not.
#[derive(Clone, Debug, Parser)]
#[command(name = "idle_connections", args_override_self = true)]
pub(crate) struct Args {
    /// How the server is built.
    #[arg(long, value_name = "KIND", default_value = "mio")]
    pub(crate) server: Kind,

    /// How many connections to open; fewer if the open-file limit or the ports do not suffice.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=60_000))]
    pub(crate) connections: u64,

    /// The server closes a connection from which nothing has come for so long. A shorter time makes
    /// the clients talk more often: no pause but the last one reaches it.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = value_parser!(u64).range(100..=DAY_MS))]
    idle_ms: u64,

    /// The longest that a client talks before it goes silent for good; the shortest is a quarter.
    #[arg(long, value_name = "MS", default_value_t = 8000, value_parser = value_parser!(u64).range(0..=DAY_MS))]
    talk_ms: u64,

    /// The tick of the timer: how much later than its idle time a connection may be closed.
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = value_parser!(u64).range(1..=10_000))]
    tick_ms: u64,

    /// How much later still a close may come, for want of processor time, before it counts as
    /// missed.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = value_parser!(u64).range(100..=DAY_MS))]
    grace_ms: u64,

    /// What the clients do, and when, follows from this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Breaks the server, to see that the judge notices.
    #[arg(long, hide = true)]
    sabotage: Option<Sabotage>,

    /// Makes this process the clients of the server at that address.
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub(crate) clients_of: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sabotage {
    Early,
    Never,
}

impl Args {
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    /// The idle time that the server keeps; another one only if it is sabotaged.
    pub(crate) fn server_idle(&self) -> Duration {
        match self.sabotage {
            None => self.idle(),
            // Just below the shortest pause.
            Some(Sabotage::Early) => self.idle() / 5,
            Some(Sabotage::Never) => Duration::from_millis(DAY_MS) * 2,
        }
    }

    pub(crate) fn talk(&self) -> Duration {
        Duration::from_millis(self.talk_ms)
    }

    pub(crate) fn tick(&self) -> Duration {
        Duration::from_millis(self.tick_ms)
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// How long after its last write a connection that is still open counts as forgotten.
    pub(crate) fn verdict_after(&self) -> Duration {
        self.idle() + self.tick() + self.grace()
    }

    /// The arguments for the process that is to be the clients.
    pub(crate) fn for_clients_of(&self, server: SocketAddr) -> Vec<String> {
        vec![
            format!("--connections={}", self.connections),
            format!("--idle-ms={}", self.idle_ms),
            format!("--talk-ms={}", self.talk_ms),
            format!("--tick-ms={}", self.tick_ms),
            format!("--grace-ms={}", self.grace_ms),
            format!("--seed={}", self.seed),
            format!("--clients-of={server}"),
        ]
    }
}
