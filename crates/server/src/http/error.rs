//! Every error with its status and its words. Layers below know no status; this one knows no cause
//! that it wouldn't show.

use std::time::Duration;

use http::StatusCode;
use vitrine_wire::error::{ErrorBody, ErrorType, FaultType, ParameterFault};

/// An error on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// Type, for programs.
    pub kind: ErrorType,
    /// Message, for people.
    pub message: String,
    /// Advice, for people.
    pub help: Option<String>,
    /// The refused parameters.
    pub details: Vec<ParameterFault>,
    /// Time until a retry makes sense.
    pub retry_after: Option<Duration>,
}

impl From<ApiError> for ErrorBody {
    fn from(error: ApiError) -> Self {
        let ApiError {
            kind,
            message,
            help,
            details,
            // A header says it.
            retry_after: _,
        } = error;
        Self {
            kind,
            message,
            help,
            details,
        }
    }
}

/// Default time until a retry makes sense.
pub(super) const RETRY_SOON: Duration = Duration::from_secs(5);

impl ApiError {
    fn new(kind: ErrorType, message: impl Into<String>, help: Option<&str>) -> Self {
        Self {
            kind,
            message: message.into(),
            help: Some(help.map_or_else(|| page(kind), str::to_owned)),
            details: Vec::new(),
            retry_after: None,
        }
    }

    /// The status of an error type (docs/contract/errors.md#types).
    #[must_use]
    pub const fn status(kind: ErrorType) -> StatusCode {
        match kind {
            ErrorType::BadRequest | ErrorType::PaginationError | ErrorType::InvalidVersion => {
                StatusCode::BAD_REQUEST
            }
            ErrorType::Unauthorized | ErrorType::InvalidApiKey => StatusCode::UNAUTHORIZED,
            ErrorType::Forbidden => StatusCode::FORBIDDEN,
            ErrorType::NotFound => StatusCode::NOT_FOUND,
            ErrorType::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorType::VersionRemoved => StatusCode::GONE,
            ErrorType::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorType::UriTooLong => StatusCode::URI_TOO_LONG,
            ErrorType::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ErrorType::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            ErrorType::InternalServerError => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorType::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorType::Timeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// An error as the table has it, with its plainest words: what `X-Simulate` asks for, and what
    /// the constructors below start from.
    #[must_use]
    pub fn plain(kind: ErrorType) -> Self {
        let (message, help) = match kind {
            ErrorType::BadRequest => ("a parameter was refused", None),
            ErrorType::PaginationError => ("a paging parameter was refused", None),
            ErrorType::InvalidVersion => (
                "there is no such API version",
                Some("send `X-Api-Version: 2024-02-05` once, or leave the header out"),
            ),
            ErrorType::Unauthorized => (
                "the request has no API key",
                Some("send your key in the header `X-Api-Key`"),
            ),
            ErrorType::InvalidApiKey => (
                "the API key is wrong, expired or revoked",
                Some(
                    "send the whole key, once, in the header `X-Api-Key`; ask the operator for a new one where it has expired",
                ),
            ),
            ErrorType::Forbidden => (
                "this key may not do that",
                Some("`X-Simulate` needs a test key"),
            ),
            ErrorType::NotFound => (
                "there is nothing at this path",
                Some("/docs describes the paths that exist"),
            ),
            ErrorType::MethodNotAllowed => ("this path takes GET and HEAD only", None),
            ErrorType::VersionRemoved => (
                "this API version was removed",
                Some("send `X-Api-Version: 2024-02-05`, or leave the header out"),
            ),
            ErrorType::PayloadTooLarge => (
                "the request's body is larger than 8 kB",
                Some("leave the body out: these operations take none"),
            ),
            ErrorType::UriTooLong => (
                "the request's target is longer than 8 kB",
                Some("ask for fewer values at a time"),
            ),
            ErrorType::HeadersTooLarge => (
                "the request has more than 64 headers, or more than 32 kB of them",
                None,
            ),
            ErrorType::RateLimited => (
                "the key's quota is used up",
                Some(
                    "wait as long as `Retry-After` says; repeat reads with `If-None-Match`, since a 304 is free",
                ),
            ),
            ErrorType::InternalServerError => (
                "the service failed",
                Some("try again; if it stays, tell the operator the `X-Request-Id`"),
            ),
            ErrorType::Unavailable => (
                "no catalog is loaded yet",
                Some("try again as `Retry-After` says"),
            ),
            ErrorType::Timeout => (
                "the request took too long to arrive",
                Some("send it again, without a body"),
            ),
        };
        let mut error = Self::new(kind, message, help);
        if matches!(kind, ErrorType::RateLimited | ErrorType::Unavailable) {
            error.retry_after = Some(RETRY_SOON);
        }
        error
    }

    /// Returns the error for keys that are older than the operator allows, since the store is unreachable: no key can be
    /// accepted, and none be called invalid.
    #[must_use]
    pub fn keys_too_old() -> Self {
        Self {
            message: "keys can't be checked at the moment".to_owned(),
            ..Self::plain(ErrorType::Unavailable)
        }
    }

    /// Returns the error for overload.
    #[must_use]
    pub fn overloaded() -> Self {
        Self {
            retry_after: Some(RETRY_SOON),
            ..Self::new(
                ErrorType::Unavailable,
                "the service has more to do than it can",
                Some("try again as `Retry-After` says"),
            )
        }
    }

    /// Returns the error for an unknown path; `nearest` is the template of the path that the client may have meant.
    #[must_use]
    pub fn no_such_path(nearest: Option<&str>) -> Self {
        let plain = Self::plain(ErrorType::NotFound);
        let help = nearest.map(|path| format!("did you mean `{path}`? /docs describes all paths"));
        Self {
            help: help.or(plain.help),
            ..plain
        }
    }

    /// Returns the error for a product that isn't in the catalog.
    #[must_use]
    pub fn no_such_product(code: &str) -> Self {
        Self::new(
            ErrorType::NotFound,
            format!("no product has the code `{code}`"),
            Some("codes are compared letter by letter; the list has all that there are"),
        )
    }

    /// Returns the error for a missing, repeated or malformed `Host`.
    #[must_use]
    pub fn bad_host() -> Self {
        Self::new(
            ErrorType::BadRequest,
            "the request has no `Host`, more than one, or one that isn't a host",
            Some("send the header `Host` once, with the host of the address that you ask"),
        )
    }

    /// Returns the error for a target with a fragment, which is for browsers alone.
    #[must_use]
    pub fn fragment() -> Self {
        Self::new(
            ErrorType::BadRequest,
            "the request's target has a fragment, which is no part of a request",
            Some("leave out `#` and what follows; send the character itself as `%23`"),
        )
    }

    /// Returns the error for a body that breaks off, or isn't framed as its headers say.
    #[must_use]
    pub fn unreadable_body() -> Self {
        Self::new(
            ErrorType::BadRequest,
            "the request's body can't be read",
            Some("leave the body out: these operations take none"),
        )
    }

    /// Returns the error for a text that isn't served.
    #[must_use]
    pub fn no_such_text() -> Self {
        Self::new(
            ErrorType::NotFound,
            "no text has this address any more",
            Some("read the product again for the address of its present text"),
        )
    }

    /// Returns the error for a quota that is used up.
    #[must_use]
    pub fn rate_limited(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::plain(ErrorType::RateLimited)
        }
    }

    /// Returns the error for too many invalid keys from the client's address.
    #[must_use]
    pub fn too_many_failed_keys(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(
                ErrorType::RateLimited,
                "too many requests with keys that are wrong, expired or revoked came from this address",
                Some(
                    "check the key, and wait as long as `Retry-After` says; a valid key needn't wait",
                ),
            )
        }
    }

    /// Returns the error for an unknown type in `X-Simulate`; one that isn't text is empty.
    #[must_use]
    pub fn unknown_simulation(asked: &str) -> Self {
        let types: Vec<&str> = ErrorType::ALL.iter().map(|kind| kind.as_str()).collect();
        let help = format!("`X-Simulate` takes one of {}", types.join(", "));
        let message = match asked.len() {
            1..=64 => format!("there is no error type `{asked}` to simulate"),
            _ => "there is no such error type to simulate".to_owned(),
        };
        Self::new(ErrorType::BadRequest, message, Some(&help))
    }

    /// Returns the error for refused parameters: all faults together, in the request's order.
    #[must_use]
    pub fn parameters(details: Vec<ParameterFault>, help: Option<String>) -> Self {
        let kind = if details.iter().all(concerns_paging) {
            ErrorType::PaginationError
        } else {
            ErrorType::BadRequest
        };
        let message = match details.as_slice() {
            [only] => only.message.clone(),
            several => format!("{} parameters were refused", several.len()),
        };
        let plain = Self::new(kind, message, None);
        Self {
            help: help.or(plain.help),
            details,
            ..plain
        }
    }
}

/// Returns the default help: the documentation's page of the type.
fn page(kind: ErrorType) -> String {
    format!("see /docs/errors/{}", kind.as_str())
}

/// Returns true if a fault makes a `pagination_error`.
fn concerns_paging(fault: &ParameterFault) -> bool {
    let [_, name] = &fault.location;
    match fault.kind {
        FaultType::MutuallyExclusive | FaultType::InvalidCursor => true,
        FaultType::InvalidValue | FaultType::OutOfRange => name == "limit",
        FaultType::UnknownParameter | FaultType::RepeatedParameter => false,
    }
}
