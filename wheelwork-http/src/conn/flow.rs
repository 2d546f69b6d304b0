//! `Flow`: the bytes of bodies that a connection of HTTP/2 moves, for all of its streams.
//!
//! Its streams share a link, and a limit measures the client. So the least rate of a stream is judged by what all of
//! them move in its direction.

/// All 0 on HTTP/1, where a request has the connection for itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// The bytes of DATA that have come, since the connection has requests.
    pub(super) received: u64,
    /// The bytes of responses that h2 has sent, since then.
    pub(super) sent: u64,
}
