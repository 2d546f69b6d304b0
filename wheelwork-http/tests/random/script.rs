//! Scripts, and what the model expects of them. Times are milliseconds.

use crate::frames::{self, END_STREAM};
use crate::random::Random;
use crate::world::SECOND;
use std::time::Duration;
use wheelwork_http::{Limit, Limits};

pub(crate) const HANDSHAKE: u64 = 7_000;
pub(crate) const HEADER: u64 = 11_000;
pub(crate) const IDLE: u64 = 40_000;
pub(crate) const HANDLER: u64 = 60_000;
pub(crate) const BODY: u64 = 23_000;
pub(crate) const RESPONSE: u64 = 29_000;

pub(crate) fn limits() -> Limits {
    let millis = Duration::from_millis;
    Limits::none()
        .handshake(millis(HANDSHAKE))
        .header(millis(HEADER))
        .idle(millis(IDLE))
        .handler(millis(HANDLER))
        .body(millis(BODY))
        .response(millis(RESPONSE))
        .shutdown(SECOND)
}

/// What one client does.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) is_http2: bool,
    /// Connects at the first time, and then sends at each.
    pub(crate) begin: u64,
    pub(crate) sends: Vec<(u64, Vec<u8>)>,
    /// Does not read any more from this time on.
    pub(crate) reads_until: Option<u64>,
    /// Leaves at this time, if the server has not closed the connection.
    pub(crate) end: u64,
    /// The cuts, by the model.
    pub(crate) cuts: Vec<(u64, Limit)>,
    /// The responses that it gets, by the model.
    pub(crate) answers: usize,
}

/// Where a hostile client stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Silent,
    Header,
    Body,
    Handler,
    Reading,
    Idle,
}

const STOPS: [Stop; 6] =
    [Stop::Silent, Stop::Header, Stop::Body, Stop::Handler, Stop::Reading, Stop::Idle];

/// A time below a limit, often close to it.
fn pause(random: &mut Random, limit: u64) -> u64 {
    match random.below(3) {
        0 => 1 + random.below(100),
        1 => limit - 1 - random.below(3),
        _ => 1 + random.below(limit - 1),
    }
}

pub(crate) fn script(random: &mut Random) -> Script {
    let is_http2 = random.one_in(2);
    let begin = random.below(60_000);
    let mut writer =
        Writer { script: Script { is_http2, begin, ..Script::default() }, now: begin, stream: 1 };
    let stop = random.one_in(2).then(|| STOPS[random.below(6) as usize]);
    if stop == Some(Stop::Silent) {
        return writer.cut(HANDSHAKE, Limit::Handshake);
    }
    writer.now += pause(random, HANDSHAKE);
    if is_http2 {
        // Windows for `/big`, but not for `/endless`.
        let window = [&[0, 4][..], &200_000_u32.to_be_bytes()].concat();
        let settings = frames::frame(frames::SETTINGS, 0, 0, &window);
        let window = frames::window_update(0, 1 << 30);
        writer.send([frames::PREFACE, &settings, &window].concat());
        writer.now += pause(random, IDLE);
    }
    for _ in 0..random.below(4) {
        match random.below(3) {
            0 => writer.upload(random, None),
            1 => _ = writer.get(random, "/", None),
            _ => _ = writer.get(random, "/big", None),
        }
        writer.now += pause(random, IDLE);
    }
    match stop {
        None => {
            writer.script.end = writer.now;
            writer.script
        }
        Some(Stop::Header) => {
            let since = writer.get(random, "/", Some(Stop::Header));
            writer.now = since;
            writer.cut(HEADER, Limit::Header)
        }
        Some(Stop::Body) => {
            writer.upload(random, Some(Stop::Body));
            let script = writer.cut_request(BODY, Limit::Body);
            // Over HTTP/1 the connection ends with the answer.
            if script.is_http2 { idle_after(script, BODY) } else { script }
        }
        Some(Stop::Handler) => {
            writer.get(random, "/never", None);
            idle_after(writer.cut_request(HANDLER, Limit::Handler), HANDLER)
        }
        Some(Stop::Reading) => {
            writer.script.reads_until = Some(writer.now);
            writer.get(random, "/endless", None);
            // The head of the response has come, but nobody reads it.
            writer.script.answers -= 1;
            if is_http2 {
                idle_after(writer.cut_request(RESPONSE, Limit::Response), RESPONSE)
            } else {
                writer.cut(RESPONSE, Limit::Response)
            }
        }
        Some(Stop::Silent | Stop::Idle) => {
            // Its last request ended before the pause, or it has sent only the preface.
            if writer.script.sends.is_empty() {
                return Script { end: writer.now, ..writer.script };
            }
            let last = writer.script.sends.last().map_or(begin, |&(at, _)| at);
            writer.now = last;
            writer.cut(IDLE, Limit::Idle)
        }
    }
}

/// The connection goes on after the cut of its last request, and is idle then.
fn idle_after(mut script: Script, limit: u64) -> Script {
    let last = script.cuts.last().map_or(0, |&(at, _)| at);
    debug_assert!(last >= limit);
    script.cuts.push((last + IDLE, Limit::Idle));
    script.end = last + IDLE + 20_000;
    script
}

struct Writer {
    script: Script,
    now: u64,
    stream: u32,
}

impl Writer {
    fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.script.sends.push((self.now, bytes.into()));
    }

    /// The connection is cut at the end of a limit that began now.
    fn cut(mut self, limit: u64, name: Limit) -> Script {
        self.script.cuts.push((self.now + limit, name));
        self.script.end = self.now + limit + 20_000;
        self.script
    }

    /// The request is cut, and answered.
    fn cut_request(mut self, limit: u64, name: Limit) -> Script {
        self.script.cuts.push((self.now + limit, name));
        self.script.end = self.now + limit + 1;
        self.script
    }

    /// A request without a body, its header in some pieces. Returns the time of the first one.
    fn get(&mut self, random: &mut Random, path: &str, stop: Option<Stop>) -> u64 {
        let bytes = match self.script.is_http2 {
            true => frames::get(self.stream, path),
            false => format!("GET {path} HTTP/1.1\r\nhost: server\r\n\r\n").into_bytes(),
        };
        self.header(random, bytes, stop)
    }

    fn header(&mut self, random: &mut Random, mut bytes: Vec<u8>, stop: Option<Stop>) -> u64 {
        self.stream += 2;
        let since = self.now;
        let mut left = pause(random, HEADER);
        for _ in 0..random.below(3) {
            // One byte of POST could be one of the preface of HTTP/2.
            let piece = (2 + random.below(bytes.len() as u64 / 2) as usize).min(bytes.len() - 1);
            let rest = bytes.split_off(piece);
            self.send(std::mem::replace(&mut bytes, rest));
            let wait = 1 + random.below(left.max(2) - 1);
            self.now += wait;
            left -= wait.min(left);
        }
        if stop == Some(Stop::Header) {
            bytes.pop();
        } else {
            self.script.answers += 1;
        }
        self.send(bytes);
        since
    }

    /// A request with a body in some chunks.
    fn upload(&mut self, random: &mut Random, stop: Option<Stop>) {
        let chunks = 1 + random.below(4) as usize;
        let stream = self.stream;
        let header = match self.script.is_http2 {
            true => frames::post(stream, "/echo"),
            false => {
                format!("POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: {chunks}\r\n\r\n")
                    .into_bytes()
            }
        };
        self.header(random, header, None);
        let sent = if stop.is_some() { chunks - 1 } else { chunks };
        for chunk in 0..sent {
            self.now += pause(random, BODY);
            let is_last = chunk + 1 == chunks;
            let bytes = match self.script.is_http2 {
                true => {
                    let flags = if is_last { END_STREAM } else { 0 };
                    frames::frame(frames::DATA, flags, stream, b"x")
                }
                false => vec![b'x'],
            };
            self.send(bytes);
        }
    }
}
