//! `Window`: what a client of HTTP/2 may still send on its connection (RFC 9113 section 6.9).
//!
//! It follows the frames that h2 writes, and the bytes of DATA that come. The windows of streams need no such account: a
//! service that waits for a body has read what came, so h2 has opened that window again.

const HEAD: usize = 9;
/// A frame of WINDOW_UPDATE.
const UPDATE: usize = HEAD + 4;
const DATA: u8 = 0x0;
const WINDOW_UPDATE: u8 = 0x8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    left: i64,
    /// The begin of the frame that is written.
    begin: [u8; UPDATE],
    filled: u8,
    /// The bytes of its payload that were not written.
    payload: u32,
    /// The bytes of DATA that were written, and that nobody has counted.
    pub(super) data: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { left: 65_535, begin: [0; UPDATE], filled: 0, payload: 0, data: 0 }
    }
}

impl Window {
    /// The payload of DATA has come. Returns whether it has closed the window.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let was_open = self.left > 0;
        self.left -= bytes as i64;
        was_open && self.left <= 0
    }

    /// h2 has written bytes. Returns whether they have opened the window.
    pub(super) fn wrote(&mut self, mut bytes: &[u8]) -> bool {
        let was_closed = self.left <= 0;
        while !bytes.is_empty() {
            if self.payload > 0 {
                let passed = (self.payload as usize).min(bytes.len());
                self.payload -= passed as u32;
                self.data += if self.begin[3] == DATA { passed as u64 } else { 0 };
                bytes = &bytes[passed..];
                continue;
            }
            let filled = usize::from(self.filled);
            let length = if filled < HEAD { HEAD } else { UPDATE };
            let taken = (length - filled).min(bytes.len());
            self.begin[filled..filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken as u8;
            bytes = &bytes[taken..];
            if filled + taken == length {
                self.has_begun();
            }
        }
        was_closed && self.left > 0
    }

    /// A head was written, or a whole WINDOW_UPDATE.
    fn has_begun(&mut self) {
        let [high, middle, low, kind, _, s1, s2, s3, s4, increment @ ..] = self.begin;
        if kind == WINDOW_UPDATE && [s1, s2, s3, s4] == [0; 4] {
            if usize::from(self.filled) == HEAD {
                return;
            }
            self.left += i64::from(u32::from_be_bytes(increment));
        } else {
            self.payload = u32::from_be_bytes([0, high, middle, low]);
        }
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(stream: u8, increment: u32) -> Vec<u8> {
        let mut frame = vec![0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, stream];
        frame.extend(increment.to_be_bytes());
        frame
    }

    #[test]
    fn only_an_update_of_the_connection_opens_the_window_however_it_is_cut() {
        let data = [&[0, 0, 13, 0, 0, 0, 0, 0, 1][..], &update(0, 7)].concat(); // looks like one
        let bytes =
            [&data[..], &update(1, 7), &[0, 0, 0, 4, 1, 0, 0, 0, 0], &update(0, 7)].concat();
        for piece in 1..=bytes.len() {
            let mut window = Window::default();
            assert!(!window.take(65_534));
            assert!(window.take(1));
            assert!(!window.take(3), "it is closed already");
            let opened: Vec<bool> = bytes.chunks(piece).map(|piece| window.wrote(piece)).collect();
            assert_eq!(opened.iter().position(|&is_open| is_open), Some(opened.len() - 1));
            assert_eq!((window.left, window.data), (4, 13));
        }
    }
}
