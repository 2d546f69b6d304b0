//! A whole log: its requests, and what became of the lines that are none.

use crate::reader::{Format, LineError, Record};
use kit::grouped;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// How many lines of a kind are named.
const NAMED: usize = 20;

/// Some editors put it in front of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const GZIP: &[u8] = b"\x1f\x8b";

/// One request. Hosts are numbered in the order in which the log first names them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) host: u32,
    /// Unix seconds.
    pub(crate) time: i64,
}

/// What a log says, in its own order.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) hosts: Vec<String>,
    pub(crate) requests: Vec<Request>,
    pub(crate) unreadable: Lines<LineError>,
    /// Read all the same, but worth a word.
    pub(crate) cut_short: Lines<()>,
    /// Unreadable lines that the other format would have read.
    fit_other: usize,
}

/// Lines of a kind: how many, and of the first the number and what is to be said.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    pub(crate) count: usize,
    pub(crate) first: Vec<(usize, T)>,
}

/// Why there is nothing to replay.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error(
        "cannot read {path:?}: {source}: expected a web server's access log, or - for standard input"
    )]
    Read { path: String, source: io::Error },
    #[error(
        "cannot read {path:?}: expected text, found gzip: gunzip it first, or run zcat {path:?} | \
         replay_log -"
    )]
    Gzip { path: String },
    #[error("cannot read {path:?}: expected a web server's access log, found no line in it")]
    Empty { path: String },
    #[error(
        "cannot read {path:?}: expected lines in {expected}, found {} of {} unreadable; line \
         {number}: {reason}{advice}",
        grouped(*unreadable),
        grouped(*lines)
    )]
    Unreadable {
        path: String,
        expected: &'static str,
        unreadable: u64,
        lines: u64,
        number: usize,
        reason: LineError,
        advice: String,
    },
}

impl Log {
    /// Reads the file at `path`; `-` is standard input. A file of which most lines are unreadable is
    /// no log, and neither is one without a request.
    pub(crate) fn open(path: &str, format: Format) -> Result<Self, LogError> {
        let path = path.to_owned();
        match Self::read_from(&path, format) {
            Err(source) => Err(LogError::Read { path, source }),
            Ok(None) => Err(LogError::Gzip { path }),
            Ok(Some(log)) => log.unless_unreadable(path, format),
        }
    }

    /// `None` if the file is compressed.
    fn read_from(path: &str, format: Format) -> io::Result<Option<Self>> {
        let mut input: Box<dyn BufRead> = match path {
            "-" => Box::new(io::stdin().lock()),
            _ => Box::new(BufReader::new(File::open(path)?)),
        };
        let start = input.fill_buf()?;
        if start.starts_with(GZIP) {
            return Ok(None);
        }
        if start.starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        Self::read(input, format).map(Some)
    }

    fn unless_unreadable(self, path: String, format: Format) -> Result<Self, LogError> {
        match self.unreadable.first.first() {
            Some((number, reason)) if self.unreadable.count > self.requests.len() => {
                Err(LogError::Unreadable {
                    path,
                    expected: format.name(),
                    unreadable: self.unreadable.count as u64,
                    lines: (self.unreadable.count + self.requests.len()) as u64,
                    number: *number,
                    reason: reason.clone(),
                    advice: self.advice(format),
                })
            }
            _ if self.requests.is_empty() => Err(LogError::Empty { path }),
            _ => Ok(self),
        }
    }

    fn read(mut input: impl BufRead, format: Format) -> io::Result<Self> {
        let mut log = Self::default();
        let mut numbers = HashMap::new();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if number == 1 && format.is_header(&line) {
                continue;
            }
            match format.parse(&line) {
                Ok(record) => log.add(record, number, &mut numbers),
                Err(error) => {
                    log.unreadable.add(number, error);
                    log.fit_other += usize::from(format.other().parse(&line).is_ok());
                }
            }
        }
        Ok(log)
    }

    fn add(&mut self, record: Record, line: usize, numbers: &mut HashMap<String, u32>) {
        if record.is_cut_short {
            self.cut_short.add(line, ());
        }
        let host = *numbers.entry(record.host).or_insert_with_key(|name| {
            self.hosts.push(name.clone());
            (self.hosts.len() - 1) as u32
        });
        self.requests.push(Request { host, time: record.time });
    }

    pub(crate) fn host(&self, number: u32) -> &str {
        &self.hosts[number as usize]
    }

    /// The requests in order of time; those of the same second stay in the log's order.
    pub(crate) fn in_order_of_time(&self) -> Vec<Request> {
        let mut requests = self.requests.clone();
        requests.sort_by_key(|request| request.time);
        requests
    }

    /// Lines whose time lies before that of the line above.
    pub(crate) fn out_of_order(&self) -> usize {
        self.requests.windows(2).filter(|pair| pair[1].time < pair[0].time).count()
    }

    /// What to try if most lines are of the other format.
    fn advice(&self, format: Format) -> String {
        let other = format.other();
        match self.fit_other > self.requests.len() {
            true => format!("\nmost lines are in {}: try --format {}", other.name(), other.flag()),
            false => String::new(),
        }
    }
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Common => "the Common or Combined Log Format",
            Self::NasaTsv => "the NASA log's tab-separated format",
        }
    }

    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::NasaTsv => "nasa-tsv",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Common => Self::NasaTsv,
            Self::NasaTsv => Self::Common,
        }
    }
}

impl<T> Lines<T> {
    fn add(&mut self, number: usize, what: T) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((number, what));
        }
    }

    /// How many are not named.
    pub(crate) fn more(&self) -> usize {
        self.count - self.first.len()
    }
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new() }
    }
}
