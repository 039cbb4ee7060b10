//! The mirrored server: its clients, and errors about it.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use reqwest::Url;
use vitrine_client::{
    ApiVersion, BuildError, Client, ClientBuilder, Error, ErrorType, Key, Retries,
};

use crate::outside;

/// Environment variable with the key. There is no flag for it: other users of the machine can read command lines.
pub const KEY_VARIABLE: &str = "VITRINE_MIRROR_KEY";

/// Default number of retries of a request.
pub const DEFAULT_RETRIES: u32 = 5;

/// Maximum silence of the source: the time for which it is asked to hold an answer, and more.
const MAX_SILENCE: Duration = Duration::from_secs(75);
/// Maximum duration of one attempt, beside the time for which the source holds an answer.
const MAX_ATTEMPT: Duration = Duration::from_secs(300);
/// Maximum duration of all attempts of a request, and of a pause that the source asks for.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(600);
/// Maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = vitrine_model::content::PackedMarkdown::MAX_LENGTH_BYTES;

/// Permission to send the key unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insecure {
    /// Refused, except within this machine.
    Refuse,
    /// Allowed.
    Allow,
}

/// A server of this contract. `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Source {
    /// Client that asks for the newest API version.
    newest: Client,
    /// Client that asks for the version that all sources have: discounts of two digits.
    oldest: Client,
    /// Client for texts, which are shorter than pages.
    pub(super) texts: Client,
    /// Maximum number of retries of a request.
    pub(super) retries: u32,
    key: Key,
}

/// Returns the pause that the source asked for with the answer that an error is about (`Retry-After`), up to ten minutes.
#[must_use]
pub fn requested_pause(error: &anyhow::Error) -> Option<Duration> {
    let pause = error.downcast_ref::<Error>()?.retry_after()?;
    Some(pause.min(MAX_PAUSE))
}

impl Source {
    /// Returns the source at `base`, such as `https://catalog.example`.
    ///
    /// # Errors
    ///
    /// If the address is invalid, or the key would be sent unencrypted.
    pub fn new(base: &str, key: &str, insecure: Insecure, retries: u32) -> anyhow::Result<Self> {
        let key = Key::new(key).with_context(|| format!("{KEY_VARIABLE} isn't a key"))?;
        let http = outside::builder()?
            .redirect(outside::same_origin_redirects())
            .read_timeout(MAX_SILENCE);
        let http = match Url::parse(base).is_ok_and(|url| url.scheme() == "http") {
            // A proxy could read the key.
            true => http.no_proxy(),
            false => http,
        };
        let http = http.build().context("can't set up an HTTP client")?;
        let mut policy = Retries::default();
        policy.most = retries;
        policy.first_pause = Duration::from_millis(200);
        policy.longest_pause = Duration::from_secs(30);
        policy.longest_total = MAX_PAUSE;
        policy.longest_requested = MAX_PAUSE;
        let mut builder = Client::builder(base, key.clone())
            .http_client(http)
            .on_retry(outside::log_retry)
            .timeout(MAX_ATTEMPT)
            .retries(policy);
        if insecure == Insecure::Allow {
            builder = builder.allow_insecure();
        }
        let build = |builder: ClientBuilder| builder.build().map_err(about_option);
        Ok(Self {
            newest: build(builder.clone().api_version(ApiVersion::V2026_12_01))?,
            oldest: build(builder.clone().api_version(ApiVersion::V2024_02_05))?,
            texts: build(builder.most_body_bytes(MAX_TEXT_BYTES))?,
            retries,
            key,
        })
    }

    /// Returns the base address, without `/v2` and without a slash at the end.
    #[must_use]
    pub fn base(&self) -> &str {
        let url = self.newest.base_url();
        url.strip_suffix("/v2").unwrap_or(url)
    }

    /// Returns the client that asks for a version.
    pub(super) fn client(&self, version: ApiVersion) -> &Client {
        match version {
            ApiVersion::V2024_02_05 => &self.oldest,
            _ => &self.newest,
        }
    }

    /// Returns an error about a response to a request for `target`, without the key, if the source repeats that.
    pub(super) fn failed(&self, target: &str, error: impl Into<anyhow::Error>) -> anyhow::Error {
        let error = error.into();
        let status = error.downcast_ref().and_then(Error::status);
        let advice = match status {
            Some(401 | 403) => {
                format!(" (is the key in {KEY_VARIABLE} one of that server?)")
            }
            _ => String::new(),
        };
        let error = error.context(format!("GET {}{target}{advice}", self.base()));
        let shown = format!("{error:#}");
        let redacted = self.key.redact(&shown);
        match redacted == shown {
            true => error,
            false => anyhow!(redacted),
        }
    }
}

fn about_option(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Insecure { host } => anyhow!(
            "--from would send the key to {host} unencrypted; use the https address, or add --allow-insecure on a \
             network that you trust"
        ),
        error => anyhow::Error::new(error).context("--from"),
    }
}

/// Returns the type of the source's error.
pub(super) fn error_type(error: &Error) -> Option<ErrorType> {
    error.api()?.error_type.known()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "partner.s3cret";

    fn source(base: &str) -> Result<Source, String> {
        let source = Source::new(base, KEY, Insecure::Refuse, 0);
        source.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn server_addresses_are_normalised_and_others_refused() {
        for (base, expected) in [
            ("https://catalog.example/", "https://catalog.example"),
            (
                "https://catalog.example:8443/a/b//",
                "https://catalog.example:8443/a/b",
            ),
            ("http://[::1]:8080/", "http://[::1]:8080"),
            ("https://catalog.example/a/v2/", "https://catalog.example/a"),
        ] {
            assert_eq!(source(base).unwrap().base(), expected);
        }
        for (base, hint) in [
            ("https://catalog.example/?limit=5", "has a query"),
            ("catalog.example", "expected one such as"),
            ("http://catalog.example", "--allow-insecure"),
        ] {
            let refused = source(base).unwrap_err();
            let is_about_option = refused.starts_with("--from");
            assert!(
                is_about_option && refused.contains(hint),
                "{base}: {refused}"
            );
        }
        let allowed = Source::new("http://a.example", KEY, Insecure::Allow, 0);
        assert_eq!(allowed.unwrap().base(), "http://a.example");
    }

    #[test]
    fn keys_are_never_shown() {
        let source = source("https://catalog.example").unwrap();
        assert!(!format!("{source:?}").contains("s3cret"));
        let wrong = source.failed("/v2/product", anyhow!("it says partner.s3cret"));
        assert!(wrong.to_string().ends_with("it says [key]"), "{wrong}");
        for key in ["", "two\nlines-s3cret", "ümlaut-s3cret"] {
            let refused = Source::new(source.base(), key, Insecure::Refuse, 0);
            let refused = format!("{:#}", refused.unwrap_err());
            assert!(
                refused.contains(KEY_VARIABLE) && !refused.contains("s3cret"),
                "{refused}"
            );
        }
    }
}
