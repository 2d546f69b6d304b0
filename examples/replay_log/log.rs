//! A whole log: its requests, and what became of the lines that are none.

use crate::reader::{Format, LineError, Record};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// How many lines of a kind are named.
const NAMED: usize = 20;

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
        "cannot read {path:?}: expected lines in {expected}, found none in {count}; line {number}: {reason}{advice}"
    )]
    NoRequests {
        path: String,
        expected: &'static str,
        count: usize,
        number: usize,
        reason: LineError,
        advice: String,
    },
}

impl Log {
    /// Reads the file at `path`; `-` is standard input. A log that is empty is one, but not a file
    /// in which no line can be read.
    pub(crate) fn open(path: &str, format: Format) -> Result<Self, LogError> {
        let read = match path {
            "-" => Self::read(io::stdin().lock(), format),
            _ => File::open(path).and_then(|file| Self::read(BufReader::new(file), format)),
        };
        let log = read.map_err(|source| LogError::Read { path: path.to_owned(), source })?;
        match log.unreadable.first.first() {
            Some((number, reason)) if log.requests.is_empty() => Err(LogError::NoRequests {
                path: path.to_owned(),
                expected: format.name(),
                count: log.unreadable.count,
                number: *number,
                reason: reason.clone(),
                advice: log.advice(format).map(|a| format!("\n{a}")).unwrap_or_default(),
            }),
            _ => Ok(log),
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
    pub(crate) fn advice(&self, format: Format) -> Option<String> {
        let other = format.other();
        (self.fit_other > self.requests.len())
            .then(|| format!("most lines are in {}: try --format {}", other.name(), other.flag()))
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
