//! One request: sending it, reading the response up to a limit, and classifying it.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use reqwest::{RequestBuilder, Response};
use serde::de::DeserializeOwned;

use crate::Result;
use crate::client::Inner;
use crate::error::{Error, ErrorBody, Escaped};
use crate::retry::{Failure, retry_after, with_retries};
use crate::tls::is_certificate_error;

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
/// Fault of a 304 to a request without `If-None-Match`.
const UNTAGGED: &str = "it was asked for no tag";
/// Maximum length of a request id that is kept (docs/contract/endpoints.md#request-identifiers), in bytes.
const MAX_REQUEST_ID_BYTES: usize = 128;

impl Inner {
    /// Requests an operation, and reads the response as a `T`.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, target: &str) -> Result<T> {
        let url = format!("{}{target}", self.base_url);
        let body = self.fetch(&url, JSON, || self.json_request(&url)).await?;
        self.decode(&body)
    }

    /// Requests an operation once, without retries and cache, and reads the response as a `T`, beside its `Retry-After`. The
    /// server may `hold` the response for that time.
    pub(crate) async fn get_json_once<T: DeserializeOwned>(
        &self,
        target: &str,
        hold: Duration,
    ) -> std::result::Result<(T, Option<Duration>), Failure> {
        let request = self.json_request(&format!("{}{target}", self.base_url));
        let request = request.timeout(self.timeout.saturating_add(hold));
        let (headers, body) = self
            .attempt(request, JSON, None)
            .await?
            .ok_or_else(|| unexpected(304, UNTAGGED))?;
        Ok((
            self.decode(&body)?,
            retry_after(&headers, SystemTime::now()),
        ))
    }

    /// Returns a request for JSON, with the key.
    fn json_request(&self, url: &str) -> RequestBuilder {
        let request = self.http.get(url).header(ACCEPT, JSON);
        request
            .header("x-api-key", self.key.header())
            .header("x-api-version", self.api_version.as_str())
    }

    /// Fetches a text at any URL, without sending the key.
    pub(crate) async fn get_text(&self, url: &str) -> Result<String> {
        let request = || self.http.get(url).header(ACCEPT, MARKDOWN);
        let body = self.fetch(url, "text/", request).await?;
        String::from_utf8(body.into()).map_err(|error| Error::Decode {
            place: format!("byte {}", error.utf8_error().valid_up_to()),
            what: "it isn't UTF-8".to_owned(),
        })
    }

    /// Sends a request with retries; takes the body from the cache after a 304.
    async fn fetch(
        &self,
        url: &str,
        media_type: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Bytes> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(url));
        let tag = cached.as_ref().map(|cached| cached.tag.clone());
        let attempt = || self.attempt(request(), media_type, tag.clone());
        match (with_retries(&self.retries, attempt).await?, cached) {
            (Some((headers, body)), _) => {
                if let Some(cache) = &self.cache {
                    cache.put(url, headers.get(ETAG), &body);
                }
                Ok(body)
            }
            (None, Some(cached)) => Ok(cached.body.clone()),
            (None, None) => Err(unexpected(304, UNTAGGED)),
        }
    }

    /// Makes one attempt. `None` is a 304.
    async fn attempt(
        &self,
        mut request: RequestBuilder,
        media_type: &str,
        tag: Option<HeaderValue>,
    ) -> std::result::Result<Option<(HeaderMap, Bytes)>, Failure> {
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let response = request.send().await.map_err(transport_error)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if status == 304 {
            return Ok(None);
        }
        // Also if the response isn't one of the contract: a load balancer may have sent it.
        let retry_after = retry_after(&headers, SystemTime::now());
        let refused = |error| Failure { error, retry_after };
        let body = self.read(response).await.map_err(refused)?;
        if status != 200 {
            let error = self.response_error(status, &headers, &body, retry_after);
            return Err(refused(error));
        }
        let is_right = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.to_ascii_lowercase().starts_with(media_type));
        match is_right {
            true => Ok(Some((headers, body))),
            false => Err(refused(unexpected(
                status,
                &format!("it isn't {media_type}; is a server of this contract at that address?"),
            ))),
        }
    }

    /// Reads a body up to the maximum length, counted after decompression.
    async fn read(&self, mut response: Response) -> Result<Bytes> {
        let most_bytes = self.most_body_bytes;
        let mut body = BytesMut::new();
        while let Some(part) = response.chunk().await.map_err(transport_error)? {
            if body.len() + part.len() > most_bytes {
                return Err(Error::TooLong { most_bytes });
            }
            body.extend_from_slice(&part);
        }
        Ok(body.freeze())
    }

    /// Returns the error for a response other than 200 or 304.
    fn response_error(
        &self,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> Error {
        match serde_json::from_slice::<ErrorBody>(body) {
            Ok(error) if status >= 400 => {
                let id = headers.get("x-request-id").and_then(|id| id.to_str().ok());
                let id = id
                    .filter(|id| id.len() <= MAX_REQUEST_ID_BYTES)
                    .map(str::to_owned);
                Error::Api(Box::new(error.into_error(
                    &self.key,
                    status,
                    id,
                    retry_after,
                )))
            }
            _ if (300..400).contains(&status) => unexpected(
                status,
                "a redirect, which isn't followed; give the address that it leads to",
            ),
            _ => unexpected(
                status,
                "no error as the contract has it; is a server of this contract at that address?",
            ),
        }
    }

    fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        // Tracking paths costs time, so the path is determined only after a failure.
        serde_json::from_slice(body).map_err(|error| {
            let mut reader = serde_json::Deserializer::from_slice(body);
            let placed = serde_path_to_error::deserialize::<_, T>(&mut reader);
            let (place, what) = match placed {
                Err(placed) => (placed.path().to_string(), placed.into_inner().to_string()),
                Ok(_) => (".".to_owned(), error.to_string()),
            };
            let clean = |text: &str| Escaped(&self.key.redact(text)).to_string();
            Error::Decode {
                place: clean(&place),
                what: clean(&what),
            }
        })
    }
}

fn unexpected(status: u16, what: &str) -> Error {
    Error::Unexpected {
        status,
        what: what.to_owned(),
    }
}

fn transport_error(error: reqwest::Error) -> Error {
    if error.is_builder() {
        return Error::Request(
            "that address can't be asked; expected one of http or https".to_owned(),
        );
    }
    if error.is_timeout() {
        return Error::Timeout;
    }
    let is_certificate_error = is_certificate_error(&error);
    let what = match &error {
        _ if is_certificate_error => "the server's certificate isn't trusted",
        error if error.is_connect() => "can't connect",
        error if error.is_body() || error.is_decode() => "the answer was cut off or is damaged",
        _ => "the request failed",
    };
    Error::Transport {
        what,
        is_passing: !is_certificate_error,
        source: Box::new(error.without_url()),
    }
}
