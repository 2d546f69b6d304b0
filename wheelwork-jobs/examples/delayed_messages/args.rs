//! The command line.

use super::cluster::Disturbances;
use clap::Parser;
use kit::terminal::number;
use std::path::PathBuf;
use std::time::Duration;

/// Schedules messages at the times of a real log, compressed in time, sends them, and judges: none lost,
/// none early, how late, and why some were sent twice.
///
/// A web server's log gives a message for each request, due 15 minutes later. A log of batch jobs gives
/// one for each job, scheduled when it starts and due when it has used up its time.
#[derive(Debug, Parser)]
#[command(name = "delayed_messages", version, max_term_width = 80)]
#[command(
    after_help = "Exits with 0 if no message is lost or early and each that was sent twice is \
                        explained, with 1 if not, and with 2 if an argument is wrong."
)]
pub(crate) struct Args {
    /// Share this PostgreSQL database among three processes; without it, the store is embedded
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<String>,

    /// How many messages: the log is repeated or thinned out
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = number(1..=10_000_000))]
    pub(crate) jobs: u64,

    /// How long the log takes here, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = number(1..=86_400))]
    duration: u64,

    /// The log: Common or Combined Log Format, NASA's tab-separated one, or job, submit, wait, run and
    /// limit separated by tabs; - for standard input
    #[arg(long, value_name = "FILE", default_value = EXCERPT, hide_default_value = true)]
    pub(crate) log: String,

    /// Kill a process with SIGKILL every few seconds, and start another
    #[arg(long, requires = "postgres")]
    kill: bool,

    /// Stop a process with SIGSTOP every few seconds, for longer than its liveness
    #[arg(long, requires = "postgres")]
    pause: bool,

    /// The time between two kills or pauses, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = number(1..=3_600))]
    every: u64,

    /// Where to draw the lateness, as SVG; in the folder for temporary files if not given
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Be the process with this number
    #[arg(long, requires = "postgres", hide = true)]
    pub(crate) node: Option<u32>,
}

const EXCERPT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/examples/delayed_messages/nasa_excerpt.tsv");

impl Args {
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.duration)
    }

    pub(crate) fn plot_path(&self) -> PathBuf {
        let default = || std::env::temp_dir().join("delayed_messages.svg");
        self.plot.clone().unwrap_or_else(default)
    }

    pub(crate) fn disturbances(&self) -> Disturbances {
        let every = Duration::from_secs(self.every);
        Disturbances { kill: self.kill, pause: self.pause, every }
    }
}
