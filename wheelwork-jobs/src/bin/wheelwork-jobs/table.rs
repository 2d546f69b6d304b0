//! Jobs and counts as tables of at most 80 columns.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use std::time::SystemTime;
use wheelwork_jobs::{KindStats, Progress, State, StoredJob};

const COLUMNS: u16 = 80;

fn table(header: &[&str]) -> Table {
    let mut table = plain();
    table.set_header(header);
    table
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(COLUMNS);
    table
}

/// Many jobs, a line each unless the kind is long.
pub(crate) fn jobs(jobs: &[StoredJob], now: SystemTime) -> String {
    if jobs.is_empty() {
        return "no jobs".to_owned();
    }
    let are_done = jobs.iter().all(|job| job.done.is_some());
    let when = if are_done { "done" } else { "due" };
    let mut table = table(&["id", "kind", when, "state", "failed"]);
    for job in jobs {
        table.add_row([
            job.id.to_string(),
            printable(&job.kind),
            relative(job.done.unwrap_or(job.due), now),
            state(job.state).to_owned(),
            job.attempts.to_string(),
        ]);
    }
    align_right(&mut table, 4..5);
    for column in [0, 2, 3, 4] {
        // An id on two lines cannot be copied. The kind takes what is left.
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.trim_fmt()
}

/// One job with all its fields.
pub(crate) fn job(job: &StoredJob, now: SystemTime) -> String {
    let mut table = plain();
    table.add_row(["id", &job.id.to_string()]);
    table.add_row(["kind", &printable(&job.kind)]);
    table.add_row(["key", &job.key.as_deref().map_or("none".to_owned(), printable)]);
    table.add_row(["due", &format!("{} ({})", exact(job.due), relative(job.due, now))]);
    table.add_row(["state", state(job.state)]);
    table.add_row(["priority", &job.priority.to_string()]);
    table.add_row(["failed", &format!("{} times", job.attempts)]);
    table.add_row(["payload", &printable(&job.payload)]);
    if let Some(progress) = &job.progress {
        table.add_row(["progress", &self::progress(progress)]);
    }
    if let Some(done) = job.done {
        table.add_row(["done", &format!("{} ({})", exact(done), relative(done, now))]);
        table.add_row(["result", &job.result.as_deref().map_or("none".to_owned(), printable)]);
    }
    table.add_row(["error", &job.error.as_deref().map_or("none".to_owned(), printable)]);
    table.trim_fmt()
}

/// The counts of each kind.
pub(crate) fn stats(kinds: &[KindStats], now: SystemTime) -> String {
    if kinds.is_empty() {
        return "no jobs".to_owned();
    }
    let mut table = table(&["kind", "waiting", "overdue", "claimed", "dead", "next due"]);
    for kind in kinds {
        let next = kind.next_due.map_or("-".to_owned(), |due| relative(due, now));
        let next = if kind.paused { "paused".to_owned() } else { next };
        let counts = [kind.waiting, kind.overdue, kind.claimed, kind.dead].map(|n| n.to_string());
        table.add_row([printable(&kind.kind)].into_iter().chain(counts).chain([next]));
    }
    align_right(&mut table, 1..5);
    table.trim_fmt()
}

/// The kinds that were paused or resumed.
pub(crate) fn kinds(verb: &str, kinds: &[String]) -> String {
    let kinds: Vec<_> = kinds.iter().map(|kind| printable(kind)).collect();
    if kinds.is_empty() {
        format!("{verb} no kind")
    } else {
        format!("{verb} {}", kinds.join(", "))
    }
}

fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in table.column_iter_mut().skip(columns.start).take(columns.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

pub(crate) fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Claimed => "claimed",
        State::Dead => "dead",
        State::Done => "done",
        _ => "unknown",
    }
}

/// Such as `3 of 10, writing`.
pub(crate) fn progress(progress: &Progress) -> String {
    let Progress { done, of, text } = progress;
    let of = if *of == 0 { String::new() } else { format!(" of {of}") };
    format!("{done}{of}, {}", printable(text))
}

/// Such as `2026-11-22T08:12:00Z`, as RFC 3339 has it, in UTC. Up to the end of the year 9999.
pub(crate) fn exact(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = SignedDuration::try_from(since).unwrap_or(SignedDuration::MAX);
    let exact = date(1970, 1, 1).at(0, 0, 0, 0).saturating_add(since);
    format!("{}Z", exact.min(DateTime::MAX))
}

/// Such as `in 3h 12m`, by the clock of this machine.
pub(crate) fn relative(due: SystemTime, now: SystemTime) -> String {
    match due.duration_since(now) {
        Ok(ahead) => format!("in {}", short(ahead.as_secs())),
        Err(error) => format!("{} ago", short(error.duration().as_secs())),
    }
}

/// The two largest units of a time.
pub(crate) fn short(seconds: u64) -> String {
    const UNITS: [(u64, char); 4] = [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')];
    for pair in UNITS.windows(2) {
        let [(large, letter), (small, other)] = [pair[0], pair[1]];
        if seconds >= large {
            let rest = seconds % large / small;
            return format!("{}{letter} {rest}{other}", seconds / large);
        }
    }
    format!("{seconds}s")
}

/// With escapes for the characters that would move the cursor, color the terminal, or turn the order of
/// the letters around.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => printable.extend(c.escape_default()),
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                printable.extend(c.escape_unicode());
            }
            c if c.is_control() => printable.extend(c.escape_unicode()),
            c => printable.push(c),
        }
    }
    printable
}

/// A number of jobs, in words.
pub(crate) fn jobs_of(number: u64) -> String {
    match number {
        1 => "1 job".to_owned(),
        many => format!("{many} jobs"),
    }
}
