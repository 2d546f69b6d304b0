//! The PROXY protocol, versions 1 and 2 (haproxy.org/download/2.9/doc/proxy-protocol.txt).

use crate::listener::{Handshake, Listener, Socket};
use crate::peer::Peer;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// A listener behind a proxy that sends the address of each client with the PROXY protocol, version 1 or 2.
///
/// That address is the [`Peer`] of the connection, and counts for
/// [`connections_per_address`](crate::Limits::connections_per_address). The header is read within the limit of the
/// [`handshake`](crate::Limits::handshake), on the task of the connection; until then, its peer is [`Peer::Local`]. A
/// connection from elsewhere than the proxies is closed, and so is one without a header, or with a header of more than
/// 2 KB. A connection of the proxy itself (`LOCAL`, `UNKNOWN`) has the proxy's address. Unix sockets are trusted.
///
/// For TLS after the header of the proxy, write `Tls::new(Proxied::new(..), ..)`.
///
/// ```no_run
/// use wheelwork_http::{Limits, Proxied, serve};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("0.0.0.0:8080").await?;
/// let listener = Proxied::new(listener, ["10.0.0.1".parse()?]);
/// serve(listener, axum::Router::new(), Limits::default()).tell_peer().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Proxied<L> {
    listener: L,
    proxies: Box<[IpAddr]>,
}

impl<L> Proxied<L> {
    /// Reads the header on the connections of `listener`, which may come from these proxies only.
    pub fn new(listener: L, proxies: impl IntoIterator<Item = IpAddr>) -> Self {
        let proxies = proxies.into_iter().map(|proxy| proxy.to_canonical()).collect();
        Self { listener, proxies }
    }
}

/// The header of a proxy after the handshake `H`.
#[derive(Debug)]
pub struct ProxyHandshake<H>(PhantomData<H>);

type Boxed<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl<H: Handshake> Handshake for ProxyHandshake<H> {
    type Socket = ProxiedSocket<H::Socket>;
    type Future = Boxed<Self::Socket>;
}

impl<L: Listener> Listener for Proxied<L> {
    type Handshake = ProxyHandshake<L::Handshake>;

    async fn accept(
        &mut self,
    ) -> io::Result<(Boxed<ProxiedSocket<<L::Handshake as Handshake>::Socket>>, Peer)> {
        let (before, proxy) = loop {
            let (before, peer) = self.listener.accept().await?;
            let ip = peer.address().map(|address| address.ip().to_canonical());
            if ip.is_none_or(|ip| self.proxies.contains(&ip)) {
                break (before, peer);
            }
        };
        let handshake = Box::pin(async move {
            let mut socket = before.await?;
            let client = read_header(&mut socket).await?;
            let peer = client.map_or(proxy, Peer::Tcp);
            Ok(ProxiedSocket { socket, peer })
        });
        Ok((handshake, Peer::Local))
    }
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The longest header of version 1, by the specification.
const LONGEST_LINE: usize = 107;

/// The longest header of version 2 that is read: the addresses, and extensions.
const LONGEST: usize = 2048;

/// Reads the header, and no byte more. `None` is a connection of the proxy itself.
async fn read_header<S: AsyncRead + Unpin>(socket: &mut S) -> io::Result<Option<SocketAddr>> {
    let mut first = [0; SIGNATURE.len()];
    socket.read_exact(&mut first).await?;
    let client = match first {
        SIGNATURE => {
            let mut head = [0; 4];
            socket.read_exact(&mut head).await?;
            let [command, family, high, low] = head;
            let mut rest = vec![0; u16::from_be_bytes([high, low]).into()];
            if rest.len() > LONGEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
            socket.read_exact(&mut rest).await?;
            client_of_v2(command, family, &rest)
        }
        _ => {
            let mut line = first.to_vec();
            while line.starts_with(b"PROXY ")
                && !line.ends_with(b"\r\n")
                && line.len() < LONGEST_LINE
            {
                line.push(socket.read_u8().await?);
            }
            client_of_v1(&line)
        }
    };
    client.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// `PROXY TCP4 <client> <server> <client's port> <server's port>`. The outer `None` is no header.
fn client_of_v1(line: &[u8]) -> Option<Option<SocketAddr>> {
    let line = str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
    let mut words = line.strip_prefix("PROXY ")?.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let client: IpAddr = words.next()?.parse().ok()?;
    let _server: IpAddr = words.next()?.parse().ok()?;
    let port = words.next()?.parse().ok()?;
    let _server_port: u16 = words.next()?.parse().ok()?;
    let is_known = family == if client.is_ipv4() { "TCP4" } else { "TCP6" };
    (is_known && words.next().is_none()).then_some(Some(SocketAddr::new(client, port)))
}

/// The client's address stands first, then the server's, then both ports. The outer `None` is no header.
fn client_of_v2(command: u8, family: u8, rest: &[u8]) -> Option<Option<SocketAddr>> {
    let port = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    match (command, family) {
        (0x20, _) | (0x21, 0x00) => Some(None),
        (0x21, 0x11) => {
            let client = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            Some(Some(SocketAddr::new(client.into(), (rest.len() >= 12).then(|| port(8))??)))
        }
        (0x21, 0x21) => {
            let client = Ipv6Addr::from(*rest.first_chunk::<16>()?);
            Some(Some(SocketAddr::new(client.into(), (rest.len() >= 36).then(|| port(32))??)))
        }
        _ => None,
    }
}

/// A socket whose client a proxy has told.
#[derive(Debug)]
pub struct ProxiedSocket<S> {
    socket: S,
    peer: Peer,
}

impl<S: Socket> Socket for ProxiedSocket<S> {
    fn reset_on_drop(&self) {
        self.socket.reset_on_drop();
    }

    fn untaken(&self) -> Option<u64> {
        self.socket.untaken()
    }

    fn has_unread(&self) -> bool {
        self.socket.has_unread()
    }

    fn peer(&self) -> Option<Peer> {
        Some(self.peer.clone())
    }
}

impl<S: Socket> AsyncRead for ProxiedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: Socket> AsyncWrite for ProxiedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
