//! What the bytes of a client are: a header, a body, or nothing that a limit waits for. It is decided here alone.
//!
//! | bytes | are | so |
//! |---|---|---|
//! | before the protocol is known | the handshake's, and the first of a header | the handshake's limit, then the header's from the first byte |
//! | HTTP/1, a request is in flight | its body, or the next request, which waits for it | the body's limits, if somebody reads it |
//! | HTTP/1: the first ones after a body was dropped before its end | perhaps its rest | nothing |
//! | HTTP/1, no request is in flight: CR and LF | nothing (RFC 9112 section 2.2) | the connection stays idle |
//! | any other byte then | a header | the header's limit; not idle |
//! | HTTP/2: the header block of a new stream | a header | the header's limit; not idle |
//! | any other frame but DATA | nothing, but it must end | the header's limit |
//! | DATA | a body, if its stream has one | the body's limits; not silent, if all requests are tunnels, or if there is none any more and a tunnel was |
//! | after an upgrade | a tunnel's | not silent |

use super::allowance::{Allowance, Flood, REQUEST};
use super::frames::{Frames, Heads, Open};
use super::state::{Conn, Flags, UNSTAMPED};
use super::taking::Taking;
use crate::time::after;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is known of the bytes of HTTP/2, in both directions.
pub(super) struct Http2 {
    pub(super) frames: Frames,
    pub(super) allowance: Allowance,
    pub(super) taking: Taking,
    /// The poll of the connection in which h2 has read last.
    pub(super) read_in: u32,
}

impl Http2 {
    pub(super) fn new(conn: &Conn) -> Self {
        let per_second = conn.limits().control_frames.unwrap_or_default();
        // The preface is no frame.
        let allowance = Allowance::new(per_second, conn.born);
        Self { frames: Frames::default(), allowance, taking: Taking::default(), read_in: 0 }
    }
}

impl Conn {
    /// Bytes have come.
    #[inline]
    pub(super) fn came(
        self: &Arc<Self>,
        http2: Option<&mut Http2>,
        bytes: &[u8],
    ) -> Result<(), Flood> {
        if self.has(Flags::TUNNEL) {
            self.touch();
        } else if let Some(Http2 { frames, allowance, .. }) = http2 {
            self.frames_came(frames, bytes);
            return self.allow(frames.heads, allowance);
        } else if self.has(Flags::UNREAD) {
            self.take(Flags::UNREAD); // hyper reads once more, and closes if that is not the whole rest
        } else if self.in_flight.load(Ordering::Relaxed) == 0
            && self.header_since.load(Ordering::Relaxed) == 0
            && !bytes.iter().all(|byte| b"\r\n".contains(byte))
        {
            self.header_since.store(UNSTAMPED, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets the control frames pass, unless they are too many.
    fn allow(&self, heads: Heads, allowance: &mut Allowance) -> Result<(), Flood> {
        let Some(per_second) = self.limits().control_frames else { return Ok(()) };
        allowance.give(REQUEST * u64::from(heads.requests) + u64::from(heads.data));
        let chunks = || u64::from(self.allowed.swap(0, Ordering::Relaxed));
        allowance.take(heads.control.into(), per_second, chunks, || self.now())
    }

    fn frames_came(self: &Arc<Self>, frames: &mut Frames, bytes: &[u8]) {
        let open = frames.read(bytes);
        if frames.data > 0 {
            self.data_came(frames.data);
            if frames.window.take(frames.data) {
                self.window_closed();
            }
            self.touch_tunnels();
        }
        match open {
            Open::None => self.header_since.store(0, Ordering::Relaxed),
            Open::Begun => self.header_since.store(UNSTAMPED, Ordering::Relaxed),
            Open::Earlier => {}
        }
        if frames.in_request() {
            self.set(Flags::HEADER);
        } else if self.has(Flags::HEADER) {
            self.take(Flags::HEADER);
            // A request need not follow: h2 may have refused it.
            let idle_since = self.idle_since.load(Ordering::Relaxed);
            self.arm(after(idle_since, self.idle_limit()));
        }
    }
}
