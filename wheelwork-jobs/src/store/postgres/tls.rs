//! Encrypted connections, by `rustls`. Each certificate is verified in full, with the name of its host.

use std::error::Error;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

type Fault = Box<dyn Error + Send + Sync>;

/// Makes connections encrypted.
#[derive(Clone)]
pub(super) struct Rustls(Arc<ClientConfig>);

impl Rustls {
    /// Trusts the certificates in a PEM file, or those of the system.
    pub(super) fn new(roots: Option<&Path>) -> Result<Self, Fault> {
        let mut trusted = RootCertStore::empty();
        match roots {
            Some(path) => {
                let named = |error: Fault| format!("{path:?}: {error}");
                let found = CertificateDer::pem_file_iter(path).map_err(|e| named(e.into()))?;
                for certificate in found {
                    let certificate = certificate.map_err(|error| named(error.into()))?;
                    trusted.add(certificate).map_err(|error| named(error.into()))?;
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                trusted.add_parsable_certificates(found.certs);
            }
        }
        if trusted.is_empty() {
            return Err(
                "no certificates to trust: expected some in a PEM file, or in the system".into()
            );
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

impl<S> MakeTlsConnect<S> for Rustls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, InvalidDnsNameError> {
        let name = ServerName::try_from(host)?.to_owned();
        Ok(Connect { connector: self.0.clone().into(), name })
    }
}

/// One connection to encrypt.
pub(super) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self { connector, name } = self;
        Box::pin(async move { Ok(Stream(Box::new(connector.connect(name, stream).await?))) })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(Box<Encrypted<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
