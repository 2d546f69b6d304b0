//! The table at the end, and the result of all.

use super::verdict::Verdict;
use crate::terminal::{COLUMNS, counted, grouped, wrapped};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Color};
use std::fmt;
use std::time::Duration;
use wheelwork::future::TimeoutError;

const HEADER: [&str; 6] = ["client", "must see", "right", "wrong", "missed", "ms late"];

/// All clients of one kind.
pub(super) struct Row {
    client: &'static str,
    must_see: &'static str,
    right: u64,
    wrong: u64,
    missed: u64,
    latest: Duration,
    /// What the first wrong one has seen.
    example: Option<String>,
}

impl Row {
    pub(super) fn new(client: &'static str, must_see: &'static str) -> Self {
        let latest = Duration::ZERO;
        Self { client, must_see, right: 0, wrong: 0, missed: 0, latest, example: None }
    }

    pub(super) fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Right { late } => {
                self.right += 1;
                self.latest = self.latest.max(late);
            }
            Verdict::Missed => self.missed += 1,
            Verdict::Wrong(what) => {
                self.wrong += 1;
                self.example.get_or_insert(what);
            }
        }
    }

    fn cells(&self) -> [Cell; 6] {
        let number = |number: String| Cell::new(number).set_alignment(CellAlignment::Right);
        let fault = |count: u64| {
            let color = if count == 0 { Color::Green } else { Color::Red };
            number(grouped(count)).fg(color)
        };
        [
            Cell::new(self.client),
            Cell::new(self.must_see),
            number(grouped(self.right)),
            fault(self.wrong),
            fault(self.missed),
            number(format!("{:.1}", self.latest.as_secs_f64() * 1000.0)),
        ]
    }
}

/// What all clients have seen.
pub(crate) struct Table {
    rows: Vec<Row>,
    each: u64,
    shutdown: Result<(), TimeoutError>,
}

impl Table {
    pub(super) fn new(rows: Vec<Row>, each: u64, shutdown: Result<(), TimeoutError>) -> Self {
        Self { rows, each, shutdown }
    }

    /// Whether every client has seen what it must see, in time, and the server has shut down.
    pub(crate) fn is_good(&self) -> bool {
        self.shutdown.is_ok() && self.rows.iter().all(|row| row.right == self.each)
    }

    fn sum(&self, count: impl Fn(&Row) -> u64) -> u64 {
        self.rows.iter().map(count).sum()
    }

    fn verdict(&self) -> String {
        let right = counted(self.sum(|row| row.right), "client");
        if self.is_good() {
            return format!("OK: {right} right, 0 wrong, 0 missed.");
        }
        let (wrong, missed) = (self.sum(|row| row.wrong), self.sum(|row| row.missed));
        let all = grouped(self.each * self.rows.len() as u64);
        format!("FAILED: of {all}, {right} right, {wrong} wrong, {missed} missed.")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = comfy_table::Table::new();
        table.load_preset(UTF8_FULL_CONDENSED).set_width(COLUMNS as u16).set_header(HEADER);
        table.add_rows(self.rows.iter().map(Row::cells));
        writeln!(f, "{table}")?;
        for Row { client, example, .. } in &self.rows {
            if let Some(what) = example {
                writeln!(f, "{}", wrapped(&format!("wrong, {client}: {what}")))?;
            }
        }
        if let Err(error) = &self.shutdown {
            writeln!(f, "{}", wrapped(&format!("wrong, the shutdown: {error}")))?;
        }
        write!(f, "{}", wrapped(&self.verdict()))
    }
}
