//! The command line.

use crate::rivals::Rival;
use clap::{Parser, ValueEnum};
use std::time::Duration;

/// Measures delayed jobs of wheelwork-jobs beside those of other crates, on one PostgreSQL server.
///
/// The defaults are for a quick look. For figures that count, use a release build, a server with fsync, an
/// otherwise idle machine, --seconds 60, --jobs 100000 and --far 1000000.
#[derive(Debug, Parser)]
#[command(max_term_width = 80)]
pub struct Args {
    /// A server on which databases may be created, such as postgres://user@host:5432; without it, one is
    /// started without fsync
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,

    /// What to measure; everything if not given
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    only: Vec<Case>,

    /// Which crates; all if not given
    #[arg(long, value_name = "CRATE", value_delimiter = ',')]
    rivals: Vec<Rival>,

    /// How many jobs are due in a second when lateness is measured
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rate: u64,

    /// For how many seconds
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,

    /// How many jobs are scheduled and run when throughput is measured, or all are counted
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub jobs: u64,

    /// How many jobs are due in a day when idle queries are counted
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub far: u64,

    /// For how many seconds idle queries are counted
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    idle: u64,

    /// Be the node that is killed
    #[arg(long, hide = true)]
    pub node: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// How late jobs are that are due at a steady rate
    Lateness,
    /// How many jobs are scheduled and run in a second
    Throughput,
    /// Whether each of many jobs runs once, and not early
    Fire,
    /// How many transactions a minute all far jobs cost
    Idle,
    /// How late jobs are whose node was killed
    Takeover,
}

impl Args {
    pub fn cases(&self) -> Vec<Case> {
        if self.only.is_empty() { Case::value_variants().to_vec() } else { self.only.clone() }
    }

    pub fn rivals(&self) -> Vec<Rival> {
        if self.rivals.is_empty() { Rival::value_variants().to_vec() } else { self.rivals.clone() }
    }

    pub fn idle(&self) -> Duration {
        Duration::from_secs(self.idle)
    }
}
