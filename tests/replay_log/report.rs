//! What is printed: a line for each session on standard output, all else on standard error.

use crate::check::{Difference, Session};
use crate::log::{Lines, Log};
use crate::replay::Outcome;
use comfy_table::{Table, presets};
use jiff::{SignedDuration, Timestamp};
use kit::terminal::wrapped;
use kit::{counted, grouped};
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

/// How many differences are printed.
const SHOWN: usize = 10;

/// Wider hosts are printed whole, and shift what follows. With these, a line fits 80 columns.
const HOST_WIDTH: usize = 24;

/// The sessions' lines, until nobody reads them any more.
pub(crate) struct SessionLines<'a> {
    out: Option<BufWriter<StdoutLock<'static>>>,
    log: &'a Log,
    host_width: usize,
}

impl<'a> SessionLines<'a> {
    /// `is_quiet` prints none.
    pub(crate) fn new(log: &'a Log, is_quiet: bool) -> Self {
        let out = (!is_quiet).then(|| BufWriter::new(io::stdout().lock()));
        let host_width = log.hosts.iter().map(|host| host.chars().count()).max().unwrap_or(0);
        Self { out, log, host_width: host_width.min(HOST_WIDTH) }
    }

    pub(crate) fn print(&mut self, session: Session) -> io::Result<()> {
        let line = self.line(session);
        let written = self.out.as_mut().map_or(Ok(()), |out| writeln!(out, "{line}"));
        self.unless_closed(written)
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        self.unless_closed(flushed)
    }

    /// The reader of a pipe may go, as `head` does; the replay and its check go on.
    fn unless_closed(&mut self, result: io::Result<()>) -> io::Result<()> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                // What is still buffered must not be written when this is dropped.
                self.out.take().map(BufWriter::into_parts);
                Ok(())
            }
            result => result,
        }
    }

    fn line(&self, session: Session) -> String {
        let Session { end, host, start, last, requests } = session;
        let host = self.log.host(host);
        let noun = if requests == 1 { "request" } else { "requests" };
        let active = friendly(last - start);
        format!("{}  {host:<1$}  {requests:>6} {noun:<8} in {active}", utc(end), self.host_width)
    }
}

/// The table under the sessions.
pub(crate) fn summary(log: &Log, sessions: usize, outcome: &Outcome) -> String {
    let metrics = &outcome.metrics;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let mut row = |name: &str, value: String| {
        table.add_row([name, value.as_str()]);
    };
    row("requests", with_note(log.requests.len(), log.out_of_order(), "out of order"));
    row("unreadable", counted(log.unreadable.count as u64, "line"));
    row("hosts", grouped(log.hosts.len() as u64));
    row("sessions", grouped(sessions as u64));
    let times = log.requests.iter().map(|request| request.time);
    if let (Some(first), Some(last)) = (times.clone().min(), times.max()) {
        let seconds = outcome.took.as_secs_f64().max(1e-9);
        let per_second = |number: u64| grouped((number as f64 / seconds) as u64);
        let faster = per_second((last - first).unsigned_abs());
        row("log", format!("{} to {}", utc(first), utc(last)));
        row("replay", format!("{} in {seconds:.3} s, {faster} times as fast", span(last - first)));
        row("speed", format!("{} requests per second", per_second(log.requests.len() as u64)));
    }
    let [begun, moved] = [metrics.scheduled, metrics.rescheduled].map(grouped);
    row("timeouts", format!("{begun} scheduled, {moved} pushed back"));
    let [expired, cancelled] = [metrics.expired, metrics.cancelled].map(grouped);
    row("", format!("{expired} expired, {cancelled} cancelled late in a tick"));
    table.trim_fmt()
}

/// The lines that are no requests, and those that are only in part, by number.
pub(crate) fn lines_to_look_at(log: &Log) -> String {
    let unreadable = log.unreadable.first.iter().map(|(n, why)| format!("line {n}: {why}"));
    let cut_short = log.cut_short.first.iter();
    let cut_short =
        cut_short.map(|(n, ())| format!("line {n}: cut short in its last field; counted"));
    let mut all: Vec<String> = unreadable.collect();
    all.extend(more(&log.unreadable, "unreadable"));
    all.extend(cut_short);
    all.extend(more(&log.cut_short, "cut short"));
    all.iter().map(|line| wrapped(line) + "\n").collect()
}

fn more<T>(lines: &Lines<T>, kind: &str) -> Option<String> {
    let more = lines.more();
    (more > 0).then(|| format!("... and {} more {kind}", grouped(more as u64)))
}

/// The first differences between what the timer said and what the log says.
pub(crate) fn differences(log: &Log, differences: &[Difference]) -> String {
    let lines = SessionLines::new(log, true);
    let shown = differences.iter().take(SHOWN).map(|difference| match difference {
        Difference::Missing(session) => format!("  only in the log:    {}\n", lines.line(*session)),
        Difference::Extra(session) => format!("  only by the timer:  {}\n", lines.line(*session)),
    });
    let mut text: String = shown.collect();
    if differences.len() > SHOWN {
        text += &format!("  ... and {} more\n", grouped((differences.len() - SHOWN) as u64));
    }
    text
}

fn with_note(count: usize, noted: usize, note: &str) -> String {
    match noted {
        0 => grouped(count as u64),
        _ => format!("{}, {} {note}", grouped(count as u64), grouped(noted as u64)),
    }
}

fn span(seconds: i64) -> String {
    match seconds {
        0..3_600 => friendly(seconds),
        3_600..86_400 => format!("{:.1} hours", seconds as f64 / 3_600.0),
        _ => format!("{:.1} days", seconds as f64 / 86_400.0),
    }
}

/// Such as "5m 12s".
fn friendly(seconds: i64) -> String {
    format!("{:#}", SignedDuration::from_secs(seconds))
}

fn utc(seconds: i64) -> impl Display {
    // The reader lets in 1970 to 2399 only, and an idle time adds ten years at most.
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
