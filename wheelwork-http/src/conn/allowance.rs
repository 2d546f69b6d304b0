//! `Allowance`: how many control frames a client of HTTP/2 may send: those that are neither DATA with bytes nor the
//! first frame of a request. They cost the client little, and each must be handled. A connection begins with those of
//! 10 s. When none is left, it is cut off.
//!
//! Honest clients send them in response to something. Each such event gives more than any client sends for it:
//!
//! | what | gives |
//! |---|---|
//! | a request | 20: its priority, its changes, its windows, its reset |
//! | a chunk of a response, or one or two writes in a tunnel | 8: a ping, and a window for the stream and for the connection |
//! | 64 bytes that the server writes | 1: windows for a part of a frame |
//! | a frame of DATA that is not empty | 1: a ping |
//! | time, once all others are used up | those of the limit, of the last 10 s at most |
//!
//! A reply to a control frame gives less than one: the answer to a ping has 17 bytes, and DATA for a window of one byte
//! has 10.

use crate::time::nanos;
use std::time::Duration;

pub(super) const REQUEST: u64 = 20;
pub(super) const CHUNK: u32 = 8;
const BYTES: u64 = 64;
const SAVED: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// The frames that are left.
    left: u64,
    /// Up to when the time has been counted.
    since: u64,
    /// The bytes that were written and not counted.
    written: u64,
}

/// The client has sent more than it may.
pub(super) struct Flood;

impl Allowance {
    pub(super) fn new(per_second: u32, now: u64) -> Self {
        Self { left: frames_of(per_second, nanos(SAVED)), since: now, written: 0 }
    }

    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    pub(super) fn give(&mut self, frames: u64) {
        self.left = self.left.saturating_add(frames);
    }

    /// Takes the frames that have come. Only if too few are left, `chunks` and `now` are called: what the chunks have
    /// given since the last call, and the time.
    pub(super) fn take(
        &mut self,
        frames: u64,
        per_second: u32,
        chunks: impl FnOnce() -> u64,
        now: impl FnOnce() -> u64,
    ) -> Result<(), Flood> {
        if self.left < frames {
            self.give(chunks() + self.written / BYTES);
            self.written %= BYTES;
        }
        if self.left < frames {
            let now = now();
            let passed = now.saturating_sub(self.since).min(nanos(SAVED));
            self.give(frames_of(per_second, passed));
            self.since = now;
        }
        self.left = self.left.checked_sub(frames).ok_or(Flood)?;
        Ok(())
    }
}

fn frames_of(per_second: u32, nanos: u64) -> u64 {
    (u128::from(per_second.max(1)) * u128::from(nanos) / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn is_flood(allowance: &mut Allowance, frames: u64, chunks: u64, now: u64) -> bool {
        allowance.take(frames, 100, || chunks, || now).is_err()
    }

    #[test]
    fn time_gives_frames_up_to_those_of_ten_seconds() {
        let mut allowance = Allowance::new(100, SECOND);
        assert!(!is_flood(&mut allowance, 1000, 0, SECOND));
        assert!(!is_flood(&mut allowance, 100, 0, 2 * SECOND));
        assert!(!is_flood(&mut allowance, 1000, 0, 60 * SECOND));
        assert!(is_flood(&mut allowance, 1, 0, 60 * SECOND));
    }

    #[test]
    fn what_was_written_gives_frames_without_an_end() {
        let mut allowance = Allowance::new(1, SECOND);
        assert!(!is_flood(&mut allowance, 10, 0, SECOND));
        allowance.wrote(64_000);
        allowance.give(20);
        assert!(!is_flood(&mut allowance, 1000 + 20 + 8, 8, SECOND));
        allowance.wrote(32);
        assert!(!is_flood(&mut allowance, 0, 0, SECOND));
        allowance.wrote(32);
        assert!(!is_flood(&mut allowance, 1, 0, SECOND));
        assert!(is_flood(&mut allowance, 1, 0, SECOND));
    }

    #[test]
    fn a_ping_does_not_pay_for_the_next_one() {
        let mut allowance = Allowance::new(100, SECOND);
        let flood = (0..).take_while(|_| {
            allowance.wrote(17);
            !is_flood(&mut allowance, 1, 0, SECOND)
        });
        assert_eq!(flood.count(), 1361);
    }
}
