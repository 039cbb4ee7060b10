//! TLS: a certificate and its key from two files, reloaded when they change or on request. Unusable files are refused
//! with their names, and never replace a working certificate.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, anyhow, bail};
use arc_swap::ArcSwap;
use jiff::{Timestamp, Unit};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::metrics::table::{Reload, TlsMetrics};

/// ALPN identifier of HTTP/2 (RFC 9113, section 3.1).
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Maximum length of a file, in bytes: a certificate chain has a few kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Paths of a certificate and its private key.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// Certificate chain of the server, in PEM.
    pub certificate: PathBuf,
    /// Private key, in PEM.
    pub key: PathBuf,
}

/// Certificate for new connections, with its files.
pub struct Certificates {
    files: TlsSettings,
    live: ArcSwap<ServerConfig>,
    /// Identities of the files when they were last read, usable or not.
    seen: Mutex<FileIdentities>,
    metrics: Arc<TlsMetrics>,
}

/// Device, inode, length and modification time of both files.
type FileIdentities = [Option<(u64, u64, u64, i64, i64)>; 2];

impl Certificates {
    /// Reads a certificate and its key for the first time.
    ///
    /// # Errors
    ///
    /// If they are unusable; the error names the file and its fault.
    pub fn load(files: TlsSettings) -> anyhow::Result<Self> {
        let metrics = Arc::new(TlsMetrics::default());
        let seen = files.seen();
        let pair = files.read()?;
        pair.describe(&metrics);
        Ok(Self {
            live: ArcSwap::from_pointee(pair.config),
            files,
            seen: Mutex::new(seen),
            metrics,
        })
    }

    /// Reloads both files. Unusable ones are logged, and the live certificate stays.
    pub fn reload(&self) {
        self.read_again(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The lock is held to the end: of two concurrent reloads, the slower would otherwise restore an older certificate.
    fn read_again(&self, seen: &mut FileIdentities) {
        *seen = self.files.seen();
        match self.files.read() {
            Ok(pair) => {
                pair.describe(&self.metrics);
                self.live.store(Arc::new(pair.config));
                self.metrics.reloads.of(Reload::Done).increment();
                tracing::info!(expires = %pair.not_after, "certificate reloaded");
            }
            Err(error) => {
                self.metrics.reloads.of(Reload::Failed).increment();
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "the new certificate can't be used; keeping the old one"
                );
            }
        }
    }

    /// Reloads both files if their identities changed.
    pub fn reload_if_changed(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if self.files.seen() != *seen {
            self.read_again(&mut seen);
        }
    }

    /// Returns the metrics of TLS.
    #[must_use]
    pub fn metrics(&self) -> &Arc<TlsMetrics> {
        &self.metrics
    }

    /// Returns the configuration for a handshake.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.live.load_full()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = &self.files;
        out.debug_struct("Certificates")
            .field("files", files)
            .finish_non_exhaustive()
    }
}

/// Certificate with its key, checked.
struct Pair {
    config: ServerConfig,
    not_after: Timestamp,
}

impl Pair {
    fn describe(&self, metrics: &TlsMetrics) {
        metrics.not_after.set_moment(self.not_after);
        if self.not_after <= Timestamp::now() {
            tracing::warn!(
                expired = %self.not_after,
                "the certificate has expired, and clients will refuse it; renew its file, the server reloads it"
            );
        }
    }
}

impl TlsSettings {
    fn seen(&self) -> FileIdentities {
        [&self.certificate, &self.key].map(|path| {
            let file = fs::metadata(path).ok()?;
            Some((
                file.dev(),
                file.ino(),
                file.len(),
                file.mtime(),
                file.mtime_nsec(),
            ))
        })
    }

    fn read(&self) -> anyhow::Result<Pair> {
        let Self { certificate, key } = self;
        let chain = read_chain(certificate)
            .with_context(|| format!("--tls-certificate is `{}`", certificate.display()))?;
        let named = || format!("--tls-key is `{}`", key.display());
        let private = read_key(key).with_context(named)?;
        let first = chain.first().context("no certificate")?;
        let not_after = not_after(first)
            .with_context(|| format!("--tls-certificate is `{}`", certificate.display()))?;
        let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .context("can't set up TLS")?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => anyhow!(
                    "the key doesn't match the first certificate in `{}`; use a matching pair, with the server's own \
                     certificate first",
                    certificate.display()
                ),
                // The library's message isn't shown: it might hold part of the key.
                _ => anyhow!("unsupported kind of key; use RSA (2048 bits or more), ECDSA or Ed25519"),
            })
            .with_context(named)?;
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Pair { config, not_after })
    }
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let length = fs::metadata(path).context("it can't be read")?.len();
    if length > MAX_FILE_BYTES {
        bail!("it has {length} bytes, too many for a certificate or key");
    }
    fs::read(path).context("it can't be read")
}

fn read_chain(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = read_file(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|_| anyhow!("it isn't valid PEM"))?;
    if chain.is_empty() {
        bail!("it contains no certificate; use PEM, which begins with -----BEGIN CERTIFICATE-----");
    }
    Ok(chain)
}

fn read_key(path: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    let text = read_file(path)?;
    if text.windows(9).any(|window| window == b"ENCRYPTED") {
        bail!("the key is encrypted; use one without a password (`openssl pkey` removes it)");
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        anyhow!(
            "it contains no private key; use PEM, which begins with -----BEGIN PRIVATE KEY-----"
        )
    })
}

/// Returns the end of a certificate's validity, to the second.
fn not_after(certificate: &CertificateDer<'_>) -> anyhow::Result<Timestamp> {
    let parsed = Certificate::from_der(certificate)
        .map_err(|error| anyhow!("its first certificate can't be read: {error}"))?;
    let since_1970 = parsed.tbs_certificate.validity.not_after.to_unix_duration();
    Timestamp::UNIX_EPOCH
        .checked_add(since_1970)
        .and_then(|moment| moment.round(Unit::Second))
        .context("its end of validity can't be read")
}
