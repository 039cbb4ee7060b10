//! TLS by rustls: provider, certificates, and errors of certificates.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use crate::builder::BuildError;

/// Returns a configuration with the system's certificates and the provider of the process, or ring.
///
/// # Errors
///
/// If there is no provider.
pub fn default_config() -> Result<ClientConfig, BuildError> {
    // Without certificates on the machine plain http still works; TLS fails with a clear error.
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Ok(ClientConfig::builder_with_provider(provider()?)
        .with_safe_default_protocol_versions()
        .map_err(|error| BuildError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn provider() -> Result<Arc<CryptoProvider>, BuildError> {
    if let Some(provider) = CryptoProvider::get_default() {
        return Ok(Arc::clone(provider));
    }
    #[cfg(feature = "ring")]
    return Ok(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(not(feature = "ring"))]
    Err(BuildError::Tls(
        "no provider of cryptography; install one with rustls' `CryptoProvider::install_default`, pass a \
         configuration to `ClientBuilder::tls`, or turn the feature `ring` on"
            .to_owned(),
    ))
}

/// Returns true for an untrusted certificate, which a retry won't change.
#[must_use]
pub fn is_certificate_error(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return true;
        }
        // The `source` of an `io::Error` skips the error that it wraps.
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
