//! One request: sending it, reading the response up to a limit, and classifying it.

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use serde::de::DeserializeOwned;

use crate::Result;
use crate::client::Inner;
use crate::error::{Error, ErrorBody, Escaped, cut};
use crate::retry::with_retries;
use crate::transport::{Answer, send};

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
/// Fault of a 304 to a request without `If-None-Match`.
const UNTAGGED: &str = "it was asked for no tag";
/// Maximum length of a request id that is kept (docs/contract/endpoints.md#request-identifiers), in bytes.
const MAX_REQUEST_ID_BYTES: usize = 128;

impl Inner {
    /// Requests an operation, and reads the response as a `T`.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, target: &str) -> Result<T> {
        self.decode(&self.get(target).await?.body)
    }

    /// Requests an operation.
    pub(crate) async fn get(&self, target: &str) -> Result<Answer> {
        let url = format!("{}{target}", self.base_url);
        self.fetch(&url, JSON, || self.json_request(&url)).await
    }

    /// Requests an operation without the cache; `None` if the response still has this entity tag.
    pub(crate) async fn get_unless(&self, target: &str, etag: &str) -> Result<Option<Answer>> {
        let url = format!("{}{target}", self.base_url);
        let attempt = || {
            let request = self.json_request(&url).header(IF_NONE_MATCH, etag);
            self.attempt(request, JSON)
        };
        let answer = with_retries(&self.retries, self.on_retry, attempt).await?;
        Ok((answer.status != 304).then_some(answer))
    }

    /// Requests an operation once, without retries and cache. The server may `hold` the response for that time.
    pub(crate) async fn get_once(&self, target: &str, hold: Duration) -> Result<Answer> {
        let request = self.json_request(&format!("{}{target}", self.base_url));
        let request = request.timeout(self.timeout.saturating_add(hold));
        match self.attempt(request, JSON).await? {
            untagged if untagged.status == 304 => Err(untagged.unexpected(UNTAGGED)),
            answer => Ok(answer),
        }
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
        let Answer { body, .. } = self.fetch(url, "text/", request).await?;
        String::from_utf8(body.into()).map_err(|error| Error::Decode {
            place: format!("byte {}", error.utf8_error().valid_up_to()),
            what: "it isn't UTF-8".to_owned(),
        })
    }

    /// Sends a request with retries; takes the response from the cache after a 304.
    async fn fetch(
        &self,
        url: &str,
        media_type: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Answer> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(url));
        let attempt = || {
            let request = match &cached {
                Some(cached) => request().header(IF_NONE_MATCH, &cached.tag),
                None => request(),
            };
            self.attempt(request, media_type)
        };
        let mut answer = with_retries(&self.retries, self.on_retry, attempt).await?;
        if answer.status != 304 {
            if let Some(cache) = &self.cache {
                cache.put(url, answer.headers.get(ETAG), &answer.body);
            }
            return Ok(answer);
        }
        let cached = cached.ok_or_else(|| answer.unexpected(UNTAGGED))?;
        answer.headers.insert(ETAG, cached.tag.clone());
        answer.body = cached.body.clone();
        Ok(answer)
    }

    /// Makes one attempt: the response has status 200 and this media type, or 304.
    async fn attempt(&self, request: RequestBuilder, media_type: &str) -> Result<Answer> {
        let answer = send(request, self.most_body_bytes).await?;
        match answer.status {
            200 => {}
            304 => return Ok(answer),
            // Also if the response isn't one of the contract: a load balancer may have sent it.
            _ => return Err(self.response_error(&answer)),
        }
        let is_right = answer
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.to_ascii_lowercase().starts_with(media_type));
        match is_right {
            true => Ok(answer),
            false => Err(answer.unexpected(&format!(
                "it isn't {media_type}; is a server of this contract at that address?"
            ))),
        }
    }

    /// Returns the error for a response other than 200 or 304.
    fn response_error(&self, answer: &Answer) -> Error {
        let status = answer.status;
        match serde_json::from_slice::<ErrorBody>(&answer.body) {
            Ok(error) if status >= 400 => {
                let id = answer.headers.get("x-request-id");
                let id = id
                    .and_then(|id| id.to_str().ok())
                    .filter(|id| id.len() <= MAX_REQUEST_ID_BYTES)
                    .map(str::to_owned);
                let error = error.into_error(&self.key, status, id, answer.retry_after());
                Error::Api(Box::new(error))
            }
            _ if (300..400).contains(&status) => answer
                .unexpected("a redirect, which isn't followed; give the address that it leads to"),
            _ => answer.unexpected(
                "no error as the contract has it; is a server of this contract at that address?",
            ),
        }
    }

    pub(crate) fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        // Tracking paths costs time, so the path is determined only after a failure.
        serde_json::from_slice(body).map_err(|error| {
            let mut reader = serde_json::Deserializer::from_slice(body);
            let placed = serde_path_to_error::deserialize::<_, T>(&mut reader);
            let (place, what) = match placed {
                Err(placed) => (placed.path().to_string(), placed.into_inner().to_string()),
                Ok(_) => (".".to_owned(), error.to_string()),
            };
            let clean = |text: &str| Escaped(&cut(self.key.redact(text))).to_string();
            Error::Decode {
                place: clean(&place),
                what: clean(&what),
            }
        })
    }
}
