//! `Listener`: where connections come from; `Handshake`: what comes before HTTP.

use crate::peer::Peer;
use socket2::{SockRef, TcpKeepalive};
use std::future::{Ready, ready};
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use wheelwork::idle::Outgoing;

/// A byte stream that HTTP is spoken on.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Makes the drop of the socket discard what was not sent, so that a client that does not read holds no
    /// memory of the kernel. Does nothing by default.
    fn reset_on_drop(&self) {}

    /// The client, if the handshake has named a different one than [`Listener::accept`]. `None` by default.
    fn peer(&self) -> Option<Peer> {
        None
    }

    /// The number of written bytes that the client has not taken, as [`Outgoing`] tells it. A layer around a socket,
    /// such as TLS, asks that socket. `None` by default: then a client that takes bytes while the system accepts none
    /// counts as making no progress.
    fn untaken(&self) -> Option<u64> {
        None
    }

    /// Whether bytes of the client wait in the system that the runtime has not reported yet. A layer around a socket
    /// asks that socket. `false` by default: then bytes that come just before the end of a limit may be seen too late.
    fn has_unread(&self) -> bool {
        false
    }
}

impl Socket for TcpStream {
    fn reset_on_drop(&self) {
        let _ = self.set_zero_linger(); // only slower without
    }

    fn untaken(&self) -> Option<u64> {
        Outgoing::untaken(self)
    }

    fn has_unread(&self) -> bool {
        has_unread(SockRef::from(self))
    }
}

/// Whether a socket that does not block has bytes to read.
fn has_unread(socket: SockRef<'_>) -> bool {
    socket.peek(&mut [MaybeUninit::uninit()]).is_ok_and(|bytes| bytes > 0)
}

#[cfg(unix)]
impl Socket for tokio::net::UnixStream {
    fn untaken(&self) -> Option<u64> {
        Outgoing::untaken(self)
    }

    fn has_unread(&self) -> bool {
        has_unread(SockRef::from(self))
    }
}

impl Socket for tokio::io::DuplexStream {}

/// Where connections come from.
///
/// There is one for TCP, for Unix sockets, and for these with TLS or behind a proxy.
pub trait Listener: Send + 'static {
    /// What comes before HTTP.
    type Handshake: Handshake;

    /// Waits for the next connection. The server calls it in a loop, and may drop the future and call it again.
    ///
    /// # Errors
    ///
    /// After an error that is not of one connection, the server waits for 5 ms, then longer, up to 1 s. If there are no
    /// more descriptors, it closes idle connections.
    fn accept(
        &mut self,
    ) -> impl Future<Output = io::Result<(<Self::Handshake as Handshake>::Future, Peer)>> + Send;
}

/// What comes before HTTP: nothing, TLS, or the header of a proxy. It is limited by [`Limits::handshake`](crate::Limits::handshake).
pub trait Handshake: 'static {
    /// The socket after it.
    type Socket: Socket;
    /// The handshake of one connection.
    type Future: Future<Output = io::Result<Self::Socket>> + Send + 'static;
}

/// No handshake.
#[derive(Debug)]
pub struct Plain<S>(std::marker::PhantomData<S>);

impl<S: Socket> Handshake for Plain<S> {
    type Socket = S;
    type Future = Ready<io::Result<S>>;
}

impl Listener for TcpListener {
    type Handshake = Plain<TcpStream>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<TcpStream>>, Peer)> {
        let (socket, address) = Self::accept(self).await?;
        set_options(&socket);
        Ok((ready(Ok(socket)), Peer::Tcp(address)))
    }
}

/// The bytes that the kernel may hold of a connection without having sent them. Linux takes some megabytes otherwise: a
/// few hundred clients that do not read reach its limit for the memory of all TCP connections (`tcp_mem`), and then
/// all of them are slow. It also makes the progress of a response finer.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNSENT: u32 = 128 * 1024;

/// The kernel probes a client that is silent for a minute, and again after each interval. One that has vanished answers
/// no probe.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));

/// The longest time in which a client acknowledges nothing, or answers no probe, or takes no byte.
#[cfg(any(target_os = "android", target_os = "linux"))]
const USER_TIMEOUT: Duration = Duration::from_secs(300);

/// A socket without these options is only slower, or found dead later.
fn set_options(socket: &TcpStream) {
    let _ = socket.set_nodelay(true);
    let socket = SockRef::from(socket);
    let _ = socket.set_tcp_keepalive(&KEEPALIVE);
    #[cfg(any(target_os = "android", target_os = "linux"))]
    {
        let _ = socket.set_tcp_notsent_lowat(UNSENT);
        let _ = socket.set_tcp_user_timeout(Some(USER_TIMEOUT));
    }
}

#[cfg(unix)]
impl Listener for tokio::net::UnixListener {
    type Handshake = Plain<tokio::net::UnixStream>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<tokio::net::UnixStream>>, Peer)> {
        let (socket, _) = Self::accept(self).await?;
        Ok((ready(Ok(socket)), Peer::Local))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_finds_a_client_that_has_vanished() {
        let mut listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(address), Listener::accept(&mut listener));
        let socket = accepted.unwrap().0.await.unwrap();
        assert!(SockRef::from(&socket).keepalive().unwrap());
        #[cfg(target_os = "linux")]
        {
            let socket = SockRef::from(&socket);
            assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(60));
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(USER_TIMEOUT));
        }
        drop(client);
    }
}
