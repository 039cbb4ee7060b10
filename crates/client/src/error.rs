//! What can go wrong with a request. Nothing here shows the key, even where a server repeats it.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::key::Key;
use crate::open::open_enum;

/// Why a request gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error of the contract.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// The server answered with something that the contract doesn't have: a redirect, a page for people, a 304 that nobody
    /// asked for. Often the address is another one's.
    #[error("status {status}: {what}")]
    Unexpected {
        /// The answer's status.
        status: u16,
        /// What is wrong with it.
        what: String,
    },
    /// The answer is JSON, but not what it should be.
    #[error("the answer can't be read, at `{place}`: {what}")]
    Decode {
        /// Where: a path such as `catalog[3].gift_card.expiry.in_months`.
        place: String,
        /// What is wrong there.
        what: String,
    },
    /// The answer is longer than [`most_body_bytes`](crate::ClientBuilder::most_body_bytes).
    #[error("the answer is longer than {most_bytes} bytes")]
    TooLong {
        /// What was allowed.
        most_bytes: usize,
    },
    /// It took longer than [`timeout`](crate::ClientBuilder::timeout),
    /// [`connect_timeout`](crate::ClientBuilder::connect_timeout) or [`Retries::longest_total`](crate::Retries).
    #[error("it took too long")]
    Timeout,
    /// The answer didn't come, or not whole.
    #[error("{what}")]
    Transport {
        /// What went wrong, in a word.
        what: &'static str,
        /// Whether another try may mend it.
        is_passing: bool,
        /// What lies beneath, without the address.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request can't be made: such a code or such an address can't be.
    #[error("{0}")]
    Request(String),
    /// Pages lead in a circle: the server doesn't keep the contract.
    #[error("the server's cursor leads back to `{cursor}`")]
    Circle {
        /// The cursor that came before.
        cursor: String,
    },
    /// It failed however often it was tried.
    #[error("tried {tries} times")]
    GaveUp {
        /// How often.
        tries: u32,
        /// Why the last one failed.
        #[source]
        last: Box<Error>,
    },
}

impl Error {
    /// What the server said, where it answered with an error of the contract; also of the last of several tries.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            Self::GaveUp { last, .. } => last.api(),
            _ => None,
        }
    }

    /// Whether the server says that there is no such product or route.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.api()
            .is_some_and(|error| error.error_type == ErrorType::NotFound)
    }

    /// Whether another try may mend it.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Api(error) => PASSING_STATUSES.contains(&error.status),
            Self::Unexpected { status, .. } => PASSING_STATUSES.contains(status),
            Self::Transport { is_passing, .. } => *is_passing,
            Self::Timeout => true,
            _ => false,
        }
    }
}

/// The statuses that another try may mend: timeouts, limits, and servers that are down for a moment.
const PASSING_STATUSES: [u16; 7] = [408, 425, 429, 500, 502, 503, 504];

/// An error of the contract (docs/contract/errors.md#types).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The answer's status.
    pub status: u16,
    /// What went wrong, for programs.
    pub error_type: ErrorType,
    /// What went wrong, for people.
    pub message: String,
    /// What to do, for people.
    pub help: Option<String>,
    /// The refused parameters, in the request's order.
    pub details: Vec<ParameterFault>,
    /// What the server's log calls the request.
    pub request_id: Option<String>,
    /// How long the server asks to be left alone.
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
        // The texts are the server's: none of them may begin another line of a log.
        write!(
            f,
            "{} ({status}): {}",
            Plain(error_type.as_str()),
            Plain(message)
        )?;
        for ParameterFault { message, .. } in details {
            write!(f, "; {}", Plain(message))?;
        }
        if let Some(help) = help {
            write!(f, "; help: {}", Plain(help))?;
        }
        match request_id {
            Some(id) => write!(f, " [request {}]", Plain(id)),
            None => Ok(()),
        }
    }
}

/// A text from outside, with control characters as JSON would escape them.
pub(crate) struct Plain<'t>(pub(crate) &'t str);

impl fmt::Display for Plain<'_> {
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
    /// What is wrong, for programs.
    #[serde(rename = "type")]
    pub fault_type: FaultType,
    /// What is wrong, for people.
    #[serde(default)]
    pub message: String,
    /// Where: `query` and the parameter's name.
    #[serde(default)]
    pub location: Vec<String>,
}

open_enum!(
    /// What went wrong, for programs. A name never changes its meaning.
    ErrorType {
        /// A parameter is unknown, repeated, malformed or out of its values.
        BadRequest = "bad_request",
        /// Every fault concerns paging.
        PaginationError = "pagination_error",
        /// The version asked for never was one.
        InvalidVersion = "invalid_version",
        /// No key.
        Unauthorized = "unauthorized",
        /// A wrong, expired or revoked key.
        InvalidApiKey = "invalid_api_key",
        /// The key may not do this.
        Forbidden = "forbidden",
        /// No such route or product.
        NotFound = "not_found",
        /// The route doesn't take this method.
        MethodNotAllowed = "method_not_allowed",
        /// The version asked for is gone.
        VersionRemoved = "version_removed",
        /// The body is too large.
        PayloadTooLarge = "payload_too_large",
        /// The target is too long.
        UriTooLong = "uri_too_long",
        /// The headers are too large or too many.
        HeadersTooLarge = "headers_too_large",
        /// The key's quota is used up.
        RateLimited = "rate_limited",
        /// The service failed.
        InternalServerError = "internal_server_error",
        /// No catalog yet, or overload.
        Unavailable = "unavailable",
        /// The request took too long.
        Timeout = "timeout",
    }
);

open_enum!(
    /// What is wrong with one parameter.
    FaultType {
        /// The operation has no such parameter.
        UnknownParameter = "unknown_parameter",
        /// It takes one value and was given several.
        RepeatedParameter = "repeated_parameter",
        /// The value is malformed, or none of the allowed ones.
        InvalidValue = "invalid_value",
        /// The number is too small or too large.
        OutOfRange = "out_of_range",
        /// It can't stand beside another.
        MutuallyExclusive = "mutually_exclusive",
        /// The cursor can't be a product code.
        InvalidCursor = "invalid_cursor",
    }
);

/// The body of an error. Only its type has to be there.
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
    /// The error, with none of its texts holding the key.
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
    fn both_sides_know_the_same_names() {
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
