//! `Flow`: the bytes of bodies and tunnels that a connection of HTTP/2 moves, for all of its streams, and whether it
//! may.
//!
//! A limit measures the client. The streams of a client share a link, so the least rate of a stream is judged by what all
//! of them move in its direction. And while the server lets no bytes in, because services do not read, the wait for a
//! body is the server's.

/// All 0 on HTTP/1, where a request has the connection for itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// The bytes of DATA that have come, since the connection has requests.
    pub(super) received: u64,
    /// The bytes of DATA that were written, since then.
    pub(super) sent: u64,
    /// When the window was opened again, or if it is closed, when that was. Later, if h2 has read nothing since.
    pub(super) turned: u64,
    /// The most requests in flight since there was none. Those that have ended meanwhile had their turn, for which the
    /// others have waited.
    pub(super) streams: u32,
    pub(super) is_closed: bool,
    /// The check has seen that it is closed.
    pub(super) is_seen: bool,
}
