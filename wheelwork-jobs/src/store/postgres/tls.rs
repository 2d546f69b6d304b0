//! Encrypted connections, by `rustls`. Each certificate is verified in full, with the name of its host.

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

type Fault = Box<dyn Error + Send + Sync>;

/// Trusts the certificates in a PEM file, or those of the system.
pub(super) fn trusting(roots: Option<&Path>) -> Result<MakeRustlsConnect, Fault> {
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
    Ok(MakeRustlsConnect::new(config))
}
