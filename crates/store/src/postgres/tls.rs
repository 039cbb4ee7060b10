//! TLS to the database: rustls with ring, and libpq's modes of verification.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Supported values of `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// No TLS.
    Disable,
    /// TLS if the server has it; its certificate isn't verified.
    Prefer,
    /// TLS; the server's certificate isn't verified, which allows a man in the middle.
    Require,
    /// TLS with a certificate of a known authority for the host's name.
    VerifyFull,
}

impl Mode {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-full" => Self::VerifyFull,
            other => {
                return Err(format!(
                    "sslmode `{other}` isn't supported; give `disable`, `prefer`, `require` or `verify-full`"
                ));
            }
        })
    }
}

/// Returns the TLS connector. Authorities are those of the file `root_certificates`, or the system's.
pub(super) fn connector(
    mode: Mode,
    root_certificates: Option<&str>,
) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS can't be set up: {error}"))?;
    let config = match mode {
        Mode::VerifyFull => builder.with_root_certificates(roots(root_certificates)?),
        Mode::Disable | Mode::Prefer | Mode::Require => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAll(provider))),
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => Err(
                "this system has no certificate authorities to verify the server with; add `sslrootcert=FILE`"
                    .to_owned(),
            ),
            false => Ok(roots),
        };
    };
    let unusable = |reason: String| format!("the certificates in `{file}` can't be used: {reason}");
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(error.to_string()))?;
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(unusable("there is none".to_owned())),
        false => Ok(roots),
    }
}

/// Verifier that accepts all certificates, as libpq does below `verify-ca`: traffic is encrypted, but the server isn't
/// authenticated.
#[derive(Debug)]
struct AcceptAll(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
