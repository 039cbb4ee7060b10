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
use crate::outside::retry::{Retries, send_retrying};
use crate::outside::{Answer, Failure};

/// Value of the `Accept` header: Markdown first. Only the content type of HTML is refused by its name.
const ACCEPTED: &str = "text/markdown, text/plain;q=0.9, */*;q=0.1";

/// Maximum length of a header's value that is read or remembered, in bytes.
const LONGEST_HEADER_BYTES: usize = 1_024;

/// Retries of a transient failure, within the time limit of one text.
const RETRIES: Retries = Retries {
    most: 2,
    first_pause: Duration::from_millis(300),
    longest_pause: Duration::from_secs(5),
};

/// Tags with which HTML documents begin, and Markdown never does.
const HTML_STARTS: [&str; 8] = [
    "!doctype", "?xml", "html", "head", "body", "title", "meta", "script",
];

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

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        if let Some(refused) = Refused::find(&failure) {
            return Self::new("address_refused", refused.to_string());
        }
        match failure {
            Failure::TooLong { .. } => {
                Self::new("text_too_long", "expected Markdown of at most 1 MiB")
            }
            failure @ Failure::Transport { .. } => {
                let is_silent = failure.is_unreachable();
                let causes = format!("{:#}", anyhow::Error::new(failure));
                match is_silent {
                    true => Self::silent("no_answer", causes),
                    false => Self::new("no_answer", causes),
                }
            }
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
    let answer = send_retrying(request, MAX_BYTES, &RETRIES);
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
        _ => {
            let message = format!("expected status 200; the response has {status}");
            return Err(Failed::new("status", message));
        }
    }
    let content_type = text_of(&headers, &CONTENT_TYPE).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    let is_html = ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|html| content_type.eq_ignore_ascii_case(html));
    if is_html {
        let message = format!("expected Markdown; the response is {content_type}, a page");
        return Err(Failed::new("html", message));
    }
    let markdown = markdown(body)?;
    if begins_like_a_page(&markdown) {
        let message = "expected Markdown; the response looks like an HTML page";
        return Err(Failed::new("html", message));
    }
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

/// Returns true if a text begins like an HTML document, comments aside.
fn begins_like_a_page(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("<!--") {
        let Some((_, after)) = comment.split_once("-->") else {
            return false;
        };
        rest = after.trim_start();
    }
    let Some(tag) = rest.strip_prefix('<') else {
        return false;
    };
    HTML_STARTS.iter().any(|start| {
        let name = tag.get(..start.len());
        let next = tag.as_bytes().get(start.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(start))
            && next.is_none_or(|next| next.is_ascii_whitespace() || matches!(next, b'>' | b'/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(status: u16, content_type: &str, body: &str) -> Result<Usable, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        let body = body.as_bytes().to_vec();
        let answer = Answer {
            status,
            headers,
            body,
        };
        check_response(answer, true).map_err(|failed| failed.rule)
    }

    #[test]
    fn html_pages_are_refused_as_texts() {
        for page in [
            "<!DOCTYPE html><p>Log in",
            "\u{feff}\r\n <html lang=en>",
            "<!-- saved -->\n<!-- twice --> <HTML>",
            "<head/>",
            "<?xml version=\"1.0\"?><html>",
            "<body\nclass=a>",
            "<script>",
        ] {
            assert_eq!(checked(200, "text/plain", page), Err("html"), "{page}");
        }
        for text in [
            "<b>Terms</b>",
            "<header>of Markdown</header>",
            "<!-- a comment --> Terms",
            "<!-- never ended <html>",
            "<https://a.example/>",
            "<",
            "# <html>",
        ] {
            assert!(checked(200, "text/plain", text).is_ok(), "{text}");
        }
        for page in [
            "text/html",
            "Text/HTML; charset=utf-8",
            "application/xhtml+xml",
        ] {
            assert_eq!(checked(200, page, "# Terms"), Err("html"), "{page}");
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
