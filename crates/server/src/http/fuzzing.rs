//! Requests without connections, for the targets in `fuzz/`: see the feature `fuzzing`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::App;
use super::access::client::Peer;
use super::access_log::{AccessLog, Destination};
use super::body::budget::Account;
use super::response::Response;
use super::service::Service;

/// Service that answers requests like a server, without connections.
pub struct Answering(Service);

impl Answering {
    /// Creates a service over `app`, without an access log.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new(app: Arc<App>) -> io::Result<Self> {
        let log = AccessLog::start(Destination::Off)?;
        Ok(Self(Service::new(app, log, Duration::from_secs(1))?))
    }

    /// Answers a request of a client on this host.
    pub async fn answer(&self, request: Request<Full<Bytes>>) -> Response {
        let connection = Account::default();
        self.0.serve(request, Peer::Unix, &connection).await
    }
}
