//! What a client is made of, and the usual values of it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;

use crate::address::{base_url, is_this_machine};
use crate::cache::Cache;
use crate::client::{Client, Inner};
use crate::key::{BadKey, Key};
use crate::retry::Retries;
use crate::tls;

/// Who asks, as servers' logs show it.
const USER_AGENT: &str = concat!("vitrine-client/", env!("CARGO_PKG_VERSION"));

/// Why there is no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The address isn't one. It isn't repeated here, since it may hold a password.
    #[error(
        "the server's address can't be used: {0}; expected one such as https://catalog.example"
    )]
    Address(String),
    /// The key would travel where anybody on the way can read it.
    #[error(
        "plain http to {host} would send the key in the clear; use https, or `ClientBuilder::allow_insecure` where nobody \
         listens on the way"
    )]
    Insecure {
        /// The other machine.
        host: String,
    },
    /// The key can't be one.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// TLS can't be set up.
    #[error("can't set up TLS: {0}")]
    Tls(String),
    /// The HTTP client can't be set up.
    #[error("can't set up an HTTP client: {0}")]
    Http(String),
}

/// Makes a [`Client`]. Each value has a usual one.
///
/// ```
/// use std::time::Duration;
/// use vitrine_client::{Client, Key, Retries};
///
/// let mut retries = Retries::default();
/// retries.most = 2;
/// let client = Client::builder("https://catalog.example/v2", Key::new("partner.s3cret")?)
///     .retries(retries)
///     .timeout(Duration::from_secs(5))
///     .cache_bytes(16 << 20)
///     .user_agent("picker/1.0")
///     .build()?;
/// assert_eq!(client.base_url(), "https://catalog.example/v2");
/// # Ok::<(), vitrine_client::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    base_url: String,
    key: Key,
    retries: Retries,
    connect_timeout: Duration,
    timeout: Duration,
    most_body_bytes: usize,
    cache_bytes: usize,
    user_agent: Option<String>,
    allow_insecure: bool,
    tls: Option<rustls::ClientConfig>,
}

impl ClientBuilder {
    pub(crate) fn new(base_url: &str, key: Key) -> Self {
        Self {
            base_url: base_url.to_owned(),
            key,
            retries: Retries::default(),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            most_body_bytes: 64 << 20,
            cache_bytes: 0,
            user_agent: None,
            allow_insecure: false,
            tls: None,
        }
    }

    /// Which failures are followed by another try, after which pauses.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// How long a connection may take, its TLS handshake included. Usually 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long one try may take, from the connection to the body's last byte. Usually 30 s. [`Retries::longest_total`] is for
    /// all tries together.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a body may be, in bytes, counted as unpacked. Usually 64 MiB.
    #[must_use]
    pub fn most_body_bytes(mut self, bytes: usize) -> Self {
        self.most_body_bytes = bytes;
        self
    }

    /// Keeps so many bytes of answers in memory, each by its ETag, and asks for them again with `If-None-Match`. What hasn't
    /// changed comes as a 304 then, which costs no quota, and is answered from here. Usually 0: no cache.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Who asks, in front of this crate's own name in `User-Agent`: `picker/1.0`.
    #[must_use]
    pub fn user_agent(mut self, product: &str) -> Self {
        self.user_agent = Some(format!("{product} {USER_AGENT}"));
        self
    }

    /// Lets the key travel over plain http to another machine, where anybody on the way can read it.
    #[must_use]
    pub fn allow_insecure(mut self) -> Self {
        self.allow_insecure = true;
        self
    }

    /// TLS as you say: its provider, the certificates that are trusted, those of this client.
    #[must_use]
    pub fn tls(mut self, tls: rustls::ClientConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Makes the client. It connects to nothing yet.
    ///
    /// # Errors
    ///
    /// Where the address isn't one, TLS can't be set up, or the key would travel in the clear.
    pub fn build(self) -> Result<Client, BuildError> {
        let base_url = base_url(&self.base_url)?;
        let is_plain = base_url.scheme() == "http";
        if is_plain && !self.allow_insecure && !is_this_machine(&base_url) {
            let host = base_url.host_str().unwrap_or_default().to_owned();
            return Err(BuildError::Insecure { host });
        }
        let tls = self.tls.map_or_else(tls::usual, Ok)?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(self.user_agent.as_deref().unwrap_or(USER_AGENT))
            .connect_timeout(self.connect_timeout)
            .timeout(self.timeout)
            // A key isn't sent to wherever an answer says.
            .redirect(Policy::none());
        let http = match is_plain {
            // A proxy on the way could read the key.
            true => http.no_proxy(),
            false => http,
        };
        let http = http
            .build()
            .map_err(|error| BuildError::Http(error.without_url().to_string()))?;
        Ok(Client(Arc::new(Inner {
            http,
            base_url: base_url.into(),
            key: self.key,
            retries: self.retries,
            most_body_bytes: self.most_body_bytes,
            cache: Cache::of(self.cache_bytes),
        })))
    }
}
