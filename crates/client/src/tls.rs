//! TLS by rustls: which provider, which certificates, and which failures are about those.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use crate::builder::BuildError;

/// TLS with the system's certificates, by the provider of the process, or by ring.
pub(crate) fn usual() -> Result<ClientConfig, BuildError> {
    // On a machine without certificates plain http still works; TLS fails, and says why.
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

/// Whether a failure is that a certificate isn't trusted: another try doesn't mend that.
pub(crate) fn is_about_certificates(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return true;
        }
        // An `io::Error` passes over the error it wraps when asked for its source.
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
