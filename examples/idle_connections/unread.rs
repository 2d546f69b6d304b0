//! A look at a socket for bytes that the server has yet to read.

#[cfg(unix)]
use nix::sys::socket::{MsgFlags, recv};
#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};

/// Looks at the socket itself, without reading from it.
pub(crate) struct Unread {
    #[cfg(unix)]
    socket: RawFd,
}

#[cfg(unix)]
impl Unread {
    /// For an open `socket`, as long as it is open.
    pub(crate) fn of(socket: &impl AsRawFd) -> Self {
        Self { socket: socket.as_raw_fd() }
    }

    /// An end or an error is nothing unread.
    pub(crate) fn is_there(&self) -> bool {
        let look = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        recv(self.socket, &mut [0], look).is_ok_and(|bytes| bytes > 0)
    }
}

/// Windows cannot look without waiting. There, bytes that the server is slow to read do not count.
#[cfg(not(unix))]
impl Unread {
    pub(crate) fn of<S>(_socket: &S) -> Self {
        Self {}
    }

    pub(crate) fn is_there(&self) -> bool {
        false
    }
}
