//! Errors for clients: a constructor for each cause. `types` has a row for each error type. Layers below know no
//! status, and errors here show no cause that clients mustn't see.

pub mod types;

use std::time::Duration;

use self::types::{Retry, row};
use http::StatusCode;
use vitrine_model::key::UnknownCatalog;
use vitrine_wire::error::{ErrorBody, ErrorType, FaultType, ParameterFault};

/// An error for a client.
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
            // Sent as a header.
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

    /// Returns the status of an error type.
    #[must_use]
    pub fn status(kind: ErrorType) -> StatusCode {
        row(kind).status
    }

    /// Returns the plain error of a type, which the constructors below start from.
    #[must_use]
    pub fn plain(kind: ErrorType) -> Self {
        let row = row(kind);
        Self {
            retry_after: (row.retry == Retry::AsTold).then_some(RETRY_SOON),
            ..Self::new(kind, row.message, row.help)
        }
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

    /// Returns the error for a token of the changes feed whose positions aren't known yet, or can't be judged now.
    #[must_use]
    pub fn changes_unknown_yet() -> Self {
        Self {
            retry_after: Some(Duration::from_secs(1)),
            ..Self::new(
                ErrorType::Unavailable,
                "the changes since this token aren't known here yet",
                Some("try again with the same token, as `Retry-After` says"),
            )
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

/// Refuses a key whose assortment isn't known here: the whole catalog is never shown instead
/// (docs/contract/assortments.md#what-clients-see).
impl From<UnknownCatalog> for ApiError {
    fn from(UnknownCatalog: UnknownCatalog) -> Self {
        Self {
            message: "what this key may see can't be determined at the moment".to_owned(),
            ..Self::plain(ErrorType::Unavailable)
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
