//! The measured costs.

use super::{Rounds, Which};
use crate::terminal::grouped;
use clap::ValueEnum;
use std::fmt;

/// Processor time of a request in each round, in microseconds.
pub(crate) struct Costs {
    rounds: Rounds,
    /// With a limit, and beside it without.
    pairs: Vec<(Which, f64, f64)>,
    /// Microseconds that the timer's thread used in each second.
    pub(super) worker: f64,
}

impl Costs {
    pub(super) fn new(rounds: Rounds) -> Self {
        Self { rounds, pairs: Vec::new(), worker: 0.0 }
    }

    pub(super) fn add(&mut self, which: Which, with: f64, without: f64) {
        self.pairs.push((which, with, without));
    }

    /// Median and quartiles of what `value` makes of each pair of these limits.
    fn quartiles(&self, which: Which, value: fn(f64, f64) -> f64) -> Option<[f64; 3]> {
        let pairs = self.pairs.iter().filter(|(of, ..)| *of == which || which == Which::None);
        let mut sorted: Vec<f64> = pairs.map(|&(_, with, without)| value(with, without)).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        Some([1, 2, 3].map(|quarter| sorted[last * quarter / 4]))
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounds { rounds, requests, tick, .. } = self.rounds;
        let (rounds, requests) = (grouped(rounds), grouped(requests));
        writeln!(f, "Processor time of a request, server and timer, without the client.")?;
        writeln!(f, "Medians of {rounds} rounds, each 2 x {requests} requests with the limits")?;
        writeln!(f, "and as many without. The ratio is that of each round; with quartiles.\n")?;
        writeln!(f, "| limits                    |       µs |    ratio |     25 % |     75 % |")?;
        writeln!(f, "|---------------------------|---------:|---------:|---------:|---------:|")?;
        for &which in Which::value_variants() {
            let cost: fn(f64, f64) -> f64 =
                if which == Which::None { |_, without| without } else { |with, _| with };
            let Some([_, cost, _]) = self.quartiles(which, cost) else { continue };
            write!(f, "| {:<25} | {cost:>8.3} |", name(which))?;
            match self.quartiles(which, |with, without| with / without) {
                Some([low, ratio, high]) if which != Which::None => {
                    writeln!(f, " {ratio:>8.3} | {low:>8.3} | {high:>8.3} |")?
                }
                _ => writeln!(f, "          |          |          |")?,
            }
        }
        write!(f, "\nOf this, the timer's thread with its tick of {tick:?}: ")?;
        write!(f, "{:.0} µs in each second.", self.worker)
    }
}

fn name(which: Which) -> &'static str {
    match which {
        Which::None => "none",
        Which::Idle => "idle",
        Which::Header => "header",
        Which::HyperAlone => "header, hyper's own part",
        Which::Request => "request",
        Which::All => "idle, header and request",
    }
}
