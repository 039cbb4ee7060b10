//! Error types, a row for each: responses, the documentation and simulated errors are made of these rows.
//! Rules of the contract: docs/contract/errors.md#types.

use http::StatusCode;
use vitrine_wire::error::ErrorType;

/// An error type.
#[derive(Debug)]
pub struct ErrorRow {
    /// Status code.
    pub status: StatusCode,
    /// Message of the plain error.
    pub message: &'static str,
    /// Advice of the plain error; by default a link to the type's page.
    pub help: Option<&'static str>,
    /// Advice on retries.
    pub retry: Retry,
    /// Name and value of a header that few types have.
    pub header: Option<(&'static str, &'static str)>,
    /// True if the connection closes after it, since the rest of a body may be on its way.
    pub closes: bool,
    /// Query of a list that is refused with this type: it gives the details of a simulated error.
    pub refused_query: Option<&'static str>,
    /// Meaning and causes, in Markdown.
    pub meaning: &'static str,
    /// Remedy, in Markdown.
    pub remedy: &'static str,
}

/// Advice on retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same request fails again.
    Never,
    /// After as many seconds as the header `Retry-After` tells.
    AsTold,
    /// A few times, with growing pauses.
    WithBackoff,
}

/// Returns the row of an error type.
#[must_use]
pub fn row(kind: ErrorType) -> &'static ErrorRow {
    match kind {
        ErrorType::BadRequest => &BAD_REQUEST,
        ErrorType::PaginationError => &PAGINATION_ERROR,
        ErrorType::InvalidVersion => &INVALID_VERSION,
        ErrorType::Unauthorized => &UNAUTHORIZED,
        ErrorType::InvalidApiKey => &INVALID_API_KEY,
        ErrorType::Forbidden => &FORBIDDEN,
        ErrorType::NotFound => &NOT_FOUND,
        ErrorType::MethodNotAllowed => &METHOD_NOT_ALLOWED,
        ErrorType::VersionRemoved => &VERSION_REMOVED,
        ErrorType::ChangesGone => &CHANGES_GONE,
        ErrorType::PayloadTooLarge => &PAYLOAD_TOO_LARGE,
        ErrorType::UriTooLong => &URI_TOO_LONG,
        ErrorType::HeadersTooLarge => &HEADERS_TOO_LARGE,
        ErrorType::RateLimited => &RATE_LIMITED,
        ErrorType::InternalServerError => &INTERNAL_SERVER_ERROR,
        ErrorType::Unavailable => &UNAVAILABLE,
        ErrorType::Timeout => &TIMEOUT,
    }
}

static BAD_REQUEST: ErrorRow = ErrorRow {
    status: StatusCode::BAD_REQUEST,
    message: "a parameter was refused",
    help: None,
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: Some("is_orderable=maybe&countries=US"),
    meaning: "A parameter is unknown, given twice, malformed, or none of the allowed values. All faults are told together, in `details`.",
    remedy: "Read `details`: each entry names the parameter in `location` and says what is right. A parameter that is misspelt is refused, never ignored; `help` names the nearest one that there is.",
};

static PAGINATION_ERROR: ErrorRow = ErrorRow {
    status: StatusCode::BAD_REQUEST,
    message: "a paging parameter was refused",
    help: None,
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: Some("limit=0"),
    meaning: "Every fault concerns paging: `before` together with `after`, a `limit` that is no whole number from 1 to 500, or a cursor that can't be a product code.",
    remedy: "Take cursors from `pagination.cursors` of a page, as they are, or follow the `Link` header. See [Paging]({up}docs/paging).",
};

static INVALID_VERSION: ErrorRow = ErrorRow {
    status: StatusCode::BAD_REQUEST,
    message: "there is no such API version",
    help: Some("send `X-Api-Version` once, as `2026-12-01` or `2024-02-05`, or leave it out"),
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "`X-Api-Version` is a date that never was a version, or no date at all, or the header is there twice.",
    remedy: "Leave the header out, or send `2026-12-01` or `2024-02-05` once. See [Versions]({up}docs/versions).",
};

static UNAUTHORIZED: ErrorRow = ErrorRow {
    status: StatusCode::UNAUTHORIZED,
    message: "the request has no API key",
    help: Some("send your key in the header `X-Api-Key`"),
    retry: Retry::Never,
    header: Some(("WWW-Authenticate", "ApiKey")),
    closes: false,
    refused_query: None,
    meaning: "The request has no key: the header `X-Api-Key` is missing or empty. A key in the query string isn't looked at.",
    remedy: "Send the key in the header `X-Api-Key`. Look whether a proxy or a redirect dropped the header.",
};

static INVALID_API_KEY: ErrorRow = ErrorRow {
    status: StatusCode::UNAUTHORIZED,
    message: "the API key is wrong, expired or revoked",
    help: Some(
        "send the whole key, once, in the header `X-Api-Key`; ask the operator for a new one where it has expired",
    ),
    retry: Retry::Never,
    header: Some(("WWW-Authenticate", "ApiKey")),
    closes: false,
    refused_query: None,
    meaning: "There is a key, but it is wrong, has expired or was revoked; or the header is there twice. Which of these it is isn't told, so that nobody can find keys by trying.",
    remedy: "Send the whole key, `PREFIX.SECRET`. Where it worked before, ask the operator for a new one. Don't try again and again: too many wrong keys from one address get [`rate_limited`]({up}docs/errors/rate_limited).",
};

static FORBIDDEN: ErrorRow = ErrorRow {
    status: StatusCode::FORBIDDEN,
    message: "this key may not do that",
    help: Some("`X-Simulate` needs a test key"),
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The key is good and may not do this. Today there is one such thing: `X-Simulate` with a key that is no test key.",
    remedy: "Ask the operator for a test key, or leave `X-Simulate` out.",
};

static NOT_FOUND: ErrorRow = ErrorRow {
    status: StatusCode::NOT_FOUND,
    message: "there is nothing at this path",
    help: Some("/docs describes the paths that exist"),
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "There is no such path, product or text. Paths are exact: a slash at the end, or two in a row, make another path. Codes are compared letter by letter.",
    remedy: "For a product: drop it from what you show. It isn't offered any more, though it may come back. For a path: compare it with the [reference]({up}docs/reference).",
};

static METHOD_NOT_ALLOWED: ErrorRow = ErrorRow {
    status: StatusCode::METHOD_NOT_ALLOWED,
    message: "this path takes GET and HEAD only",
    help: None,
    retry: Retry::Never,
    header: Some(("Allow", "GET, HEAD")),
    closes: false,
    refused_query: None,
    meaning: "The path exists but takes only GET and HEAD, as the header `Allow` says.",
    remedy: "Use GET. The catalog can only be read here.",
};

static VERSION_REMOVED: ErrorRow = ErrorRow {
    status: StatusCode::GONE,
    message: "this API version was removed",
    help: Some("send `X-Api-Version` as `2026-12-01` or `2024-02-05`, or leave it out"),
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "`X-Api-Version` names a version that there was and that is gone, such as `2023-07-27`.",
    remedy: "Move to `2026-12-01`. See [Versions]({up}docs/versions).",
};

static CHANGES_GONE: ErrorRow = ErrorRow {
    status: StatusCode::GONE,
    message: "the token can't be continued",
    help: Some("begin without `since`, and replace the copy with what comes"),
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The changes since the token aren't known any more: it is too old, the catalog was restored from a backup, or it was made for another API version or another address of the service.",
    remedy: "Begin without `since`, and replace the copy with what comes. See [Keep a copy]({up}docs/changes).",
};

static PAYLOAD_TOO_LARGE: ErrorRow = ErrorRow {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    message: "the request's body is larger than 8 kB",
    help: Some("leave the body out: these operations take none"),
    retry: Retry::Never,
    header: None,
    closes: true,
    refused_query: None,
    meaning: "The request has a body of more than 8 kB. No operation takes a body; a small one is read and ignored.",
    remedy: "Send no body. Some HTTP libraries attach one to a GET where parameters are given as data.",
};

static URI_TOO_LONG: ErrorRow = ErrorRow {
    status: StatusCode::URI_TOO_LONG,
    message: "the request's target is longer than 8 kB",
    help: Some("ask for fewer values at a time"),
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The path and query together are longer than 8 kB.",
    remedy: "Ask for fewer countries or categories at a time, and put the answers together.",
};

static HEADERS_TOO_LARGE: ErrorRow = ErrorRow {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    message: "the request has more than 64 headers, or more than 32 kB of them",
    help: None,
    retry: Retry::Never,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The request has more than 64 headers, or more than 32 kB of them.",
    remedy: "Send fewer. Cookies of other services on the same host are the usual cause, or a long list in `If-None-Match`.",
};

static RATE_LIMITED: ErrorRow = ErrorRow {
    status: StatusCode::TOO_MANY_REQUESTS,
    message: "the key's quota is used up",
    help: Some(
        "wait as long as `Retry-After` says; repeat reads with `If-None-Match`, since a 304 is free",
    ),
    retry: Retry::AsTold,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The key's quota is used up. The same comes where too many wrong keys were sent from your address.",
    remedy: "Wait as long as `Retry-After` says. Repeat reads with `If-None-Match`: a 304 is free. See [Limits]({up}docs/limits).",
};

static INTERNAL_SERVER_ERROR: ErrorRow = ErrorRow {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    message: "the service failed",
    help: Some("try again; if it stays, tell the operator the `X-Request-Id`"),
    retry: Retry::WithBackoff,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The service failed, and it isn't your request's fault. What happened is in the service's log, under the request's id.",
    remedy: "Try again. If it stays, tell the operator the `X-Request-Id` of the answer.",
};

static UNAVAILABLE: ErrorRow = ErrorRow {
    status: StatusCode::SERVICE_UNAVAILABLE,
    message: "no catalog is loaded yet",
    help: Some("try again as `Retry-After` says"),
    retry: Retry::AsTold,
    header: None,
    closes: false,
    refused_query: None,
    meaning: "The service can't answer at the moment: no catalog is loaded yet, there is more to do than can be done, or keys can't be checked.",
    remedy: "Go on with what you have: answers may be shown for a day after they went stale where the service fails. Try again as `Retry-After` says.",
};

static TIMEOUT: ErrorRow = ErrorRow {
    status: StatusCode::GATEWAY_TIMEOUT,
    message: "the request took too long to arrive",
    help: Some("send it again, without a body"),
    retry: Retry::WithBackoff,
    header: None,
    closes: true,
    refused_query: None,
    meaning: "The request took too long to arrive: its body was announced and didn't come.",
    remedy: "Send it again, without a body.",
};
