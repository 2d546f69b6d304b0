//! One line of a log in, a host and a time out. It never panics, whatever the bytes are.
//!
//! Only the host and the time are wanted, but the whole line must have the shape of its format:
//! what lies behind a broken field cannot be trusted to be what it seems.

use jiff::Timestamp;
use std::fmt;
use std::net::IpAddr;

/// How the lines of a log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Common and Combined Log Format, as Apache and nginx write them, with or without the virtual
    /// host in front.
    Common,
    /// Tab-separated with a header, times in Unix seconds, as the NASA log of 1995.
    NasaTsv,
}

/// A request, as far as it matters for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) host: String,
    /// Unix seconds.
    pub(crate) time: i64,
    /// The line ends inside its last field, which says nothing about the session.
    pub(crate) is_cut_short: bool,
}

/// Why a line cannot be read: the first field that is not what the format has there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("expected a request, found an empty line")]
    Empty,
    #[error("expected a host without spaces, found {0}")]
    Host(Excerpt),
    #[error("expected the client's and the user's name after the host, found {0}")]
    Names(Excerpt),
    #[error("expected a time like [17/May/2015:10:05:03 +0000], found {0}")]
    Time(Excerpt),
    #[error("expected Unix seconds, found {0}")]
    Seconds(Excerpt),
    #[error("expected a time from 1970 to 2399, found {0}")]
    Range(Excerpt),
    #[error("expected a request in quotes, found {0}")]
    Request(Excerpt),
    #[error("expected a status of three digits or -, found {0}")]
    Status(Excerpt),
    #[error("expected a number of bytes or -, found {0}")]
    Bytes(Excerpt),
    #[error("expected a referer in quotes, found {0}")]
    Referer(Excerpt),
    #[error("expected a user agent in quotes, found {0}")]
    UserAgent(Excerpt),
    #[error("expected the end of the line, found {0}")]
    Trailing(Excerpt),
    #[error("expected {COLUMNS} columns with tabs between them, found {columns}: {line}")]
    Columns { columns: usize, line: Excerpt },
}

/// What was found instead, cut to a length that fits on a terminal's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt(String);

const EXCERPT_COLUMNS: usize = 60;
const HEADER: &str = "host\tlogname\ttime\tmethod\turl\tresponse\tbytes\treferer\tuseragent";
const COLUMNS: usize = 9;

/// 2400-01-01T00:00:00Z. From 1970 up to here fits into the 584 years of a clock in nanoseconds,
/// so one wrong year in a log cannot overflow the replay.
const END_OF_TIME: i64 = 13_569_465_600;

impl Format {
    /// Reads a line, with or without its line end.
    pub(crate) fn parse(self, line: &[u8]) -> Result<Record, LineError> {
        let line = text_of(line);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            return Err(LineError::Empty);
        }
        match self {
            Self::Common => common(line.trim_end()),
            Self::NasaTsv => nasa_tsv(line),
        }
    }

    /// Whether this is the line that names the columns; only the first line of a log can be.
    pub(crate) fn is_header(self, line: &[u8]) -> bool {
        self == Self::NasaTsv && line.trim_ascii_end() == HEADER.as_bytes()
    }
}

/// Writes bytes that are not UTF-8 as Apache does, such as `\xff`, so that they stay distinct.
fn text_of(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text += chunk.valid();
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

/// `host ident user [time] "request" status bytes`, and in the Combined Log Format
/// ` "referer" "user agent"`. The virtual host may stand in front.
fn common(line: &str) -> Result<Record, LineError> {
    let (host, rest) = without_virtual_host(line);
    let host = host_name(host)?;
    // A user's name may have spaces in it.
    let (names, rest) = rest.split_once(" [").ok_or_else(|| LineError::Names(Excerpt::of(rest)))?;
    if !names.contains(' ') {
        return Err(LineError::Names(Excerpt::of(names)));
    }
    let (time, rest) = rest.split_once("] ").ok_or_else(|| LineError::Time(Excerpt::of(rest)))?;
    let time = log_time(time)?;
    let rest = quoted(rest).ok_or_else(|| LineError::Request(Excerpt::of(rest)))?;
    let (status, rest) = word(rest);
    let (bytes, rest) = word(rest);
    check_response(status, bytes)?;
    let is_cut_short = !rest.is_empty() && is_cut_short(rest)?;
    Ok(Record { host, time, is_cut_short })
}

/// The client's host, and what comes after it. The first word is the virtual host if three words
/// follow it, and it has a port or the next one is an address.
fn without_virtual_host(line: &str) -> (&str, &str) {
    let (first, rest) = word(line);
    let (second, names) = word(rest);
    let follows = names.split(" [").next().is_some_and(|names| names.contains(' '));
    let is_virtual = has_port(first) || second.parse::<IpAddr>().is_ok();
    if follows && is_virtual { (second, names) } else { (first, rest) }
}

/// Whether a virtual host ends in its port. The colons of an IPv6 address are none, unless brackets
/// stand around it.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        let is_name = !name.is_empty() && (!name.contains(':') || name.ends_with(']'));
        is_name && is_number(port)
    })
}

/// Checks what the Combined Log Format adds. A user agent without its closing quote is let through
/// and told of: logs cut long lines there, and all that a session needs stands whole before it.
fn is_cut_short(rest: &str) -> Result<bool, LineError> {
    let agent = quoted(rest).ok_or_else(|| LineError::Referer(Excerpt::of(rest)))?;
    match quoted(agent) {
        Some("") => Ok(false),
        Some(rest) => Err(LineError::Trailing(Excerpt::of(rest))),
        None if agent.starts_with('"') => Ok(true),
        None => Err(LineError::UserAgent(Excerpt::of(agent))),
    }
}

fn nasa_tsv(line: &str) -> Result<Record, LineError> {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[host, _, time, _, _, status, bytes, _, _] = columns.as_slice() else {
        return Err(LineError::Columns { columns: columns.len(), line: Excerpt::of(line) });
    };
    let host = host_name(host)?;
    let seconds = time.parse().map_err(|_| LineError::Seconds(Excerpt::of(time)))?;
    let seconds = in_range(seconds, time)?;
    check_response(status, bytes)?;
    Ok(Record { host, time: seconds, is_cut_short: false })
}

fn host_name(text: &str) -> Result<String, LineError> {
    let is_name = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    is_name.then(|| text.to_owned()).ok_or_else(|| LineError::Host(Excerpt::of(text)))
}

fn check_response(status: &str, bytes: &str) -> Result<(), LineError> {
    if status != "-" && !(status.len() == 3 && is_number(status)) {
        return Err(LineError::Status(Excerpt::of(status)));
    }
    if bytes != "-" && !is_number(bytes) {
        return Err(LineError::Bytes(Excerpt::of(bytes)));
    }
    Ok(())
}

fn log_time(text: &str) -> Result<i64, LineError> {
    let time = Timestamp::strptime("%d/%b/%Y:%H:%M:%S %z", text)
        .map_err(|_| LineError::Time(Excerpt::of(text)))?;
    in_range(time.as_second(), text)
}

fn in_range(seconds: i64, text: &str) -> Result<i64, LineError> {
    let range = 0..END_OF_TIME;
    range.contains(&seconds).then_some(seconds).ok_or_else(|| LineError::Range(Excerpt::of(text)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Up to the next space, and what comes after it.
fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// What comes after a field in quotes and its space. Inside, a backslash takes the next character
/// with it; a quote that neither a space nor the end follows is one that an old server left bare.
fn quoted(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, char) in inside.char_indices() {
        let after = &inside[at + char.len_utf8()..];
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if after.is_empty() => return Some(""),
            '"' if after.starts_with(' ') => return Some(&after[1..]),
            _ => {}
        }
    }
    None
}

impl Excerpt {
    fn of(text: &str) -> Self {
        let mut columns = 0;
        let end = text.char_indices().find(|(_, char)| {
            columns += char.escape_debug().count();
            columns > EXCERPT_COLUMNS
        });
        Self(end.map_or_else(|| text.to_owned(), |(end, _)| format!("{}…", &text[..end])))
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => f.write_str("nothing"),
            // Escaped, so that no log can speak to the terminal in control characters.
            text => write!(f, "{text:?}"),
        }
    }
}
