//! Service around the pipeline: request id, request body, panics, access log.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use jiff::Timestamp;
use vitrine_wire::error::ErrorType;

use super::App;
use super::access::client::Peer;
use super::access::cors::preflight;
use super::access_log::{AccessLog, Line, RequestLogContext, shown_method, shown_path};
use super::body::Body;
use super::body::budget::Account;
use super::connection::{Connection, KeepAlive};
use super::error::ApiError;
use super::pipeline::{self, Admitted, Client};
use super::request::request_id::{self, RequestIds, X_REQUEST_ID};
use super::request::trace_id::trace_id;
use super::request::version::X_API_VERSION;
use super::response::{Response, encode_error};
use super::routes::Target;

/// Maximum length of a request body, which is read and discarded, in bytes.
const MAX_BODY_BYTES: usize = 8 * 1024;

/// Service that all connections of a server share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) app: Arc<App>,
    access_log: AccessLog,
    ids: RequestIds,
    body_timeout: Duration,
}

/// Body of a request, generic because hyper's own can't be created without a connection.
pub(crate) trait RequestBody: hyper::body::Body<Error: Into<BoxError>> {}

impl<B: hyper::body::Body<Error: Into<BoxError>>> RequestBody for B {}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A received request.
struct Received<'r> {
    started: Instant,
    request: &'r Parts,
    id: HeaderValue,
    client: Client<'r>,
}

impl Service {
    /// Creates the service of a server; a request's body may take `body_timeout` to arrive.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub(crate) fn new(
        app: Arc<App>,
        access_log: AccessLog,
        body_timeout: Duration,
    ) -> io::Result<Self> {
        Ok(Self {
            app,
            access_log,
            ids: RequestIds::new().map_err(io::Error::other)?,
            body_timeout,
        })
    }

    /// Answers one request.
    // No `async fn`: its future, which each connection has, would have room for the request twice.
    pub(crate) fn serve<'s>(
        &'s self,
        request: Request<impl RequestBody + 's>,
        peer: Peer,
        connection: &'s dyn Connection,
    ) -> impl Future<Output = Response> + 's {
        let (request, body) = request.into_parts();
        async move {
            let mut log = RequestLogContext::default();
            let mut received = self.receive(&request, peer, connection);
            let mut answer = self.answer(body, &mut received, &mut log).await;
            self.finish(&received, &mut answer, &log, connection.keep_alive());
            answer
        }
    }

    /// Refuses the request of a connection beyond the limit.
    pub(crate) fn turn_away<B>(&self, request: Request<B>, peer: Peer) -> Response {
        let (request, _) = request.into_parts();
        let connection = Account::default();
        let received = self.receive(&request, peer, &connection);
        let mut answer = ApiError::overloaded().into();
        let log = RequestLogContext::default();
        self.finish(&received, &mut answer, &log, KeepAlive::No);
        answer
    }

    fn receive<'r>(
        &self,
        request: &'r Parts,
        peer: Peer,
        connection: &'r dyn Connection,
    ) -> Received<'r> {
        Received {
            started: Instant::now(),
            request,
            id: self.ids.of(&request.headers),
            client: Client {
                peer: self.app.access.proxies.client(peer, &request.headers),
                connection,
            },
        }
    }

    /// Completes a response, counts it and logs it.
    fn finish(
        &self,
        received: &Received<'_>,
        answer: &mut Response,
        log: &RequestLogContext<'_>,
        keep_alive: KeepAlive,
    ) {
        let Received {
            started,
            request,
            id,
            client,
        } = received;
        encode_error(answer, &request.headers);
        let headers = answer.headers_mut();
        let cors = &self.app.access.cors;
        cors.describe(&request.headers, log.route, headers);
        headers.insert(X_REQUEST_ID, id.clone());
        if keep_alive == KeepAlive::No {
            close_after(answer);
        }
        let bytes = answer.body().size_hint().lower();
        let is_head = request.method == Method::HEAD;
        if is_head {
            strip_body(answer, bytes);
        }
        let sent = if is_head { 0 } else { bytes };
        let took = started.elapsed();
        self.app
            .observe(log, answer, sent, took.saturating_sub(log.waited));
        let request_id = id.to_str().unwrap_or_default();
        let route = log.route.map(|route| route.template);
        let status = answer.status().as_u16();
        self.access_log.log(&Line {
            time: Timestamp::now(),
            request_id,
            remote: client.peer,
            method: shown_method(request.method.as_str()),
            path: &shown_path(request.uri.path()),
            route,
            status,
            bytes: sent,
            duration_microseconds: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            key: log.key,
            version: log.version,
            revision: log.revision,
            trace_id: trace_id(&request.headers),
        });
    }

    async fn answer<'r>(
        &self,
        body: impl RequestBody,
        received: &mut Received<'r>,
        log: &mut RequestLogContext<'r>,
    ) -> Response {
        let target = match pipeline::admit(&self.app, received.request, log) {
            Ok(target) => target,
            Err(error) => {
                let mut answer = self.refuse(received.request, error, log);
                // The rest of the body may still be on its way.
                if !body.is_end_stream() {
                    close_after(&mut answer);
                }
                return answer;
            }
        };
        // RFC 9112, section 6.1: a length beside chunks may be an attempt to smuggle a request in, and hyper doesn't
        // report it. So the connection closes after a chunked body.
        let is_last =
            !body.is_end_stream() && received.request.headers.contains_key(TRANSFER_ENCODING);
        if let Err(error) = self.drain(body).await {
            return last_answer(error);
        }
        let mut answer = self.answer_admitted(received, &target, log).await;
        if is_last {
            close_after(&mut answer);
        }
        answer
    }

    /// Answers a request that wasn't admitted. It may be a preflight; that of an unknown path succeeds, so that the
    /// page can read the 404.
    fn refuse(&self, request: &Parts, error: ApiError, log: &RequestLogContext<'_>) -> Response {
        let has_answer = matches!(
            error.kind,
            ErrorType::MethodNotAllowed | ErrorType::NotFound
        );
        let cors = &self.app.access.cors;
        let is_preflight = has_answer && cors.permits_preflight(request, log.route);
        match (error.kind, &request.method) {
            _ if is_preflight => preflight(),
            (ErrorType::NotFound, &Method::GET | &Method::HEAD) => {
                self.app.endpoints.site().not_found(request, error)
            }
            _ => error.into(),
        }
    }

    /// Runs an admitted request through the pipeline. Log messages of the thread get its id meanwhile; a panic becomes
    /// an error.
    async fn answer_admitted<'r>(
        &self,
        received: &mut Received<'r>,
        target: &Target,
        log: &mut RequestLogContext<'r>,
    ) -> Response {
        let Received {
            request,
            id,
            client,
            ..
        } = received;
        let answered = {
            let admitted = Admitted {
                app: &self.app,
                request,
                target,
                client,
            };
            let mut answer = pin!(admitted.answer(log));
            poll_fn(|context| {
                let poll = AssertUnwindSafe(|| answer.as_mut().poll(context));
                match request_id::during(id, || catch_unwind(poll)) {
                    Ok(poll) => poll.map(Some),
                    // The panic hook has logged it.
                    Err(_) => Poll::Ready(None),
                }
            })
            .await
        };
        answered.unwrap_or_else(|| panicked(log.version))
    }

    /// Reads and discards a body, within limits of size and time.
    async fn drain(&self, body: impl RequestBody) -> Result<(), ApiError> {
        if body.is_end_stream() {
            return Ok(());
        }
        let too_large = || ApiError::plain(ErrorType::PayloadTooLarge);
        if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return Err(too_large());
        }
        let mut body = pin!(Limited::new(body, MAX_BODY_BYTES));
        let dropped = async {
            // Nothing of it is kept until all has arrived.
            while let Some(frame) = body.frame().await {
                frame?;
            }
            Ok::<_, BoxError>(())
        };
        match tokio::time::timeout(self.body_timeout, dropped).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(ApiError::unreadable_body()),
            Err(_) => Err(ApiError::plain(ErrorType::Timeout)),
        }
    }
}

/// Returns the response after a panic, with the version if it was negotiated before.
fn panicked(version: Option<&'static str>) -> Response {
    let mut answer = Response::from(ApiError::plain(ErrorType::InternalServerError));
    if let Some(version) = version {
        let version = HeaderValue::from_static(version);
        answer.headers_mut().insert(X_API_VERSION, version);
    }
    answer
}

/// Returns an error after which the connection closes: the rest of the body may still be on its way.
fn last_answer(error: ApiError) -> Response {
    let mut answer = Response::from(error);
    close_after(&mut answer);
    answer
}

fn close_after(answer: &mut Response) {
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
}

/// Removes the body of a response to HEAD, but keeps its length.
fn strip_body(answer: &mut Response, bytes: u64) {
    *answer.body_mut() = Body::default();
    if answer.status() != http::StatusCode::NOT_MODIFIED {
        answer.headers_mut().insert(CONTENT_LENGTH, bytes.into());
    }
}
