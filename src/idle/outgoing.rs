//! `Outgoing`: the trait by which a stream tells how much its peer has not taken. `stream/monitor` judges writes by it.

/// A stream that can tell how many written bytes its peer has not taken.
///
/// The system buffers megabytes of a connection, and takes the next bytes only when much of its buffer is free. So a slow
/// peer that never stops reading can let a write wait for minutes. To judge such a write, ask here what the
/// peer has taken meanwhile. An [`IdleStream`](super::IdleStream) does so itself; a callback of
/// [`IdleTimeouts`](super::IdleTimeouts) answers [`Answer::Progressed`](super::Answer::Progressed).
///
/// Every socket with a descriptor has it: those of std, tokio, mio and others. If your stream wraps a socket, as TLS
/// does, implement it by asking that socket.
///
/// # Examples
///
/// ```
/// use std::net::TcpStream;
/// use wheelwork::idle::Outgoing;
///
/// struct Compressed {
///     socket: TcpStream,
/// }
///
/// impl Outgoing for Compressed {
///     fn untaken(&self) -> Option<u64> {
///         self.socket.untaken()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot tell what its peer has not taken",
    note = "implement `Outgoing` for it, or wrap it by `IdleStreams::wrap_with`"
)]
pub trait Outgoing {
    /// The number of bytes that were written and that the peer has not taken. `None` if that is not known.
    ///
    /// For TCP, the peer's system takes bytes when it acknowledges them, on Linux, Android, Apple's systems, FreeBSD and
    /// NetBSD. For Unix sockets on Linux, the number counts whole messages with their overhead, so it falls in steps of
    /// up to about 40 KB. It is not known on other systems.
    fn untaken(&self) -> Option<u64>;
}

#[cfg(unix)]
impl<S: std::os::fd::AsFd + ?Sized> Outgoing for S {
    fn untaken(&self) -> Option<u64> {
        super::untaken::untaken(self.as_fd())
    }
}

/// Windows does not tell it.
#[cfg(windows)]
impl<S: std::os::windows::io::AsSocket + ?Sized> Outgoing for S {
    fn untaken(&self) -> Option<u64> {
        None
    }
}
