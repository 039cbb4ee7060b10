//! Metrics of an answered request.

use std::time::Duration;

use vitrine_wire::error::ErrorType;

use super::App;
use super::access_log::RequestLogContext;
use super::response::Response;
use super::routes::Route;
use crate::metrics::table::ErrorOrigin;

impl App {
    /// Counts a request with its response, of which `bytes` of body are sent.
    pub(super) fn observe(
        &self,
        log: &RequestLogContext<'_>,
        answer: &Response,
        bytes: u64,
        took: Duration,
    ) {
        let route = log.route.map(Route::place);
        let status = answer.status().as_u16();
        self.metrics.requests.observe(route, status, bytes, took);
        if let Some(kind) = answer.extensions().get::<ErrorType>() {
            // A key whose quota is used up gets a real 429, even if it requested another error.
            let cause = match log.simulated == Some(*kind) {
                true => ErrorOrigin::Simulated,
                false => ErrorOrigin::Real,
            };
            self.metrics.errors.by_type.of((*kind, cause)).increment();
        }
    }
}
