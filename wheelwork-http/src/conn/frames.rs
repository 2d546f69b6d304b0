//! `Frames`: where the frames and header blocks of HTTP/2 end (RFC 9113 sections 4.1 and 4.3).
//!
//! It follows the bytes that hyper reads, so that limits apply to clients that send a header byte by byte, or
//! many frames of no request. It checks nothing: h2 does.

use super::window::Window;

const HEAD: usize = 9;
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frames {
    head: [u8; HEAD],
    /// The bytes of the head that were read.
    filled: usize,
    /// The bytes of the payload that were not read.
    left: usize,
    /// A header block has begun and not ended.
    in_block: bool,
    /// The last HEADERS frame has begun a stream.
    of_request: bool,
    /// Since the last request, the begin of a frame that came alone was no request's.
    is_doubted: bool,
    /// How many of the last bytes were the payload of DATA.
    pub(super) data: usize,
    pub(super) window: Window,
    pub(super) heads: Heads,
    /// The highest stream with a header.
    pub(crate) last_stream: u32,
}

/// The frames whose heads were completed by the last bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heads {
    /// Frames of DATA with bytes.
    pub(super) data: u32,
    /// The first frames of new streams.
    pub(super) requests: u32,
    /// The others, also empty DATA: h2 has no limit for these before 0.4.16.
    pub(super) control: u32,
}

/// What is incomplete after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// Nothing that has a limit: frames have ended, or DATA goes on.
    None,
    /// A frame or a header block, which began in these bytes.
    Begun,
    /// The frame or the header block that was incomplete before.
    Earlier,
}

impl Frames {
    /// Follows some bytes.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Open {
        let mut is_earlier = self.is_open();
        let mut came_alone = self.filled > 0;
        self.data = 0;
        self.heads = Heads::default();
        loop {
            let taken = self.left.min(bytes.len());
            self.data += if self.head[3] == DATA { taken } else { 0 };
            self.left -= taken;
            bytes = &bytes[taken..];
            if self.left > 0 || bytes.is_empty() {
                break;
            }
            is_earlier &= self.is_open();
            let taken = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled < HEAD {
                break;
            }
            self.is_doubted |= came_alone;
            came_alone = false;
            self.begin_payload();
        }
        match self.is_open() {
            false => Open::None,
            true if is_earlier => Open::Earlier,
            true => Open::Begun,
        }
    }

    fn is_open(&self) -> bool {
        let in_frame = self.left > 0 && self.head[3] != DATA;
        self.in_block || self.in_head() || in_frame
    }

    /// Whether the head of a frame is open that is not, or may not be, of DATA: its fourth byte tells the kind.
    fn in_head(&self) -> bool {
        self.filled > 0 && (self.filled <= 3 || self.head[3] != DATA)
    }

    /// Whether the header block of a new stream is open, or a frame that may be the first of one.
    pub(super) fn in_request(&self) -> bool {
        let in_frame = self.left > 0 && matches!(self.head[3], HEADERS | CONTINUATION);
        self.of_request && (self.in_block || in_frame) || self.in_head() && !self.is_doubted
    }

    fn begin_payload(&mut self) {
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        self.filled = 0;
        self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
        let mut is_request = false;
        if kind == HEADERS {
            let stream = u32::from_be_bytes(stream) & !(1 << 31);
            is_request = stream > self.last_stream;
            self.of_request = is_request;
            self.is_doubted &= !self.of_request;
            self.last_stream = self.last_stream.max(stream);
        }
        if kind == HEADERS || kind == CONTINUATION {
            self.in_block = flags & END_HEADERS == 0;
        }
        match kind {
            DATA if self.left > 0 => self.heads.data += 1,
            _ if is_request => self.heads.requests += 1,
            _ => self.heads.control += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, length: u8) -> Vec<u8> {
        let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, stream];
        bytes.resize(HEAD + usize::from(length), b'x');
        bytes
    }

    #[test]
    fn a_frame_is_open_from_its_first_byte_to_its_last() {
        let mut frames = Frames::default();
        let settings = frame(4, 0, 0, 6);
        assert_eq!(frames.read(&settings[..1]), Open::Begun);
        assert_eq!(frames.read(&settings[1..9]), Open::Earlier);
        assert_eq!(frames.read(&settings[9..14]), Open::Earlier);
        assert_eq!(frames.read(&settings[14..]), Open::None);
    }

    #[test]
    fn a_header_block_goes_on_over_its_continuations() {
        let mut frames = Frames::default();
        assert_eq!(frames.read(&frame(HEADERS, 0, 5, 3)), Open::Begun);
        assert!(frames.in_request());
        assert_eq!(frames.read(&frame(CONTINUATION, 0, 5, 0)), Open::Earlier);
        assert!(frames.in_request());
        assert_eq!(frames.read(&frame(CONTINUATION, END_HEADERS, 5, 2)), Open::None);
        assert_eq!(frames.last_stream, 5);
        assert!(!frames.in_request());
        assert_eq!(frames.read(&frame(HEADERS, END_HEADERS, 5, 9)[..12]), Open::Begun);
        assert!(!frames.in_request(), "trailers");
    }

    #[test]
    fn frames_are_counted_when_their_heads_are_complete() {
        let mut frames = Frames::default();
        let ping = frame(6, 0, 0, 8);
        let trailers = frame(HEADERS, END_HEADERS, 1, 3);
        let first = [frame(HEADERS, END_HEADERS, 1, 9), frame(DATA, 0, 1, 0), ping[..8].to_vec()];
        frames.read(&first.concat());
        assert_eq!(
            frames.heads,
            Heads { requests: 1, control: 1, ..Heads::default() },
            "DATA is empty"
        );
        frames.read(&[ping[8..].to_vec(), trailers, frame(DATA, 0, 1, 1)].concat());
        assert_eq!(frames.heads, Heads { control: 2, data: 1, ..Heads::default() });
    }

    #[test]
    fn data_is_never_open_and_a_frame_after_another_has_just_begun() {
        let mut frames = Frames::default();
        let data = frame(DATA, 0, 1, 200);
        let mut cut = frames;
        assert_eq!(cut.read(&data[..3]), Open::Begun, "it may be a frame of any kind");
        assert_eq!(cut.read(&data[3..4]), Open::None);
        assert!(!cut.in_request());
        assert_eq!(cut.read(&data[4..8]), Open::None);
        assert_eq!(frames.read(&data[..HEAD]), Open::None);
        assert_eq!(frames.data, 0);
        assert_eq!(frames.read(&data[HEAD..100]), Open::None);
        assert_eq!(frames.data, 100 - HEAD);
        let mut bytes = data[100..].to_vec();
        bytes.extend(&frame(HEADERS, END_HEADERS, 3, 9)[..10]);
        assert_eq!(frames.read(&bytes), Open::Begun);
        assert_eq!(frames.read(&[b'x'; 8]), Open::None);
        assert_eq!(frames.data, 0);
        let ping = frame(6, 0, 0, 8);
        assert_eq!(frames.read(&[&ping[12..], &[]].concat()[..0]), Open::None);
        assert_eq!(frames.read(&[ping.clone(), ping[..3].to_vec()].concat()), Open::Begun);
        assert_eq!(frames.read(&[ping[3..].to_vec(), ping[..3].to_vec()].concat()), Open::Begun);
    }
}
