//! Facts about a request beyond its head, for the access log, metrics and spans.

use std::time::Duration;

use vitrine_wire::error::ErrorType;

use crate::http::routes::Route;

/// Facts about a request, recorded in the pipeline. Steps that weren't reached leave their fields empty.
#[derive(Debug, Default)]
pub(crate) struct RequestLogContext<'r> {
    /// Route of the request.
    pub(crate) route: Option<&'static Route>,
    /// Prefix of the key.
    pub(crate) key: Option<&'r str>,
    /// API version of the response.
    pub(crate) version: Option<&'static str>,
    /// Number of the snapshot's revision.
    pub(crate) revision: Option<u64>,
    /// Time for which the request waited for changes.
    pub(crate) waited: Duration,
    /// Error that a test key requested with `X-Simulate`.
    pub(crate) simulated: Option<ErrorType>,
}
