//! The command line.

use crate::reader::Format;
use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use kit::terminal::number;
use std::time::Duration;

/// Replays a web server's access log on a virtual clock, with one idle timeout for each host, and
/// prints every session's end: when, which host, how many requests, and how long from the first of
/// them to the last. What the timer says is then checked against the log itself.
///
/// A host's session ends when the host has been silent for the idle time; a request that comes
/// exactly then begins the next session.
#[derive(Debug, Parser)]
#[command(name = "replay_log", version, max_term_width = 80)]
#[command(after_help = "Exits with 0 if every session ends exactly where the log says, with 1 if \
                        not, and with 2 if most of the log cannot be read or an argument is wrong.")]
pub(crate) struct Args {
    /// The access log; - for standard input
    pub(crate) log: String,

    /// How long a host is silent when its session ends, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    #[arg(allow_negative_numbers = true, value_parser = number(1..=LONGEST_IDLE))]
    pub(crate) idle: u64,

    /// How the log's lines are written; in a common one, the virtual host may come first
    #[arg(long, default_value = Format::Common.flag())]
    pub(crate) format: Format,

    /// The timer's tick, such as 100ms, 1s or 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_tick)]
    pub(crate) tick: Duration,

    /// The number of buckets in the timer's wheel, rounded up to a power of two
    #[arg(long, value_name = "NUMBER", default_value_t = 512, value_parser = number(1..=MOST_TICKS))]
    pub(crate) ticks_per_wheel: u64,

    /// Print the summary only
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Falsify one session behind the timer's back: the check must find it
    #[arg(long, hide = true)]
    pub(crate) sabotage: Option<Sabotage>,
}

/// What the check's self-test does to a session.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Sabotage {
    /// It is lost.
    Drop,
    /// It is told of twice.
    Double,
    /// It ends a second late.
    Shift,
}

/// Clap names the argument and its value.
#[derive(Debug, thiserror::Error)]
#[error("expected a number and one of us, ms, s, m, h, from 50us to 24h")]
pub(crate) struct TickError;

/// Ten years.
const LONGEST_IDLE: u64 = 315_360_000;
const MOST_TICKS: u64 = 1 << 30;
const TICKS: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(50)..=Duration::from_secs(86_400);

fn parse_tick(text: &str) -> Result<Duration, TickError> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or(TickError)?;
    let (number, unit) = text.split_at(unit_at);
    let micros: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return Err(TickError),
    };
    let number: u64 = number.parse().map_err(|_| TickError)?;
    let tick = number.checked_mul(micros).map(Duration::from_micros);
    tick.filter(|tick| TICKS.contains(tick)).ok_or(TickError)
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Common, Self::NasaTsv]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.flag()).help(self.name()))
    }
}
