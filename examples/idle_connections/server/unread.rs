//! One more look at a socket, without reading from it.

use nix::sys::socket::{MsgFlags, recv};
use std::os::fd::{AsFd, AsRawFd};

/// Whether bytes have come that nobody has read. An end or an error is none.
pub(super) fn has_unread(socket: &impl AsFd) -> bool {
    let look = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    recv(socket.as_fd().as_raw_fd(), &mut [0], look).is_ok_and(|bytes| bytes > 0)
}
