//! Scripts, and what the model expects of them. Times are milliseconds.

use crate::app::MUCH;
use crate::frames::{self, END_STREAM, frame};
use crate::link;
use crate::pipe::BUFFER;
use crate::world::SECOND;
use kit::Random;
use std::time::Duration;
use wheelwork_http::{Limit, Limits, Rate};

/// How long a connection of HTTP/2 may take to end after a soft close.
const LINGER: u64 = 5_000;

/// The window of a stream.
const WINDOW: u32 = 120_000;

const UPGRADE: &str = "upgrade: any\r\nconnection: upgrade\r\n";

/// The limits of one history, in milliseconds. Each may be shorter or longer than each other. And when its server stands
/// still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) handshake: u64,
    header: u64,
    pub(crate) idle: u64,
    handler: u64,
    pub(crate) body: u64,
    pub(crate) response: u64,
    tunnel: u64,
    /// The least bytes a second, up and down, and the window of that. It is longer than the longest pauses, so that
    /// these come first.
    rate: u64,
    pub(crate) window: u64,
    stall_begin: u64,
    pub(crate) stall_end: u64,
    /// Whether the clock stands still too, as if the process was stopped.
    pub(crate) is_stopped: bool,
}

impl Times {
    pub(crate) fn random(random: &mut Random) -> Self {
        let mut time = || 3_000 + random.below(60_000);
        let (body, response) = (time(), time());
        let (handshake, header, idle, handler, tunnel) = (time(), time(), time(), time(), time());
        let window = body.max(response) + 1 + random.below(20_000);
        let stall_begin = 1_000 + random.below(300_000);
        Self {
            handshake,
            header,
            idle,
            handler,
            body,
            response,
            tunnel,
            rate: 1 + random.below(4),
            window,
            stall_begin,
            stall_end: stall_begin + random.below(100_000),
            is_stopped: random.one_in(2),
        }
    }

    pub(crate) fn is_stalled(&self, at: u64) -> bool {
        (self.stall_begin..self.stall_end).contains(&at)
    }

    /// When the server sees what happens then.
    pub(crate) fn seen(&self, at: u64) -> u64 {
        if self.is_stalled(at) { self.stall_end } else { at }
    }

    /// When a limit passes that begins with what a client does at `since`.
    pub(crate) fn passes(&self, since: u64, limit: u64) -> u64 {
        self.seen(self.seen(since) + limit)
    }

    /// The bytes of a window that are enough.
    pub(crate) fn enough(&self) -> u64 {
        (self.rate * self.window).div_ceil(1_000)
    }

    pub(crate) fn limits(&self) -> Limits {
        let millis = Duration::from_millis;
        let rate = Rate::new(self.rate, millis(self.window));
        Limits::none()
            .handshake(millis(self.handshake))
            .header(millis(self.header))
            .idle(millis(self.idle))
            .handler(millis(self.handler))
            .body(millis(self.body))
            .body_rate(rate)
            .response_rate(rate)
            .response(millis(self.response))
            .tunnel(millis(self.tunnel))
            .shutdown(SECOND)
    }
}

/// What one client does.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) is_http2: bool,
    /// Connects at the first time, and then acts at each.
    pub(crate) begin: u64,
    pub(crate) acts: Vec<(u64, Act)>,
    /// When a hostile client begins to be one.
    pub(crate) stop: u64,
    /// From this time on, reads only what it takes expressly.
    pub(crate) reads_until: Option<u64>,
    /// The shutdown of its socket waits until it has taken all.
    pub(crate) is_waited_for: bool,
    /// Leaves at this time, if the server has not closed the connection.
    pub(crate) end: u64,
    /// The server closes the connection at this time and not before, by the model.
    pub(crate) closed: Option<u64>,
    /// The cuts, by the model.
    pub(crate) cuts: Vec<(u64, Limit)>,
    /// The responses that it gets, by the model.
    pub(crate) answers: usize,
}

/// What a client does at a time.
#[derive(Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// Ends its direction.
    End,
    /// Takes so many bytes, which have come.
    Take(usize),
    TakeAll,
}

/// Where a hostile client stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Silent,
    Header,
    Body,
    /// Sends a body below the least rate.
    Slow,
    Handler,
    Reading,
    Idle,
    /// Sends bytes that are no request.
    Hiding,
    Tunnel,
    /// Does not take the last response, after which the server shuts the socket down.
    Ending,
}

const STOPS: [Stop; 10] = [
    Stop::Silent,
    Stop::Header,
    Stop::Body,
    Stop::Slow,
    Stop::Handler,
    Stop::Reading,
    Stop::Idle,
    Stop::Hiding,
    Stop::Tunnel,
    Stop::Ending,
];

/// A time below a limit, often close to it.
pub(crate) fn pause(random: &mut Random, limit: u64) -> u64 {
    match random.below(3) {
        0 => 1 + random.below(100),
        1 => limit - 1 - random.below(3),
        _ => 1 + random.below(limit - 1),
    }
}

pub(crate) fn script(random: &mut Random, times: &Times) -> Script {
    loop {
        let script = any_script(random, times);
        // When the server sees a hostile client is known only for what comes before a stall or after it.
        let is_known = |&(at, _): &(u64, Act)| at < script.stop || !times.is_stalled(at);
        if script.acts.iter().all(is_known) {
            return script;
        }
    }
}

fn any_script(random: &mut Random, times: &Times) -> Script {
    let is_http2 = random.one_in(2);
    let begin = random.below(60_000);
    let mut writer = Writer {
        script: Script { is_http2, begin, stop: u64::MAX, ..Script::default() },
        times: *times,
        now: begin,
        stream: 1,
    };
    if is_http2 && random.one_in(4) {
        return link::script(random, writer);
    }
    let stop = random.one_in(2).then(|| STOPS[random.below(10) as usize]);
    if stop == Some(Stop::Silent) {
        return writer.cut(times.handshake, Limit::Handshake);
    }
    writer.now += pause(random, times.handshake);
    if is_http2 {
        // Windows for `/big`, but not for `/endless`.
        let window = [&[0, 4][..], &WINDOW.to_be_bytes()].concat();
        let settings = frames::frame(frames::SETTINGS, 0, 0, &window);
        let window = frames::window_update(0, 1 << 30);
        writer.send([frames::PREFACE, &settings, &window].concat());
        writer.now += pause(random, times.idle);
    }
    for _ in 0..random.below(4) {
        match random.below(3) {
            0 => writer.upload(random, None),
            1 => _ = writer.get(random, "/", None),
            _ => _ = writer.get(random, "/big", None),
        }
        writer.now = times.seen(writer.now); // waits for the answer
        writer.now += pause(random, times.idle);
    }
    if stop.is_some() {
        writer.script.stop = writer.now;
    }
    match stop {
        None => {
            match random.below(4) {
                0 | 1 => _ = writer.tunnel(random, false),
                2 => writer.ending(random, false),
                _ => {}
            }
            writer.script.end = writer.now;
            writer.script
        }
        Some(Stop::Tunnel) => {
            let (limit, name) = writer.tunnel(random, true);
            writer.cut(limit, name)
        }
        Some(Stop::Ending) => {
            writer.ending(random, true);
            writer.cut(times.response, Limit::Response)
        }
        Some(Stop::Header) => {
            let since = writer.get(random, "/", Some(Stop::Header));
            writer.now = since;
            writer.cut(times.header, Limit::Header)
        }
        Some(Stop::Body) => {
            writer.upload(random, Some(Stop::Body));
            let script = writer.cut_request(times.body, Limit::Body);
            // Over HTTP/1 the connection ends with the answer.
            if script.is_http2 { idle_after(script, times) } else { script }
        }
        Some(Stop::Slow) => {
            let script = writer.slow_upload(random);
            if script.is_http2 { idle_after(script, times) } else { script }
        }
        Some(Stop::Handler) => {
            writer.get(random, "/never", None);
            idle_after(writer.cut_request(times.handler, Limit::Handler), times)
        }
        Some(Stop::Reading) => {
            writer.script.reads_until = Some(writer.now);
            writer.get(random, "/endless", None);
            // The head of the response has come, but nobody reads it.
            writer.script.answers -= 1;
            if is_http2 {
                idle_after(writer.cut_request(times.response, Limit::Response), times)
            } else {
                writer.cut(times.response, Limit::Response)
            }
        }
        Some(Stop::Silent | Stop::Idle | Stop::Hiding) => {
            // Its last request ended before the pause, or it has sent only the preface.
            if writer.script.acts.is_empty() {
                return Script { end: writer.now, ..writer.script };
            }
            let last = writer.script.acts.last().map_or(begin, |&(at, _)| at);
            let last = times.seen(last);
            writer.now = last;
            if stop == Some(Stop::Hiding) {
                writer.hide(random, last + times.idle);
                writer.now = last;
            }
            writer.cut(times.idle, Limit::Idle)
        }
    }
}

/// The connection goes on after the cut of its last request, and is idle then.
fn idle_after(mut script: Script, times: &Times) -> Script {
    let last = script.cuts.last().map_or(0, |&(at, _)| at);
    let idle = times.passes(last, times.idle);
    script.close_at(idle, Limit::Idle, times);
    script
}

impl Script {
    /// A limit ends the connection. After GOAWAY, HTTP/2 lingers for the answer to a ping, which does not come.
    fn close_at(&mut self, at: u64, name: Limit, times: &Times) {
        let lingers = self.is_http2 && name == Limit::Idle;
        let closed = if lingers { times.passes(at, LINGER) } else { at };
        self.cuts.push((at, name));
        self.closed = Some(closed);
        self.end = closed + 20_000;
    }
}

pub(crate) struct Writer {
    pub(crate) script: Script,
    pub(crate) times: Times,
    pub(crate) now: u64,
    stream: u32,
}

impl Writer {
    fn act(&mut self, act: Act) {
        self.script.acts.push((self.now, act));
    }

    pub(crate) fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.act(Act::Send(bytes.into()));
    }

    /// The connection is cut at the end of a limit that began now.
    fn cut(mut self, limit: u64, name: Limit) -> Script {
        let at = self.times.passes(self.now, limit);
        self.script.close_at(at, name, &self.times);
        self.script
    }

    /// The request is cut, and answered.
    fn cut_request(mut self, limit: u64, name: Limit) -> Script {
        let at = self.times.passes(self.now, limit);
        self.script.cuts.push((at, name));
        self.script.end = at + 1;
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
        let mut left = pause(random, self.times.header);
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

    /// An upgrade, or CONNECT within HTTP/2, and some bytes in one direction or in both. The last ones were just now.
    /// Returns the limit that runs then.
    fn tunnel(&mut self, random: &mut Random, stops: bool) -> (u64, Limit) {
        let Times { idle, tunnel, .. } = self.times;
        let (stream, is_http2) = (self.stream, self.script.is_http2);
        let kind = ["echo", "half", "after", "forever"][random.below(4) as usize];
        let request = match is_http2 {
            true => frames::connect(stream, &format!("{kind}:1")),
            false => format!("GET /upgrade?{kind} HTTP/1.1\r\nhost: server\r\n{UPGRADE}\r\n")
                .into_bytes(),
        };
        self.header(random, request, None);
        self.now = self.times.seen(self.now);
        // Within HTTP/2, a tunnel is no request any more when its service has handed over all that it sends.
        let of_half = if is_http2 { (idle, Limit::Idle) } else { (tunnel, Limit::Tunnel) };
        let mut limit = if kind == "half" { of_half } else { (tunnel, Limit::Tunnel) };
        let is_up = matches!(kind, "echo" | "half");
        if is_up {
            for _ in 0..random.below(4) {
                self.now += pause(random, limit.0);
                self.tunnel_bytes(stream, 0);
            }
            // Over HTTP/1, that is the end of the connection.
            if stops && !is_http2 || random.one_in(2) {
                return limit;
            }
        }
        self.now += pause(random, limit.0);
        if is_http2 {
            self.tunnel_bytes(stream, END_STREAM);
        } else {
            self.act(Act::End);
            self.script.reads_until = (!is_up).then_some(self.now);
        }
        limit = if kind == "forever" { limit } else { of_half };
        if !is_up {
            self.now = self.times.seen(self.now);
            self.take_rest(random, stream, limit.0, stops);
        }
        if !is_http2 && kind != "forever" && !stops {
            self.ends_by_itself();
        }
        limit
    }

    fn tunnel_bytes(&mut self, stream: u32, flags: u8) {
        let is_http2 = self.script.is_http2;
        self.send(if is_http2 { frame(frames::DATA, flags, stream, b"x") } else { b"x".to_vec() });
    }

    /// Takes what a tunnel brings, or opens its window, in some steps, and if it does not stop, up to the end.
    fn take_rest(&mut self, random: &mut Random, stream: u32, limit: u64, stops: bool) {
        // The system holds so much, or the client's window.
        let is_http2 = self.script.is_http2;
        let mut left = MUCH - if is_http2 { WINDOW as usize } else { BUFFER };
        let steps = random.below(4);
        for step in 0..=steps {
            let is_last = step == steps;
            if is_last && stops {
                return;
            }
            self.now += pause(random, limit);
            let bytes = if is_last { left } else { 1 + random.below(left as u64 / 4) as usize };
            left -= bytes;
            match is_http2 {
                true => self.send(frames::window_update(stream, bytes as u32)),
                false => self.act(Act::Take(bytes)),
            }
        }
    }

    /// A last response, after which the server shuts the socket down, and waits until the client has taken all.
    fn ending(&mut self, random: &mut Random, stops: bool) {
        let asks = !self.script.is_http2 && random.one_in(2);
        self.script.is_waited_for = true;
        let request = match (self.script.is_http2, asks) {
            (true, _) => frames::get(self.stream, "/big"),
            (false, true) => {
                b"GET /big HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n".to_vec()
            }
            (false, false) => b"GET /big HTTP/1.1\r\nhost: server\r\n\r\n".to_vec(),
        };
        self.header(random, request, None);
        self.script.reads_until = Some(self.now);
        self.now = self.times.seen(self.now);
        if !asks {
            self.now += pause(random, self.times.idle);
            self.act(Act::End);
            self.now = self.times.seen(self.now);
        }
        let some = random.below(4);
        for _ in 0..some {
            self.now += pause(random, self.times.response);
            self.act(Act::Take(self.times.enough() as usize));
        }
        if !stops {
            self.now += pause(random, self.times.response);
            self.act(Act::TakeAll);
            self.ends_by_itself();
        } else if some == 0 {
            self.script.answers -= 1;
        }
    }

    /// The server closes the connection when it sees that.
    fn ends_by_itself(&mut self) {
        self.now = self.times.seen(self.now);
        self.script.closed = Some(self.now);
        self.now += 1;
    }

    /// Ends a frame and begins the next one in each message, or sends empty lines.
    fn hide(&mut self, random: &mut Random, end: u64) {
        let frame = match random.below(2) {
            0 if self.stream > 1 => frames::data(self.stream - 2, 1),
            _ => frames::frame(frames::PING, frames::ACK, 0, &[0; 8]),
        };
        let cut = 1 + random.below(9) as usize;
        let mut message = frame[..cut].to_vec();
        for number in 0.. {
            let most = self.times.header.min(self.times.idle);
            // The first begin of a frame may be a request's.
            self.now += if number < 2 { 1 } else { pause(random, most) };
            if self.now + 1 >= end {
                // The header's limit is not to be the first.
                self.now = end - 1;
                let rest = if self.script.is_http2 { frame[cut..].to_vec() } else { Vec::new() };
                return self.send(rest);
            }
            self.send(if self.script.is_http2 { message } else { b"\r\n".to_vec() });
            message = [&frame[cut..], &frame[..cut]].concat();
        }
    }

    /// A request with a body in some chunks, which is answered at its end or at once.
    fn upload(&mut self, random: &mut Random, stop: Option<Stop>) {
        let path = if random.one_in(2) { "/accept" } else { "/echo" };
        let chunks = 1 + random.below(4) as usize;
        let chunk = vec![b'x'; self.times.enough() as usize];
        let stream = self.stream;
        self.post(random, path, chunks * chunk.len());
        if stop.is_some() && path == "/echo" && !self.script.is_http2 {
            self.script.answers -= 1; // 408
        }
        let sent = if stop.is_some() { chunks - 1 } else { chunks };
        for number in 0..sent {
            self.now += pause(random, self.times.body);
            let flags = if number + 1 == chunks { END_STREAM } else { 0 };
            self.chunk(flags, stream, &chunk);
        }
    }

    /// Stays below the least rate, but within the longest pause, for a whole window.
    fn slow_upload(mut self, random: &mut Random) -> Script {
        let stream = self.stream;
        self.post(random, "/echo", 1_000);
        self.script.answers -= usize::from(!self.script.is_http2); // 408
        let since = self.now;
        let body = self.times.body;
        loop {
            self.now += body / 2 + random.below(body / 2);
            if self.now >= since + self.times.window {
                break;
            }
            self.chunk(0, stream, b"x");
        }
        // If both pass in a stall, the pause is judged first.
        let last = self.script.acts.last().map_or(since, |&(at, _)| at);
        let window = self.times.window;
        let is_pause = self.times.passes(last, body) == self.times.passes(since, window);
        self.now = since;
        self.cut_request(window, if is_pause { Limit::Body } else { Limit::BodyRate })
    }

    fn post(&mut self, random: &mut Random, path: &str, length: usize) {
        let header = match self.script.is_http2 {
            true => frames::post(self.stream, path),
            false => {
                format!("POST {path} HTTP/1.1\r\nhost: server\r\ncontent-length: {length}\r\n\r\n")
                    .into_bytes()
            }
        };
        self.header(random, header, None);
    }

    fn chunk(&mut self, flags: u8, stream: u32, bytes: &[u8]) {
        self.send(match self.script.is_http2 {
            true => frames::frame(frames::DATA, flags, stream, bytes),
            false => bytes.to_vec(),
        });
    }
}
