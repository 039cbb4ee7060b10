//! Errors of requests. None shows the key, even if a server repeats it.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use vitrine_wire::error::{ErrorType, FaultType};

use crate::key::Key;
use crate::open::Open;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server responded with an error of the contract.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// The response isn't one of the contract: a redirect, a page for people, an unexpected 304. Often the base URL is that
    /// of another server.
    #[error("status {status}: {what}")]
    Unexpected {
        /// Status of the response.
        status: u16,
        /// Description of the fault.
        what: String,
        /// Time to wait before the next request, from `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The response isn't JSON of the expected type.
    #[error("the answer can't be read, at `{place}`: {what}")]
    Decode {
        /// Path to the fault, such as `catalog[3].gift_card.expiry.in_months`.
        place: String,
        /// Description of the fault.
        what: String,
    },
    /// The body is longer than [`most_body_bytes`](crate::ClientBuilder::most_body_bytes).
    #[error("the answer is longer than {most_bytes} bytes")]
    TooLong {
        /// Maximum length, in bytes.
        most_bytes: usize,
    },
    /// The request took longer than [`timeout`](crate::ClientBuilder::timeout),
    /// [`connect_timeout`](crate::ClientBuilder::connect_timeout) or [`Retries::longest_total`](crate::Retries).
    #[error("it took too long")]
    Timeout,
    /// The response didn't arrive, or not completely.
    #[error("{what}")]
    Transport {
        /// Short description of the failure.
        what: &'static str,
        /// True if a retry may succeed.
        is_passing: bool,
        /// Time to wait before the next request, from `Retry-After`.
        retry_after: Option<Duration>,
        /// Cause, without the URL.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request can't be sent: the code or the URL is invalid.
    #[error("{0}")]
    Request(String),
    /// The cursors of pages form a cycle: the server violates the contract.
    #[error("the server's cursor leads back to `{cursor}`")]
    Circle {
        /// The repeated cursor.
        cursor: String,
    },
    /// All attempts failed.
    #[error("tried {tries} times")]
    GaveUp {
        /// Number of attempts.
        tries: u32,
        /// Error of the last attempt.
        #[source]
        last: Box<Error>,
    },
}

impl Error {
    /// Returns the error of the last attempt; itself, if there was only one.
    #[must_use]
    pub fn last(&self) -> &Self {
        match self {
            Self::GaveUp { last, .. } => last.last(),
            error => error,
        }
    }

    /// Returns the server's error, if it responded with one of the contract; after retries, that of the last attempt.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self.last() {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the server says that the product or route doesn't exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.api()
            .is_some_and(|error| error.error_type == ErrorType::NotFound)
    }

    /// Returns true if the server no longer knows the token of a copy: begin without one, and replace the copy.
    #[must_use]
    pub fn is_changes_gone(&self) -> bool {
        self.api()
            .is_some_and(|error| error.error_type == ErrorType::ChangesGone)
    }

    /// Returns the status of the response, if it was the reason; after retries, that of the last attempt.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self.last() {
            Self::Api(error) => Some(error.status),
            Self::Unexpected { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the time to wait before the next request, from `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.last() {
            Self::Api(error) => error.retry_after,
            Self::Unexpected { retry_after, .. } | Self::Transport { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// Returns true if the server couldn't be reached, or didn't respond in time.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self.last() {
            Self::Timeout => true,
            Self::Transport {
                is_passing: true,
                source,
                ..
            } => source
                .downcast_ref()
                .is_some_and(reqwest::Error::is_connect),
            _ => false,
        }
    }

    /// Returns true if a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Transport { is_passing, .. } => *is_passing,
            Self::Timeout => true,
            // Retries were made already.
            Self::GaveUp { .. } => false,
            error => error
                .status()
                .is_some_and(|status| TRANSIENT_STATUSES.contains(&status)),
        }
    }
}

/// Statuses after which a retry may succeed: timeouts, limits, and servers that are briefly down.
pub(crate) const TRANSIENT_STATUSES: [u16; 7] = [408, 425, 429, 500, 502, 503, 504];

/// An error of the contract (docs/contract/errors.md#types).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// Status of the response.
    pub status: u16,
    /// Error type, for programs.
    pub error_type: Open<ErrorType>,
    /// Error message, for people.
    pub message: String,
    /// Suggested fix, for people.
    pub help: Option<String>,
    /// Refused parameters, in the request's order.
    pub details: Vec<ParameterFault>,
    /// Identifier of the request in the server's log.
    pub request_id: Option<String>,
    /// Time to wait before the next request, from `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl std::error::Error for ApiError {}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            error_type,
            message,
            help,
            details,
            request_id,
            ..
        } = self;
        // The server's texts must not start a new line in a log.
        write!(
            f,
            "{} ({status}): {}",
            Escaped(error_type.as_str()),
            Escaped(message)
        )?;
        for ParameterFault { message, .. } in details {
            write!(f, "; {}", Escaped(message))?;
        }
        if let Some(help) = help {
            write!(f, "; help: {}", Escaped(help))?;
        }
        match request_id {
            Some(id) => write!(f, " [request {}]", Escaped(id)),
            None => Ok(()),
        }
    }
}

/// Displays an untrusted text, with control characters escaped as in JSON.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                hidden
                    if hidden.is_control()
                        || matches!(hidden, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
                {
                    write!(f, "\\u{:04x}", u32::from(hidden))?;
                }
                shown => write!(f, "{shown}")?,
            }
        }
        Ok(())
    }
}

/// A refused parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ParameterFault {
    /// Fault type, for programs.
    #[serde(rename = "type")]
    pub fault_type: Open<FaultType>,
    /// Description of the fault, for people.
    #[serde(default)]
    pub message: String,
    /// Location of the parameter: `query` and its name.
    #[serde(default)]
    pub location: Vec<String>,
}

/// Maximum length of a text of the server that is kept, in bytes: a log has room for it.
const MAX_TEXT_BYTES: usize = 1_000;

/// Maximum number of faults that are kept, and of parts of a place.
const MAX_DETAILS: usize = 100;

/// Cuts a text of the server at the maximum length.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

/// Body of an error. Only the type is required.
#[derive(Deserialize)]
pub(crate) struct ErrorBody {
    #[serde(rename = "type")]
    error_type: Open<ErrorType>,
    #[serde(default)]
    message: String,
    help: Option<String>,
    #[serde(default)]
    details: Vec<ParameterFault>,
}

impl ErrorBody {
    /// Returns the error, with the key redacted in all texts, and long ones cut.
    pub(crate) fn into_error(
        self,
        key: &Key,
        status: u16,
        request_id: Option<String>,
        retry_after: Option<Duration>,
    ) -> ApiError {
        let clean = |text: &str| cut(key.redact(text));
        let details = self.details.into_iter().take(MAX_DETAILS);
        let details = details.map(|fault| ParameterFault {
            fault_type: Open::from(&*clean(fault.fault_type.as_str())),
            message: clean(&fault.message),
            location: (fault.location.iter().take(MAX_DETAILS))
                .map(|part| clean(part))
                .collect(),
        });
        ApiError {
            status,
            error_type: Open::from(&*clean(self.error_type.as_str())),
            message: clean(&self.message),
            help: self.help.map(|help| clean(&help)),
            details: details.collect(),
            request_id: request_id.map(|id| key.redact(&id)),
            retry_after,
        }
    }
}
