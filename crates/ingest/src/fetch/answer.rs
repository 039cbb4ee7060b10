//! Requests the text at an address, and checks the response.

use std::time::Duration;

use http::HeaderMap;
use http::header::{
    ACCEPT, CONTENT_TYPE, ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Client, Url};
use vitrine_model::Invalid;
use vitrine_store::record::FetchedText;

use super::Reach;
use crate::load::texts::{MAX_BYTES, markdown};
use crate::outside::guard::{self, Refused};
use crate::outside::{Answer, Error, Retries, send_retrying};

/// Value of the `Accept` header: Markdown first. Only the content type of JSON is refused by its name.
const ACCEPTED: &str = "text/markdown, text/plain;q=0.9, text/html;q=0.8, */*;q=0.1";

/// Maximum length of a header's value that is read or remembered, in bytes.
const LONGEST_HEADER_BYTES: usize = 1_024;

/// Returns the retries of a transient failure. The time limit of one text ends them, too.
fn retries() -> Retries {
    let mut retries = Retries::default();
    (retries.most, retries.longest_total) = (2, Duration::MAX);
    (retries.first_pause, retries.longest_pause) =
        (Duration::from_millis(300), Duration::from_secs(5));
    retries
}

/// Usable response of an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Usable {
    /// Unchanged since the last fetch: status 304 to a conditional request.
    NotModified,
    /// A text.
    Text {
        markdown: String,
        etag: Option<String>,
        last_modified: Option<String>,
    },
}

/// Responsiveness of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// It responded, or wasn't asked.
    Answered,
    /// It couldn't be reached, or didn't respond in time.
    Silent,
}

/// Reason why an address gave no text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// The reason, for programs.
    pub(super) rule: &'static str,
    /// Message for people.
    pub(super) message: String,
    pub(super) host: Host,
}

impl Failed {
    fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            host: Host::Answered,
        }
    }

    fn of_status(status: u16) -> Self {
        let message = format!("expected status 200; the response has {status}");
        Self::new("status", message)
    }

    fn silent(rule: &'static str, message: String) -> Self {
        Self {
            host: Host::Silent,
            ..Self::new(rule, message)
        }
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::new("address_refused", refused.to_string())
    }
}

impl From<Invalid> for Failed {
    fn from(Invalid { rule, expected }: Invalid) -> Self {
        Self::new(rule, format!("expected {expected}"))
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        if let Some(refused) = Refused::find(&error) {
            return Self::new("address_refused", refused.to_string());
        }
        if let Some(status) = error.status() {
            return Self::of_status(status);
        }
        if matches!(error, Error::TooLong { .. }) {
            return Self::new("text_too_long", "expected Markdown of at most 1 MiB");
        }
        let is_silent = error.is_unreachable();
        let error = match error {
            Error::GaveUp { last, .. } => *last,
            error => error,
        };
        let causes = format!("{:#}", anyhow::Error::new(error));
        match is_silent {
            true => Self::silent("no_answer", causes),
            false => Self::new("no_answer", causes),
        }
    }
}

/// Requests the text at `url`; `before` is the result of the last fetch.
///
/// # Errors
///
/// If there is no usable response within `patience`.
pub(super) async fn ask(
    client: &Client,
    url: &str,
    before: Option<&FetchedText>,
    reach: Reach,
    patience: Duration,
) -> Result<Usable, Failed> {
    let url = Url::parse(url).map_err(|error| Failed::new("url", error.to_string()))?;
    if reach == Reach::Public {
        guard::check(&url)?;
    }
    let request = || {
        let mut request = client.get(url.clone()).header(ACCEPT, ACCEPTED);
        if let Some(etag) = before.and_then(|before| before.etag.as_ref()) {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(since) = before.and_then(|before| before.last_modified.as_ref()) {
            request = request.header(IF_MODIFIED_SINCE, since);
        }
        request
    };
    let retries = retries();
    let answer = send_retrying(request, MAX_BYTES, &retries);
    let Ok(answer) = tokio::time::timeout(patience, answer).await else {
        let seconds = patience.as_secs();
        let message = format!("no complete response within {seconds} seconds");
        return Err(Failed::silent("timeout", message));
    };
    let was_conditional =
        before.is_some_and(|before| before.etag.is_some() || before.last_modified.is_some());
    check_response(answer?, was_conditional)
}

fn check_response(answer: Answer, was_conditional: bool) -> Result<Usable, Failed> {
    let Answer {
        status,
        headers,
        body,
    } = answer;
    match status {
        200 => {}
        304 if was_conditional => return Ok(Usable::NotModified),
        _ => return Err(Failed::of_status(status)),
    }
    let content_type = text_of(&headers, &CONTENT_TYPE).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    if content_type.eq_ignore_ascii_case("application/json") || content_type.ends_with("+json") {
        let message = format!("expected Markdown or HTML; the response is {content_type}");
        return Err(Failed::new("json", message));
    }
    let markdown = markdown(body.into())?;
    Ok(Usable::Text {
        markdown,
        etag: text_of(&headers, &ETAG),
        last_modified: text_of(&headers, &LAST_MODIFIED),
    })
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    // A validator that isn't ASCII couldn't be sent back.
    let value = headers.get(name)?.to_str().ok()?.trim();
    let is_fit = (1..=LONGEST_HEADER_BYTES).contains(&value.len());
    is_fit.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(status: u16, content_type: &str, body: &str) -> Result<Usable, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        let body = body.as_bytes().to_vec().into();
        let answer = Answer {
            status,
            headers,
            body,
        };
        check_response(answer, true).map_err(|failed| failed.rule)
    }

    #[test]
    fn html_is_a_text_and_json_is_not() {
        for (content_type, body, expected) in [
            (
                "text/html; charset=utf-8",
                "<!DOCTYPE html><title>A</title><p>Terms",
                Ok(()),
            ),
            (
                "application/xhtml+xml",
                "<html><body>Terms</body></html>",
                Ok(()),
            ),
            ("text/plain", "<b>Terms</b>", Ok(())),
            (
                "text/html",
                "<html><script>go()</script></html>",
                Err("text_renders_empty"),
            ),
            ("application/json", "{\"error\": 1}", Err("json")),
            ("application/problem+json; charset=utf-8", "{}", Err("json")),
        ] {
            let came = checked(200, content_type, body).map(|_| ());
            assert_eq!(came, expected, "{content_type} {body}");
        }
    }

    #[test]
    fn responses_other_than_a_whole_text_are_refused() {
        for status in [201, 204, 206, 301, 403, 404, 500] {
            assert_eq!(
                checked(status, "text/plain", "# T"),
                Err("status"),
                "{status}"
            );
        }
        assert_eq!(checked(304, "text/plain", ""), Ok(Usable::NotModified));
        assert_eq!(checked(200, "text/markdown", " \n"), Err("text_blank"));
    }
}
