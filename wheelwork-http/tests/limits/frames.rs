//! A client of HTTP/2 that is written frame by frame, so that it can stop anywhere.

use crate::world::{Client, World};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header block (RFC 7541): all fields by indices of the static table, the path as a literal. For CONNECT, the path
/// is the authority.
pub(crate) fn block(method: &str, path: &str) -> Vec<u8> {
    let mut block = match method {
        "GET" => vec![0x82],
        "POST" => vec![0x83],
        // A literal without indexing, with the name of the table.
        method => [&[0x02, method.len() as u8], method.as_bytes()].concat(),
    };
    if method == "CONNECT" {
        block.extend([0x01, path.len() as u8]);
    } else {
        block.extend([0x86, 0x04, path.len() as u8]);
    }
    block.extend(path.as_bytes());
    block
}

pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block("GET", path))
}

pub(crate) fn post(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block("POST", path))
}

pub(crate) fn connect(stream: u32, authority: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block("CONNECT", authority))
}

pub(crate) fn data(stream: u32, length: usize) -> Vec<u8> {
    frame(DATA, 0, stream, &vec![b'x'; length])
}

pub(crate) fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

impl World {
    /// A client of HTTP/2 with streams of this window.
    pub(crate) async fn connect_http2_with_window(&self, window: u32) -> Client {
        let mut client = self.connect().await;
        let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
        client.send([PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat()).await;
        client.send(frame(SETTINGS, ACK, 0, &[])).await;
        client.received();
        client
    }

    pub(crate) async fn connect_http2(&self) -> Client {
        self.connect_http2_with_window(65_535).await
    }
}

impl Client {
    /// The frames that have come so far, without WINDOW_UPDATE. Answers pings.
    pub(crate) async fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let bytes = self.received();
            if bytes.is_empty() {
                return frames;
            }
            for frame in parse(&bytes) {
                if frame.kind == PING && frame.flags & ACK == 0 {
                    self.send(self::frame(PING, ACK, 0, &frame.payload)).await;
                } else if frame.kind != WINDOW_UPDATE {
                    frames.push(frame);
                }
            }
        }
    }
}

pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let [high, middle, low, kind, flags, s1, s2, s3, s4, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let stream = u32::from_be_bytes([*s1, *s2, *s3, *s4]);
        let length = length.min(rest.len());
        let (payload, rest) = rest.split_at(length);
        frames.push(Frame { kind: *kind, flags: *flags, stream, payload: payload.to_vec() });
        bytes = rest;
    }
    frames
}

pub(crate) fn kinds(frames: &[Frame]) -> Vec<u8> {
    frames.iter().map(|frame| frame.kind).collect()
}
