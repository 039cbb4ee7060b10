//! The error body, and the names of its types (docs/contract/errors.md#types). CONTRIBUTING.md, "Add an error type", has the
//! steps for a new one.

use serde::Serialize;

use crate::named;

named!(
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
        /// The token of the changes feed can't be continued.
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

named!(
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
        /// The cursor can't be a product code, or the token isn't one of the request's filters.
        InvalidCursor = "invalid_cursor",
    }
);

/// Body of all errors, on all paths.
#[derive(Debug, Serialize)]
pub struct ErrorBody {
    /// Error type, for programs. It never changes.
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// Error message, for people.
    pub message: String,
    /// Suggested fix, for people.
    pub help: Option<String>,
    /// Refused parameters, in the request's order; present if parameters were refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ParameterFault>,
}

/// A refused parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParameterFault {
    /// Fault type, for programs.
    #[serde(rename = "type")]
    pub kind: FaultType,
    /// Description of the fault, for people.
    pub message: String,
    /// Location of the parameter: `query` or `path`, and its name.
    pub location: [String; 2],
}
