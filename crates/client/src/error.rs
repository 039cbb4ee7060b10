//! Errors of requests. None shows the key, even if a server repeats it.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::key::Key;
use crate::open::open_enum;

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
    /// Returns the server's error, if it responded with one of the contract; after retries, that of the last attempt.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            Self::GaveUp { last, .. } => last.api(),
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
        match self {
            Self::Api(error) => Some(error.status),
            Self::Unexpected { status, .. } => Some(*status),
            Self::GaveUp { last, .. } => last.status(),
            _ => None,
        }
    }

    /// Returns the time to wait before the next request, from `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(error) => error.retry_after,
            Self::Unexpected { retry_after, .. } | Self::Transport { retry_after, .. } => {
                *retry_after
            }
            Self::GaveUp { last, .. } => last.retry_after(),
            _ => None,
        }
    }

    /// Returns true if the server couldn't be reached, or didn't respond in time.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Timeout => true,
            Self::Transport {
                is_passing: true,
                source,
                ..
            } => source
                .downcast_ref()
                .is_some_and(reqwest::Error::is_connect),
            Self::GaveUp { last, .. } => last.is_unreachable(),
            _ => false,
        }
    }

    /// Returns true if a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Api(error) => TRANSIENT_STATUSES.contains(&error.status),
            Self::Unexpected { status, .. } => TRANSIENT_STATUSES.contains(status),
            Self::Transport { is_passing, .. } => *is_passing,
            Self::Timeout => true,
            _ => false,
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
    pub error_type: ErrorType,
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
    pub fault_type: FaultType,
    /// Description of the fault, for people.
    #[serde(default)]
    pub message: String,
    /// Location of the parameter: `query` and its name.
    #[serde(default)]
    pub location: Vec<String>,
}

open_enum!(
    /// Error type, for programs. A name never changes its meaning.
    ErrorType {
        /// A parameter is unknown, repeated, malformed or out of range.
        BadRequest = "bad_request",
        /// All faults concern paging.
        PaginationError = "pagination_error",
        /// The requested version never existed.
        InvalidVersion = "invalid_version",
        /// The request has no key.
        Unauthorized = "unauthorized",
        /// The key is wrong, expired or revoked.
        InvalidApiKey = "invalid_api_key",
        /// The key doesn't permit this.
        Forbidden = "forbidden",
        /// The route or product doesn't exist.
        NotFound = "not_found",
        /// The route doesn't support the method.
        MethodNotAllowed = "method_not_allowed",
        /// The requested version was removed.
        VersionRemoved = "version_removed",
        /// The token of a copy is no longer known: the copy must be replaced. Status 410, like that of `version_removed`.
        ChangesGone = "changes_gone",
        /// The body is too large.
        PayloadTooLarge = "payload_too_large",
        /// The target is too long.
        UriTooLong = "uri_too_long",
        /// The headers are too large or too many.
        HeadersTooLarge = "headers_too_large",
        /// The key's quota is exhausted.
        RateLimited = "rate_limited",
        /// The service failed.
        InternalServerError = "internal_server_error",
        /// The catalog isn't loaded yet, or the server is overloaded.
        Unavailable = "unavailable",
        /// The request took too long.
        Timeout = "timeout",
    }
);

open_enum!(
    /// Type of a parameter's fault, for programs.
    FaultType {
        /// The operation has no such parameter.
        UnknownParameter = "unknown_parameter",
        /// The parameter takes one value and has several.
        RepeatedParameter = "repeated_parameter",
        /// The value is malformed or isn't allowed.
        InvalidValue = "invalid_value",
        /// The number is too small or too large.
        OutOfRange = "out_of_range",
        /// The parameter can't be combined with another one.
        MutuallyExclusive = "mutually_exclusive",
        /// The cursor can't be a product code.
        InvalidCursor = "invalid_cursor",
    }
);

/// Body of an error. Only the type is required.
#[derive(Deserialize)]
pub(crate) struct ErrorBody {
    #[serde(rename = "type")]
    error_type: ErrorType,
    #[serde(default)]
    message: String,
    help: Option<String>,
    #[serde(default)]
    details: Vec<ParameterFault>,
}

impl ErrorBody {
    /// Returns the error, with the key redacted in all texts.
    pub(crate) fn into_error(
        self,
        key: &Key,
        status: u16,
        request_id: Option<String>,
        retry_after: Option<Duration>,
    ) -> ApiError {
        let details = self.details.into_iter().map(|fault| ParameterFault {
            fault_type: FaultType::from(&*key.redact(fault.fault_type.as_str())),
            message: key.redact(&fault.message),
            location: fault.location.iter().map(|part| key.redact(part)).collect(),
        });
        ApiError {
            status,
            error_type: ErrorType::from(&*key.redact(self.error_type.as_str())),
            message: key.redact(&self.message),
            help: self.help.map(|help| key.redact(&help)),
            details: details.collect(),
            request_id: request_id.map(|id| key.redact(&id)),
            retry_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_equal_those_of_the_server() {
        let wire: Vec<&str> = vitrine_wire::error::ErrorType::ALL
            .iter()
            .map(|t| t.as_str())
            .collect();
        assert_eq!(
            ErrorType::KNOWN
                .iter()
                .map(ErrorType::as_str)
                .collect::<Vec<_>>(),
            wire
        );
        let wire: Vec<&str> = vitrine_wire::error::FaultType::ALL
            .iter()
            .map(|t| t.as_str())
            .collect();
        assert_eq!(
            FaultType::KNOWN
                .iter()
                .map(FaultType::as_str)
                .collect::<Vec<_>>(),
            wire
        );
    }
}
