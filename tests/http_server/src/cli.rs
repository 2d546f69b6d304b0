//! The command line.

use crate::cost::Rounds;
use crate::judge::{Limits, Settings};
use crate::terminal::number;
use crate::{client, server};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::time::Duration;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// An HTTP server on axum and hyper whose limits are kept by one wheel timer, judged by real clients.
///
/// Clients of each kind try the server at once: fast and slow ones, silent ones, and some that begin a
/// request and never end it. They judge by their own clock whether the server ends each when it should.
/// The server's runtime has no timer.
#[derive(Clone, Debug, Parser)]
#[command(name = "http_server", version, max_term_width = 80, args_override_self = true)]
#[command(args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exits with 0 if each client has seen what it must see in time, with 1 if not, and \
                  with 2 if an argument is wrong."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures the processor time of a request with each limit, with all, and without any.
    Cost(CostArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct JudgeArgs {
    /// How many clients of each kind there are
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = number(1..=1000))]
    clients: u64,

    /// The server closes a connection on which no byte flows for this long
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = number(100..=DAY_MS))]
    idle_ms: u64,

    /// The server closes a connection whose header is not complete after this long
    #[arg(long, value_name = "MS", default_value_t = 3000, value_parser = number(100..=DAY_MS))]
    header_ms: u64,

    /// The server answers 503 if a handler takes longer. The clients' own limits follow from it
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = number(100..=DAY_MS))]
    request_ms: u64,

    /// The tick of the timer. Each limit may be kept later by this
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = number(1..=10_000))]
    tick_ms: u64,

    /// How much later still it may be on a busy machine before it counts as missed
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = number(100..=DAY_MS))]
    grace_ms: u64,

    /// Makes the server and the client keep other limits, to see that the judges notice.
    #[arg(long, hide = true)]
    sabotage: Option<Sabotage>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sabotage {
    Early,
    Never,
}

impl JudgeArgs {
    pub(crate) fn settings(&self) -> Settings {
        let limits = |scale: fn(u64) -> u64| {
            let ms = |ms| Duration::from_millis(scale(ms));
            let (idle, header, request) =
                (ms(self.idle_ms), ms(self.header_ms), ms(self.request_ms));
            let shutdown = Duration::from_millis(self.request_ms + self.tick_ms + self.grace_ms);
            Limits {
                server: server::Limits { idle, header, request, shutdown },
                client: client::Limits { unused: request, ping: request / 2, pong: request / 2 },
            }
        };
        Settings {
            judged: limits(|ms| ms),
            kept: match self.sabotage {
                None => limits(|ms| ms),
                Some(Sabotage::Early) => limits(|ms| ms / 2),
                Some(Sabotage::Never) => limits(|ms| ms + DAY_MS),
            },
            clients: self.clients,
            tick: Duration::from_millis(self.tick_ms),
            grace: Duration::from_millis(self.grace_ms),
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CostArgs {
    /// How many rounds are measured
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = number(1..=10_000))]
    rounds: u64,

    /// How many requests a server answers in a row
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = number(1..=10_000_000))]
    requests: u64,

    /// The tick of the timer
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = number(1..=10_000))]
    tick_ms: u64,

    /// Runs one server alone, for a profiler
    #[arg(long, value_name = "SERVER")]
    only: Option<crate::cost::Which>,
}

impl CostArgs {
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds {
            rounds: self.rounds,
            requests: self.requests,
            tick: Duration::from_millis(self.tick_ms),
            only: self.only,
        }
    }
}
