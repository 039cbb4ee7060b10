//! Streams of HTTP/2: each has a time limit for its response. One connection carries many requests, each with a flow-control
//! window of its own, so a writable socket doesn't mean that the client reads a response.

use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use tokio::sync::Notify;

use super::presence::Presence;

tokio::task_local! {
    /// Notified once the response of the current task's stream is ready.
    static ANSWERED: Arc<Notify>;
}

/// Starts the time limit of the current task's response, which is ready.
pub(super) fn begin_response() {
    // Tests make bodies without a stream.
    let _ = ANSWERED.try_with(|answered| answered.notify_one());
}

/// Request of a stream, until this is dropped.
struct Request(Arc<Presence>);

impl Request {
    fn begin(presence: &Arc<Presence>) -> Self {
        presence.begin_request();
        Self(Arc::clone(presence))
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// Executor of a connection's streams.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    pub(super) presence: Arc<Presence>,
    /// Time limit for the client to read a response.
    pub(super) limit: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, answering: F) {
        let (request, limit) = (Request::begin(&self.presence), self.limit);
        let answered = Arc::new(Notify::new());
        let begun = Arc::clone(&answered);
        // Boxed, since its future would have room for it twice.
        let mut answering = Box::pin(answering);
        let limited = async move {
            let over = async {
                begun.notified().await;
                tokio::time::sleep(limit).await;
            };
            tokio::select! {
                biased;
                () = &mut answering => {}
                () = over => tracing::debug!("reset a stream: its response took too long"),
            }
            drop((answering, request));
        };
        tokio::spawn(ANSWERED.scope(answered, limited));
    }
}
