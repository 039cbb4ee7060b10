//! Requests below the operations, for programs that also ask other servers: a response read completely, within a limit.
//!
//! [`send`] sends a request once. [`with_retries`] repeats it.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};

use crate::Result;
use crate::error::{Error, TRANSIENT_STATUSES};

pub use crate::retry::{OnRetry, with_retries};
pub use crate::tls::{default_config as tls_config, is_certificate_error};

/// A response, read completely.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, decompressed.
    pub body: Bytes,
}

impl Answer {
    /// Returns the time to wait before the next request (`Retry-After`).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers, SystemTime::now())
    }

    /// Refuses the statuses after which a retry may succeed, so that [`with_retries`] makes one.
    ///
    /// # Errors
    ///
    /// [`Error::Unexpected`] for such a status.
    pub fn refuse_transient(self) -> Result<Self> {
        match TRANSIENT_STATUSES.contains(&self.status) {
            true => Err(self.unexpected("the server is busy or down")),
            false => Ok(self),
        }
    }

    /// Returns the error for a response that isn't the expected one.
    pub(crate) fn unexpected(&self, what: &str) -> Error {
        Error::Unexpected {
            status: self.status,
            what: what.to_owned(),
            retry_after: self.retry_after(),
        }
    }
}

/// Sends a request once, and reads the response, of any status, up to a maximum length after decompression.
///
/// # Errors
///
/// If there is no response, or not a whole one, or a longer one.
pub async fn send(request: RequestBuilder, most_bytes: usize) -> Result<Answer> {
    let response = request.send().await.map_err(|error| failed(error, None))?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = read(response, most_bytes).await?;
    Ok(Answer {
        status,
        headers,
        body,
    })
}

async fn read(mut response: Response, most_bytes: usize) -> Result<Bytes> {
    let retry_after = retry_after(response.headers(), SystemTime::now());
    let cut_off = |error| failed(error, retry_after);
    let mut body = BytesMut::new();
    while let Some(part) = response.chunk().await.map_err(cut_off)? {
        if body.len() + part.len() > most_bytes {
            return Err(Error::TooLong { most_bytes });
        }
        body.extend_from_slice(&part);
    }
    Ok(body.freeze())
}

fn failed(error: reqwest::Error, retry_after: Option<Duration>) -> Error {
    if error.is_builder() {
        return Error::Request(
            "that address can't be asked; expected one of http or https".to_owned(),
        );
    }
    if error.is_timeout() {
        return Error::Timeout;
    }
    let is_untrusted = is_certificate_error(&error);
    let what = match &error {
        _ if is_untrusted => "the server's certificate isn't trusted",
        error if error.is_redirect() => "the redirect was refused",
        error if error.is_connect() => "can't connect",
        error if error.is_body() || error.is_decode() => "the answer was cut off or is damaged",
        _ => "the request failed",
    };
    Error::Transport {
        what,
        is_passing: !is_untrusted && !error.is_redirect(),
        retry_after,
        source: Box::new(error.without_url()),
    }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    // Digits only: `parse` would accept `+1`, too.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 10:00:00 GMT").unwrap();
        for (value, expected) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("86400", Some(86_400)),
            ("Sat, 21 Nov 2026 10:00:09 GMT", Some(9)),
            ("Sat, 21 Nov 2026 09:00:00 GMT", Some(0)),
            ("99999999999999999999", None),
            ("soon", None),
            ("-1", None),
            ("+1", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
            let expected = expected.map(Duration::from_secs);
            assert_eq!(retry_after(&headers, now), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
