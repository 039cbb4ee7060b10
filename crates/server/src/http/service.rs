//! What surrounds the judging of one request: its id, its body, a panic, its line in the access log.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use jiff::Timestamp;
use vitrine_wire::error::ErrorType;

use super::App;
use super::access_log::{AccessLog, Line};
use super::answer::Answer;
use super::error::ApiError;
use super::pipeline::{self, Trail};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The largest body that is read and ignored, in bytes.
const MAX_BODY_BYTES: usize = 8 * 1024;

/// How much of a path the access log shows.
const LOGGED_PATH_CHARACTERS: usize = 256;

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) app: App,
    pub(super) access_log: AccessLog,
    pub(super) ids: RequestIds,
    pub(super) body_timeout: Duration,
}

/// Whether the connection stays open after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepAlive {
    Yes,
    No,
}

impl Service {
    /// Answers one request.
    pub(super) async fn serve(
        &self,
        request: Request<Incoming>,
        remote: IpAddr,
        keep_alive: impl FnOnce() -> KeepAlive,
    ) -> Answer {
        let started = Instant::now();
        let (request, body) = request.into_parts();
        let id = self.ids.of(&request.headers);
        let mut trail = Trail::default();
        let mut answer = self.answer(&request, body, &mut trail).await;
        let closes = keep_alive() == KeepAlive::No;
        let headers = answer.headers_mut();
        if closes || headers.contains_key(CONNECTION) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        headers.insert(X_REQUEST_ID, id.clone());
        let bytes = answer.body().size_hint().lower();
        let is_head = request.method == Method::HEAD;
        if is_head {
            strip_body(&mut answer, bytes);
        }
        self.observe(&Line {
            time: Timestamp::now(),
            request_id: id.to_str().unwrap_or_default(),
            remote,
            method: request.method.as_str(),
            path: start(request.uri.path(), LOGGED_PATH_CHARACTERS),
            route: trail.route,
            status: answer.status().as_u16(),
            bytes: if is_head { 0 } else { bytes },
            duration_microseconds: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            key: trail.key.as_deref(),
            version: trail.version,
            revision: trail.revision,
        });
        answer
    }

    /// Takes note of a request that was answered: the one place that sees every one.
    fn observe(&self, line: &Line<'_>) {
        self.access_log.log(line);
    }

    async fn answer(&self, request: &Parts, body: Incoming, trail: &mut Trail) -> Answer {
        let target = match pipeline::admit(request, trail) {
            Ok(target) => target,
            Err(error) if body.is_end_stream() => return error.into(),
            Err(error) => return last_answer(error),
        };
        if let Err(error) = self.drain(body).await {
            return last_answer(error);
        }
        let judged = AssertUnwindSafe(|| pipeline::answer(&self.app, request, &target, trail));
        catch_unwind(judged).unwrap_or_else(|_| {
            // The panic itself was written down by the panic hook.
            ApiError::plain(ErrorType::InternalServerError).into()
        })
    }

    /// Reads a body and ignores it, up to a limit of size and time.
    async fn drain(&self, body: Incoming) -> Result<(), ApiError> {
        if body.is_end_stream() {
            return Ok(());
        }
        let too_large = || ApiError::plain(ErrorType::PayloadTooLarge);
        if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return Err(too_large());
        }
        let collected = Limited::new(body, MAX_BODY_BYTES).collect();
        match tokio::time::timeout(self.body_timeout, collected).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(ApiError::unreadable_body()),
            Err(_) => Err(ApiError::plain(ErrorType::Timeout)),
        }
    }
}

/// An error after which the connection closes: the rest of the body may still be on its way, so
/// nothing more can come after it.
fn last_answer(error: ApiError) -> Answer {
    let mut answer = Answer::from(error);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// HEAD is GET without the body, its length still told.
fn strip_body(answer: &mut Answer, bytes: u64) {
    *answer.body_mut() = Full::default();
    if answer.status() != http::StatusCode::NOT_MODIFIED {
        answer.headers_mut().insert(CONTENT_LENGTH, bytes.into());
    }
}

/// The first characters of a text.
fn start(text: &str, characters: usize) -> &str {
    if text.len() <= characters {
        return text;
    }
    let end = text.char_indices().nth(characters);
    &text[..end.map_or(text.len(), |(end, _)| end)]
}

/// Makes ids of requests: a random start, then counting.
#[derive(Debug)]
pub(super) struct RequestIds {
    start: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// Ids that no other server process makes.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self {
            start: getrandom::u64()?,
            next: AtomicU64::new(0),
        })
    }

    /// The client's own id where it is a fit one, else a new one.
    fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let mut given = headers.get_all(X_REQUEST_ID).iter();
        if let (Some(id), None) = (given.next(), given.next())
            && is_fit(id.as_bytes())
        {
            return id.clone();
        }
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:016x}-{count:x}", self.start);
        HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    }
}

/// `[A-Za-z0-9._:-]{1,128}` (decisions, "Errors").
fn is_fit(id: &[u8]) -> bool {
    (1..=128).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(byte))
}
