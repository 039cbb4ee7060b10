//! The mirrored server: address, key, requests.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow, bail};
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Url};
use serde::Deserialize;
use vitrine_wire::error::ErrorType;

use super::version::{SharedVersion, SourceVersion};
use crate::outside::retry::{Retries, retry_after, send_retrying};
use crate::outside::{self, Answer, Failure};

/// Environment variable with the key. There is no flag for it: other users of the machine can read command lines.
pub const KEY_VARIABLE: &str = "VITRINE_MIRROR_KEY";

/// Maximum time that the source is asked to hold an answer back: proxies cut at 50 s.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(45);

/// Maximum silence of the source beyond that.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// Permission to send the key unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insecure {
    /// Refused, except within this machine.
    Refuse,
    /// Allowed.
    Allow,
}

/// Presence of the key in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WithKey {
    /// With the key.
    Yes,
    /// Without: texts are public.
    No,
}

/// A server of this contract. `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Source {
    /// Base address, without `/v2` and without a slash at the end.
    base: String,
    /// Key, marked as sensitive.
    key: HeaderValue,
    client: Client,
    /// Client for answers that the source holds back, up to [`MAX_WAIT`].
    waiting: Client,
    retries: Retries,
    version: SharedVersion,
}

/// An answer that isn't the expected one.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Unexpected {
    message: String,
    retry_after: Option<Duration>,
}

/// Returns the pause that the source asked for with the answer that an error is about (`Retry-After`), up to two minutes.
#[must_use]
pub fn requested_pause(error: &anyhow::Error) -> Option<Duration> {
    error.downcast_ref::<Unexpected>()?.retry_after
}

impl Source {
    /// Returns the source at `base`, such as `https://catalog.example`.
    ///
    /// # Errors
    ///
    /// If the address is invalid, or the key would be sent unencrypted.
    pub fn new(
        base: &str,
        key: &str,
        insecure: Insecure,
        retries: Retries,
    ) -> anyhow::Result<Self> {
        let url = base_url(base)?;
        let is_plain = url.scheme() == "http";
        if is_plain && insecure == Insecure::Refuse && !is_this_machine(&url) {
            bail!(
                "--from {url} would send the key unencrypted; use the https address, or add --allow-insecure on a \
                 network that you trust"
            );
        }
        let mut key = HeaderValue::from_str(key)
            .ok()
            .filter(|key| !key.is_empty() && key.to_str().is_ok())
            .with_context(|| format!("{KEY_VARIABLE} isn't a key; expected PREFIX.SECRET"))?;
        key.set_sensitive(true);
        let builder = || {
            let client = outside::builder()?.redirect(outside::same_origin_redirects());
            anyhow::Ok(match is_plain {
                // A proxy could read the key.
                true => client.no_proxy(),
                false => client,
            })
        };
        let build = |client: ClientBuilder| client.build().context("can't set up an HTTP client");
        Ok(Self {
            base: url.as_str().trim_end_matches('/').to_owned(),
            key,
            client: build(builder()?)?,
            waiting: build(builder()?.read_timeout(MAX_WAIT + MAX_SILENCE))?,
            retries,
            version: SharedVersion::default(),
        })
    }

    /// Returns the base address, without `/v2` and without a slash at the end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the API version of requests: that of the last answer, unless [`look_again`](Self::look_again) was called since.
    pub(super) fn version(&self) -> SourceVersion {
        self.version.get()
    }

    /// Asks for the newest API version again, even if the source didn't have it.
    pub(super) fn look_again(&self) {
        self.version.look_again();
    }

    /// Requests `target`, such as `/v2/product?limit=500`, with retries. With a tag, the response may be a 304.
    pub(super) async fn get(
        &self,
        target: &str,
        with_key: WithKey,
        tag: Option<&HeaderValue>,
        max_bytes: usize,
    ) -> anyhow::Result<Answer> {
        let mut headers = match with_key {
            WithKey::Yes => self.key_headers(),
            WithKey::No => HeaderMap::new(),
        };
        if let Some(tag) = tag {
            headers.insert(IF_NONE_MATCH, tag.clone());
        }
        let answer = self.send(&self.client, target, headers, max_bytes).await;
        answer.map_err(|failure| self.failed(target, failure))
    }

    /// Asks for `path` with a query as [`get`](Self::get) does, with the key; the source may hold the answer back for
    /// [`MAX_WAIT`]. Errors don't repeat the query.
    pub(super) async fn get_held_back(
        &self,
        path: &str,
        query: &str,
        max_bytes: usize,
    ) -> anyhow::Result<Answer> {
        let (target, headers) = (format!("{path}{query}"), self.key_headers());
        let answer = self.send(&self.waiting, &target, headers, max_bytes).await;
        answer.map_err(|failure| self.failed(path, failure))
    }

    fn key_headers(&self) -> HeaderMap {
        let json = HeaderValue::from_static("application/json");
        let key = HeaderName::from_static("x-api-key");
        HeaderMap::from_iter([(key, self.key.clone()), (ACCEPT, json)])
    }

    async fn send(
        &self,
        client: &Client,
        target: &str,
        mut headers: HeaderMap,
        max_bytes: usize,
    ) -> Result<Answer, Failure> {
        let url = format!("{}{target}", self.base);
        loop {
            let version = self.version();
            headers.insert("x-api-version", HeaderValue::from_static(version.as_str()));
            let request = || client.get(&url).headers(headers.clone());
            let answer = send_retrying(request, max_bytes, &self.retries).await?;
            let is_unknown =
                answer.status == 400 && error_type(&answer.body) == Some(ErrorType::InvalidVersion);
            if !is_unknown || version == SourceVersion::V2024_02_05 {
                return Ok(answer);
            }
            tracing::debug!(version = version.as_str(), "the source has no such version");
            self.version.fall_back();
        }
    }

    fn failed(&self, target: &str, failure: Failure) -> anyhow::Error {
        let failure = anyhow::Error::new(failure);
        self.wrong(target, &format!("{failure:#}"))
    }

    /// Returns an error about a response. Text from outside is shown without the key.
    pub(super) fn wrong(&self, target: &str, what: &str) -> anyhow::Error {
        anyhow!(self.message(target, what))
    }

    /// Returns an error about an unexpected status, with advice.
    pub(super) fn unexpected(&self, target: &str, answer: &Answer) -> anyhow::Error {
        let Answer {
            status,
            headers,
            body,
        } = answer;
        let kind = error_type(body).map(|kind| format!(" {}", kind.as_str()));
        let kind = kind.unwrap_or_else(|| ", without an error of this API".to_owned());
        let advice = match status {
            401 | 403 => format!("; is the key in {KEY_VARIABLE} one of that server?"),
            404 => "; is that the address of a server of this API?".to_owned(),
            400 | 410 => format!(
                "; does that server know version {}?",
                self.version().as_str()
            ),
            408 | 425 | 429 | 500.. => "; retries didn't help".to_owned(),
            _ => String::new(),
        };
        let message = self.message(target, &format!("status {status}{kind}{advice}"));
        anyhow::Error::new(Unexpected {
            message,
            retry_after: retry_after(headers, SystemTime::now()),
        })
    }

    fn message(&self, target: &str, what: &str) -> String {
        let key = self.key.to_str().unwrap_or_default();
        format!("GET {}{target}: {}", self.base, what.replace(key, "[key]"))
    }
}

/// Returns the error type of a body, if it is one of the contract's; nothing else of the body is shown.
pub(super) fn error_type(body: &[u8]) -> Option<ErrorType> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "type")]
        kind: String,
    }
    let Body { kind } = serde_json::from_slice(body).ok()?;
    ErrorType::ALL
        .iter()
        .copied()
        .find(|one| one.as_str() == kind)
}

fn base_url(base: &str) -> anyhow::Result<Url> {
    let example = "expected an address such as https://catalog.example";
    // A text that may contain a password isn't repeated.
    let mut url =
        Url::parse(base).map_err(|error| anyhow!("--from isn't a URL: {error}; {example}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        bail!("--from contains a user or a password; put the key into {KEY_VARIABLE}");
    }
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        bail!("--from is `{base}`; {example}");
    }
    if url.query().is_some() || url.fragment().is_some() {
        bail!("--from is `{base}`; {example}, without query and fragment");
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if let Some(base) = path.strip_suffix("/v2") {
        url.set_path(base);
    } else if let Some((base, _)) = path.split_once("/v2/") {
        let given = url.clone();
        url.set_path(base);
        let right = url.as_str().trim_end_matches('/');
        bail!("--from is `{given}`; use the part before `/v2`: {right}");
    }
    Ok(url)
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "partner.s3cret";

    fn source(base: &str) -> Result<Source, String> {
        let source = Source::new(base, KEY, Insecure::Refuse, Retries::default());
        source.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn server_addresses_are_normalised_and_others_refused() {
        for (base, expected) in [
            ("https://catalog.example", "https://catalog.example"),
            ("https://catalog.example/", "https://catalog.example"),
            (
                "https://catalog.example:8443/a/b//",
                "https://catalog.example:8443/a/b",
            ),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
            ("http://localhost", "http://localhost"),
            ("https://catalog.example/v2", "https://catalog.example"),
            ("https://catalog.example/a/v2/", "https://catalog.example/a"),
            (
                "https://catalog.example/a/v20",
                "https://catalog.example/a/v20",
            ),
        ] {
            assert_eq!(source(base).unwrap().base(), expected);
        }
        for (base, hint) in [
            (
                "https://catalog.example/a/v2/product/",
                "before `/v2`: https://catalog.example/a",
            ),
            ("https://catalog.example/?limit=5", "without query"),
            ("https://catalog.example/#a", "without query"),
            ("catalog.example", "expected an address"),
            ("ftp://catalog.example", "expected an address"),
            ("http://catalog.example", "unencrypted"),
            ("http://127.0.0.1.example", "unencrypted"),
            ("http://localhost.example", "unencrypted"),
            ("https://user@catalog.example", "VITRINE_MIRROR_KEY"),
        ] {
            let refused = source(base).unwrap_err();
            assert!(refused.contains(hint), "{base}: {refused}");
        }
        let refused = source("https://user:pass-word@catalog.example").unwrap_err();
        assert!(!refused.contains("pass-word"), "{refused}");
        let allowed = Source::new("http://a.example", KEY, Insecure::Allow, Retries::default());
        assert_eq!(allowed.unwrap().base(), "http://a.example");
    }

    #[test]
    fn keys_are_never_shown() {
        let source = source("https://catalog.example").unwrap();
        assert!(!format!("{source:?}").contains("s3cret"));
        let wrong = source.wrong("/v2/product", "it says partner.s3cret");
        assert!(wrong.to_string().ends_with("it says [key]"), "{wrong}");
        for key in ["", "two\nlines-s3cret", "ümlaut-s3cret"] {
            let refused = Source::new(source.base(), key, Insecure::Refuse, Retries::default());
            let refused = format!("{:#}", refused.unwrap_err());
            assert!(
                refused.contains(KEY_VARIABLE) && !refused.contains("s3cret"),
                "{refused}"
            );
        }
    }
}
