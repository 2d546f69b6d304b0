//! How many written bytes a socket still holds, because its peer has not taken them.
//!
//! | system | asked by | counts |
//! |---|---|---|
//! | Linux | the ioctl `SIOCOUTQ` (tcp(7), unix(7)) | TCP: the bytes that are not acknowledged, sent or not; Unix sockets: the memory of the messages that the peer has not read to their ends |
//! | FreeBSD, NetBSD | the ioctl `FIONWRITE` | the bytes in the send buffer, which TCP keeps until they are acknowledged |
//! | Apple | the socket option `SO_NWRITE` | the same |
//!
//! Other systems have no such call.

use std::os::fd::BorrowedFd;

/// `None` if the system does not know it, or if it is no socket.
#[cfg(all(
    any(target_os = "android", target_os = "freebsd", target_os = "linux", target_os = "netbsd"),
    not(any(loom, shuttle))
))]
pub(crate) fn untaken(socket: BorrowedFd<'_>) -> Option<u64> {
    #[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
    use libc::FIONWRITE as REQUEST;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    use libc::TIOCOUTQ as REQUEST; // the number of SIOCOUTQ
    use std::os::fd::AsRawFd;

    let mut bytes: libc::c_int = 0;
    // SAFETY: the borrow keeps the descriptor open. The call writes one `c_int`, and `bytes` is one. It has no other
    // effect. A descriptor that knows no such request refuses it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), REQUEST, &raw mut bytes) };
    if result == 0 { u64::try_from(bytes).ok() } else { None }
}

/// `None` if it is no socket.
#[cfg(all(target_vendor = "apple", not(any(loom, shuttle))))]
pub(crate) fn untaken(socket: BorrowedFd<'_>) -> Option<u64> {
    use std::os::fd::AsRawFd;

    let mut bytes: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    let at = (&raw mut bytes).cast();
    // SAFETY: the borrow keeps the descriptor open. The call writes at most `size` bytes, which are those of `bytes`,
    // and their number to `size`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NWRITE, at, &raw mut size)
    };
    if result == 0 { u64::try_from(bytes).ok() } else { None }
}

#[cfg(any(
    not(any(
        target_os = "android",
        target_os = "freebsd",
        target_os = "linux",
        target_os = "netbsd",
        target_vendor = "apple"
    )),
    loom,
    shuttle
))]
pub(crate) fn untaken(_socket: BorrowedFd<'_>) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::untaken;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_reads_takes_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        assert_takes(near, far);
        let (near, far) = UnixStream::pair().unwrap();
        assert_takes(near, far);
    }

    fn assert_takes(mut near: impl AsFd + Write, mut far: impl Read) {
        assert_eq!(untaken(near.as_fd()), Some(0));
        near.write_all(&[0; 1000]).unwrap();
        far.read_exact(&mut [0; 1000]).unwrap();
        while untaken(near.as_fd()) != Some(0) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_knows_nothing() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(untaken(file.as_fd()), None);
    }
}
