//! What is printed: the plan, a live line, and the verdict as tables.

use super::args::Args;
use super::cluster::Cause;
use super::judge::Verdict;
use super::plan::Plan;
use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use kit::{counted, grouped};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

pub(crate) fn announce(args: &Args, plan: &Plan) {
    let store = match args.postgres {
        Some(_) => "PostgreSQL with 3 nodes",
        None => "a file",
    };
    let messages = counted(plan.messages.len() as u64, "message");
    println!("{messages} in {store}; time runs {:.0} times as fast", plan.factor);
}

/// A line that is written again and again on a terminal, and seldom elsewhere.
#[derive(Default)]
pub(crate) struct Live {
    shown: Option<Instant>,
}

impl Live {
    const SELDOM: Duration = Duration::from_secs(5);

    pub(crate) fn show(&mut self, scheduled: usize, sent: usize, state: Option<String>) {
        let terminal = io::stdout().is_terminal();
        if !terminal && self.shown.is_some_and(|shown| shown.elapsed() < Self::SELDOM) {
            return;
        }
        self.shown = Some(Instant::now());
        let (scheduled, sent) = (grouped(scheduled as u64), grouped(sent as u64));
        let state = state.map(|state| format!(", {state}")).unwrap_or_default();
        let (start, end) = if terminal { ("\r", "\x1b[K") } else { ("", "\n") };
        print!("{start}{scheduled} scheduled, {sent} sent{state}{end}");
        let _ = io::stdout().flush(); // a line that cannot be shown is no harm
    }

    pub(crate) fn clear(&self) {
        if io::stdout().is_terminal() {
            print!("\r\x1b[K");
        }
    }
}

pub(crate) fn print(verdict: &Verdict) {
    println!("\n{}\n\n{}\n", counts(verdict), lateness(verdict));
    if let Some((first, second)) = verdict.strange {
        println!("sent again without a reason, such as message {}:", first.message);
        for sent in [first, second] {
            let after = milliseconds(sent.lateness());
            println!("  by node {}, {after} after it was due", sent.node);
        }
    }
    println!("{}", if verdict.is_good() { "good" } else { "NOT GOOD" });
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

fn counts(verdict: &Verdict) -> String {
    let mut table = table();
    let mut row = |name: &str, count: u64| {
        table.add_row([name.to_owned(), grouped(count)]);
    };
    row("messages scheduled", verdict.scheduled);
    row("lost", verdict.lost);
    row("sent early", verdict.early);
    row("sent again without a reason", verdict.unexplained());
    for (&cause, &outages) in &verdict.outages {
        let again = verdict.again.get(&Some(cause)).copied().unwrap_or(0);
        row(&format!("nodes {}", named(cause)), outages);
        row("  their messages sent again", again);
    }
    align(&mut table);
    table.trim_fmt()
}

fn named(cause: Cause) -> &'static str {
    match cause {
        Cause::Killed => "killed with SIGKILL",
        Cause::Paused => "paused with SIGSTOP",
        Cause::Lapsed => "too slow to keep their liveness",
    }
}

fn lateness(verdict: &Verdict) -> String {
    let mut table = table();
    table.set_header(["late by", "messages", "p50", "p90", "p99", "p99.9", "most"]);
    let mut row = |name: &str, late: &Histogram<u64>| {
        let quantiles =
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|q| milliseconds(late.value_at_quantile(q)));
        table.add_row([name.to_owned(), grouped(late.len())].into_iter().chain(quantiles));
    };
    row("all", &verdict.all);
    if !verdict.disturbed.is_empty() {
        row("due in calm", &verdict.calm);
        row("due while disturbed", &verdict.disturbed);
    }
    align(&mut table);
    table.trim_fmt()
}

fn milliseconds(micros: u64) -> String {
    match micros {
        0..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
