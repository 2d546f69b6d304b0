//! Times from a log.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// How many seconds after a request of the web server its message is due.
const FOLLOW_UP: i64 = 15 * 60;

/// When a message is scheduled and when it is due, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) scheduled: i64,
    pub(crate) due: i64,
}

#[derive(Debug)]
pub(crate) struct Log {
    /// In the order of scheduling.
    pub(crate) events: Vec<Event>,
    pub(crate) unreadable: u64,
}

/// There is nothing to schedule.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("cannot read {path:?}: {source}")]
    Read { path: String, source: io::Error },
    #[error(
        "cannot read {path:?}: expected text, found gzip: run zcat {path:?} | delayed_messages --log -"
    )]
    Gzip { path: String },
    #[error(
        "cannot read {path:?}: expected a web server's log or a log of batch jobs, found {unreadable} of \
         {lines} lines unreadable"
    )]
    Unreadable { path: String, unreadable: u64, lines: u64 },
}

/// How the lines of a log are written.
#[derive(Clone, Copy)]
enum Format {
    /// The Common or Combined Log Format.
    Common,
    /// host, logname, time, ...
    Nasa,
    /// job, submit, wait, run, limit
    Batch,
}

impl Log {
    /// Reads a file; `-` is standard input. A file of which most lines are unreadable is no log.
    pub(crate) fn open(path: &str) -> Result<Self, LogError> {
        let path = path.to_owned();
        match Self::read_from(&path) {
            Err(source) => Err(LogError::Read { path, source }),
            Ok(None) => Err(LogError::Gzip { path }),
            Ok(Some(log)) => {
                let (unreadable, read) = (log.unreadable, log.events.len() as u64);
                if read == 0 || unreadable > read {
                    return Err(LogError::Unreadable {
                        path,
                        unreadable,
                        lines: unreadable + read,
                    });
                }
                Ok(log)
            }
        }
    }

    /// `None` if the file is compressed.
    fn read_from(path: &str) -> io::Result<Option<Self>> {
        let mut input: Box<dyn BufRead> = match path {
            "-" => Box::new(io::stdin().lock()),
            _ => Box::new(BufReader::new(File::open(path)?)),
        };
        if input.fill_buf()?.starts_with(b"\x1f\x8b") {
            return Ok(None);
        }
        Self::read(input).map(Some)
    }

    fn read(input: impl BufRead) -> io::Result<Self> {
        let mut log = Self { events: Vec::new(), unreadable: 0 };
        let mut format = Format::Common;
        for (number, line) in input.split(b'\n').enumerate() {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            if number == 0 {
                format = Format::of(&line);
                if !matches!(format, Format::Common) {
                    continue;
                }
            }
            match format.event(line.trim_end()) {
                Some(event) => log.events.push(event),
                None => log.unreadable += 1,
            }
        }
        log.events.sort_by_key(|event| (event.scheduled, event.due));
        Ok(log)
    }
}

impl Format {
    fn of(header: &str) -> Self {
        match header.split('\t').next() {
            Some("host") => Self::Nasa,
            Some("job") => Self::Batch,
            _ => Self::Common,
        }
    }

    fn event(self, line: &str) -> Option<Event> {
        let field = |n| line.split('\t').nth(n)?.parse::<i64>().ok();
        match self {
            Self::Common => Some(request(common_time(line)?)),
            Self::Nasa => Some(request(field(2)?)),
            Self::Batch => {
                // -1 stands for a time that is unknown.
                let known = |n| field(n).filter(|&seconds| seconds >= 0);
                let scheduled = known(1)?.checked_add(known(2)?)?;
                Some(Event { scheduled, due: scheduled.checked_add(known(4)?)? })
            }
        }
    }
}

fn request(time: i64) -> Event {
    Event { scheduled: time, due: time.saturating_add(FOLLOW_UP) }
}

/// The time between the first brackets, such as `17/May/2015:10:05:03 +0000`.
fn common_time(line: &str) -> Option<i64> {
    let (_, rest) = line.split_once('[')?;
    let (time, _) = rest.split_once(']')?;
    let time = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", time).ok()?;
    Some(time.to_timestamp().ok()?.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_formats_are_read_and_sorted() {
        let common = "b - - [17/May/2015:10:05:04 +0000] \"GET /\" 200 1\n\
                      a - - [17/May/2015:12:05:03 +0200] \"GET /\" 200 1\nnonsense\n";
        let log = Log::read(common.as_bytes()).unwrap();
        let time = 1_431_857_103;
        assert_eq!(log.events, [request(time), request(time + 1)]);
        assert_eq!(log.unreadable, 1);

        let nasa = "host\tlogname\ttime\nx\t-\t807256800\n";
        assert_eq!(Log::read(nasa.as_bytes()).unwrap().events, [request(807_256_800)]);

        let batch = "job\tsubmit\twait\trun\tlimit\n1\t100\t5\t9\t60\n2\t100\t5\t9\t-1\n";
        let log = Log::read(batch.as_bytes()).unwrap();
        assert_eq!(log.events, [Event { scheduled: 105, due: 165 }]);
        assert_eq!(log.unreadable, 1);
    }
}
