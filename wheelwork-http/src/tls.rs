//! TLS by rustls.

use crate::listener::{Handshake, Listener, Socket};
use crate::peer::Peer;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// A listener whose connections speak TLS. The handshake is limited by
/// [`Limits::handshake`](crate::Limits::handshake), and runs on the task of its connection.
///
/// Offer `h2` and `http/1.1` in `alpn_protocols`. The server finds the protocol by the first bytes.
///
/// ```no_run
/// use std::sync::Arc;
/// use wheelwork_http::{Limits, Tls, serve};
///
/// # async fn example(mut config: tokio_rustls::rustls::ServerConfig) -> Result<(), Box<dyn std::error::Error>> {
/// config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
/// let listener = tokio::net::TcpListener::bind("0.0.0.0:443").await?;
/// let listener = Tls::new(listener, Arc::new(config));
/// serve(listener, axum::Router::new(), Limits::default()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Tls<L> {
    listener: L,
    acceptor: TlsAcceptor,
}

impl<L> Tls<L> {
    /// Speaks TLS on the connections of `listener`.
    pub fn new(listener: L, config: Arc<ServerConfig>) -> Self {
        Self { listener, acceptor: config.into() }
    }
}

impl<L: fmt::Debug> fmt::Debug for Tls<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// A TLS handshake after the handshake `H`.
#[derive(Debug)]
pub struct TlsHandshake<H>(PhantomData<H>);

type Boxed<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl<H: Handshake> Handshake for TlsHandshake<H> {
    type Socket = TlsStream<H::Socket>;
    type Future = Boxed<Self::Socket>;
}

impl<L: Listener> Listener for Tls<L> {
    type Handshake = TlsHandshake<L::Handshake>;

    async fn accept(
        &mut self,
    ) -> io::Result<(Boxed<TlsStream<<L::Handshake as Handshake>::Socket>>, Peer)> {
        let (before, peer) = self.listener.accept().await?;
        let acceptor = self.acceptor.clone();
        let handshake = Box::pin(async move { acceptor.accept(before.await?).await });
        Ok((handshake, peer))
    }
}

impl<S: Socket> Socket for TlsStream<S> {
    fn reset_on_drop(&self) {
        self.get_ref().0.reset_on_drop();
    }

    fn untaken(&self) -> Option<u64> {
        self.get_ref().0.untaken()
    }

    fn has_unread(&self) -> bool {
        self.get_ref().0.has_unread()
    }

    fn peer(&self) -> Option<Peer> {
        self.get_ref().0.peer()
    }
}
