//! The command line.

use super::clients::Plan;
use super::server::Kind;
use clap::{Parser, ValueEnum};
use kit::terminal::number;
use std::net::SocketAddr;
use std::time::Duration;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A TCP echo server that closes idle connections, put to the test by thousands of real clients.
///
/// The server watches its connections with one wheel timer. The clients, in a second process, talk,
/// pause and fall silent as the seed says. They judge by their own clock whether the server closes
/// each connection when it should.
#[derive(Clone, Debug, Parser)]
#[command(name = "idle_connections", version, max_term_width = 80, args_override_self = true)]
#[command(
    after_help = "Exits with 0 if each idle connection was closed in time and no active one \
                        was, with 1 if not, and with 2 if an argument is wrong."
)]
pub(super) struct Args {
    /// How the server is built.
    #[arg(long, value_name = "KIND", default_value = "mio")]
    pub(super) server: Kind,

    /// How many connections to open. Fewer are opened if the open-file limit or the ports do not
    /// suffice.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = number(1..=60_000))]
    pub(super) connections: u64,

    /// The server closes a connection that sends nothing for this long. With a shorter time the
    /// clients talk more often, because only their last pause may reach it.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = number(100..=DAY_MS))]
    idle_ms: u64,

    /// How long a client talks before it falls silent for good. Each draws its own time, from a
    /// quarter of this up to all of it.
    #[arg(long, value_name = "MS", default_value_t = 8000, value_parser = number(0..=DAY_MS))]
    talk_ms: u64,

    /// The tick of the server's timer. A connection may be closed later than its idle time by this.
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = number(1..=10_000))]
    tick_ms: u64,

    /// How much later still a close may come on a busy machine before it counts as missed.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = number(100..=DAY_MS))]
    grace_ms: u64,

    /// The seed of the clients' behaviour. The same seed gives the same behaviour.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number(0..=u64::MAX))]
    seed: u64,

    /// Breaks the server, to see that the judge notices.
    #[arg(long, hide = true)]
    sabotage: Option<Sabotage>,

    /// Makes this process the clients of the server at that address.
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub(super) clients_of: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sabotage {
    Early,
    Never,
}

impl Args {
    pub(super) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    /// The idle time that the server keeps; another one only if it is sabotaged.
    pub(super) fn server_idle(&self) -> Duration {
        match self.sabotage {
            None => self.idle(),
            // Just below the shortest pause.
            Some(Sabotage::Early) => self.idle() / 5,
            Some(Sabotage::Never) => Duration::from_millis(DAY_MS) * 2,
        }
    }

    pub(super) fn talk(&self) -> Duration {
        Duration::from_millis(self.talk_ms)
    }

    pub(super) fn tick(&self) -> Duration {
        Duration::from_millis(self.tick_ms)
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    pub(super) fn plan(&self) -> Plan {
        Plan {
            connections: self.connections,
            replaces: false,
            idle: self.idle(),
            talk: self.talk(),
            tick: self.tick(),
            grace: self.grace(),
            seed: self.seed,
        }
    }

    /// The arguments for the process that is to be the clients.
    pub(super) fn for_clients_of(&self, server: SocketAddr) -> Vec<String> {
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
