//! The error body, and the table of its types (docs/contract/errors.md#types).

use serde::Serialize;

/// Makes an enum of names that programs rely on: each known in this one place.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every value, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value in the contract's spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

named!(
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

named!(
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

/// What went wrong: the body of every error, on every path.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Error"))]
pub struct ErrorBody {
    /// What went wrong, for programs. It never changes.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: ErrorType,
    /// What went wrong, for people.
    pub message: String,
    /// What to do, for people.
    pub help: Option<String>,
    /// The refused parameters, in the request's order; present where parameters were refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ParameterFault>,
}

/// A refused parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParameterFault {
    /// What is wrong, for programs.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: FaultType,
    /// What is wrong, for people.
    pub message: String,
    /// Where: `query` and the parameter's name.
    pub location: [String; 2],
}
