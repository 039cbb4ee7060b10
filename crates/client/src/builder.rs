//! Configuration of a client.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;

use crate::address::{base_url, is_loopback};
use crate::cache::Cache;
use crate::client::{Client, Inner};
use crate::key::{BadKey, Key};
use crate::retry::{OnRetry, Retries, ignore};
use crate::tls;
use crate::version::ApiVersion;

/// Default `User-Agent`.
const USER_AGENT: &str = concat!("vitrine-client/", env!("CARGO_PKG_VERSION"));

/// Error of building a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The base URL is invalid. It isn't repeated here, because it may contain a password.
    #[error(
        "the server's address can't be used: {0}; expected one such as https://catalog.example"
    )]
    Address(String),
    /// The key would be sent unencrypted over a network.
    #[error(
        "plain http to {host} would send the key in the clear; use https, or `ClientBuilder::allow_insecure` where nobody \
         listens on the way"
    )]
    Insecure {
        /// Host of the base URL.
        host: String,
    },
    /// The key is malformed.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// Setting up TLS failed.
    #[error("can't set up TLS: {0}")]
    Tls(String),
    /// Setting up the HTTP client failed.
    #[error("can't set up an HTTP client: {0}")]
    Http(String),
}

/// Builder of a [`Client`]. All settings have defaults.
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
    on_retry: OnRetry,
    connect_timeout: Duration,
    timeout: Duration,
    most_body_bytes: usize,
    cache_bytes: usize,
    user_agent: Option<String>,
    allow_insecure: bool,
    tls: Option<rustls::ClientConfig>,
    http: Option<reqwest::Client>,
    api_version: ApiVersion,
}

impl ClientBuilder {
    pub(crate) fn new(base_url: &str, key: Key) -> Self {
        Self {
            base_url: base_url.to_owned(),
            key,
            retries: Retries::default(),
            on_retry: ignore,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            most_body_bytes: 64 << 20,
            cache_bytes: 0,
            user_agent: None,
            allow_insecure: false,
            tls: None,
            http: None,
            api_version: ApiVersion::default(),
        }
    }

    /// Sets number and pauses of retries.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Sets what is called before the pause of each retry, such as a log. A sync has [`Retrying`](crate::SyncEvent::Retrying)
    /// in its place.
    #[must_use]
    pub fn on_retry(mut self, on_retry: OnRetry) -> Self {
        self.on_retry = on_retry;
        self
    }

    /// Sets the timeout for connecting, including the TLS handshake. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the timeout of one attempt, from connecting to the body's last byte. Default: 30 s. [`Retries::longest_total`]
    /// limits all attempts together. Time for which the server holds an answer ([`ChangesRequest::wait`](
    /// crate::ChangesRequest::wait)) is added to both.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum length of a body, decompressed, in bytes. Default: 64 MiB.
    #[must_use]
    pub fn most_body_bytes(mut self, bytes: usize) -> Self {
        self.most_body_bytes = bytes;
        self
    }

    /// Sets the capacity of the cache of responses, in bytes. Cached responses are revalidated with `If-None-Match`; a 304
    /// costs no quota, and the body comes from the cache. Default: 0, no cache.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Puts a product, such as `picker/1.0`, before this crate's name in `User-Agent`.
    #[must_use]
    pub fn user_agent(mut self, product: &str) -> Self {
        self.user_agent = Some(format!("{product} {USER_AGENT}"));
        self
    }

    /// Allows sending the key unencrypted to another machine, so that anybody on the network path can read it.
    #[must_use]
    pub fn allow_insecure(mut self) -> Self {
        self.allow_insecure = true;
        self
    }

    /// Sets the TLS configuration: provider, trusted certificates, client certificates.
    #[must_use]
    pub fn tls(mut self, tls: rustls::ClientConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the HTTP client, in place of one with this builder's TLS, user agent, connect timeout and redirects (none). The
    /// caller answers for where it sends the key.
    #[must_use]
    pub fn http_client(mut self, http: reqwest::Client) -> Self {
        self.http = Some(http);
        self
    }

    /// Sets the dated API version that all requests ask for. Default: 2024-02-05. A server that doesn't have it answers
    /// [`ErrorType::InvalidVersion`](crate::ErrorType::InvalidVersion).
    #[must_use]
    pub fn api_version(mut self, version: ApiVersion) -> Self {
        self.api_version = version;
        self
    }

    /// Builds the client without connecting.
    ///
    /// # Errors
    ///
    /// If the base URL is invalid, TLS can't be set up, or the key would be sent unencrypted.
    pub fn build(self) -> Result<Client, BuildError> {
        let base_url = base_url(&self.base_url)?;
        let is_plain = base_url.scheme() == "http";
        if is_plain && !self.allow_insecure && !is_loopback(&base_url) {
            let host = base_url.host_str().unwrap_or_default().to_owned();
            return Err(BuildError::Insecure { host });
        }
        let http = match self.http {
            Some(http) => http,
            None => self.new_http_client(is_plain)?,
        };
        Ok(Client(Arc::new(Inner {
            http,
            base_url: base_url.into(),
            key: self.key,
            retries: self.retries,
            on_retry: self.on_retry,
            timeout: self.timeout,
            most_body_bytes: self.most_body_bytes,
            cache: Cache::new(self.cache_bytes),
            api_version: self.api_version,
        })))
    }

    fn new_http_client(&self, is_plain: bool) -> Result<reqwest::Client, BuildError> {
        let tls = self.tls.clone().map_or_else(tls::default_config, Ok)?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(self.user_agent.as_deref().unwrap_or(USER_AGENT))
            .connect_timeout(self.connect_timeout)
            .timeout(self.timeout)
            // A redirect would send the key to any host that a response names.
            .redirect(Policy::none());
        let http = match is_plain {
            // A proxy could read the key.
            true => http.no_proxy(),
            false => http,
        };
        http.build()
            .map_err(|error| BuildError::Http(error.without_url().to_string()))
    }
}
