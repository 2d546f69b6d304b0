//! What the bytes of a client are: a header, a body, or nothing that a limit waits for. It is decided here alone.
//!
//! | bytes | are | so |
//! |---|---|---|
//! | before the protocol is known | the handshake's, and the first of a header | the handshake's limit, then the header's from the first byte |
//! | HTTP/1, a request is in flight | its body, or the next request, which waits for it | the body's limits, if somebody reads it |
//! | HTTP/1, no request is in flight: CR and LF | nothing (RFC 9112 section 2.2) | the connection stays idle |
//! | any other byte then | a header | the header's limit; not idle |
//! | HTTP/2: the header block of a new stream | a header | the header's limit; not idle |
//! | any other frame but DATA | nothing, but it must end | the header's limit |
//! | DATA | a body, if its stream has one | the body's limits; not silent, if all requests are tunnels |
//! | after an upgrade | a tunnel's | not silent |

use super::frames::{Frames, Open};
use super::state::{Conn, Flags, UNSTAMPED};
use crate::time::after;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Conn {
    /// Bytes have come. HTTP/2 has `frames`.
    #[inline]
    pub(super) fn came(self: &Arc<Self>, frames: Option<&mut Frames>, bytes: &[u8]) {
        if self.has(Flags::TUNNEL) {
            self.touch();
        } else if let Some(frames) = frames {
            self.frames_came(frames, bytes);
        } else if self.in_flight.load(Ordering::Relaxed) == 0
            && self.header_since.load(Ordering::Relaxed) == 0
            && !bytes.iter().all(|byte| b"\r\n".contains(byte))
        {
            self.header_since.store(UNSTAMPED, Ordering::Relaxed);
        }
    }

    fn frames_came(self: &Arc<Self>, frames: &mut Frames, bytes: &[u8]) {
        let open = frames.read(bytes);
        if frames.data > 0 {
            self.data_came(frames.data);
            if frames.window.take(frames.data) {
                self.window_closed();
            }
        }
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        if frames.data > 0 && in_flight > 0 && in_flight == self.tunnels.load(Ordering::Relaxed) {
            self.touch();
        }
        match open {
            Open::None => self.header_since.store(0, Ordering::Relaxed),
            Open::Begun => self.header_since.store(UNSTAMPED, Ordering::Relaxed),
            Open::Former => {}
        }
        if frames.in_request() {
            self.set(Flags::HEADER);
        } else if self.has(Flags::HEADER) {
            self.take(Flags::HEADER);
            // A request need not follow: h2 may have refused it.
            let idle_since = self.idle_since.load(Ordering::Relaxed);
            self.arm(after(idle_since, self.limits().idle));
        }
    }
}
