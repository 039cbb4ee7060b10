//! Pages of the admin port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Body;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::state_files::WrittenFile;
use super::{scrape, state_files};
use crate::boot_time::BootTime;
use crate::browser::{Browser, MAX_UNKNOWN_FORM_BYTES, Page, PageRequest};
use crate::edge::presence::Presence;
use crate::http::App;
use crate::http::access::client::Peer;
use crate::metrics::table::Caller;
use crate::metrics::text;
use crate::panic_point::PanicPoint;

const PLAIN: &str = "text/plain; charset=utf-8";

/// Maximum time for a form to arrive, and to wait until others are answered.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of all forms that are read or answered at a time, in KiB.
const MAX_FORMS_KIB: usize = 16 << 10;
/// Maximum number of pages of the console that are made at a time. Fewer than connections: those of requests that wait are
/// quiet, and may be closed for others.
const MAX_PAGES: usize = 32;

/// State that the connections of the port share.
#[derive(Debug)]
pub(super) struct Port {
    app: Arc<App>,
    browser: Arc<Browser>,
    pages: Semaphore,
    forms_kib: Semaphore,
}

/// A form, and its part of the memory for forms.
struct Form<'p> {
    text: String,
    _memory: Option<SemaphorePermit<'p>>,
}

impl Port {
    pub(super) fn new(app: Arc<App>, browser: Arc<Browser>) -> Self {
        Self {
            app,
            browser,
            pages: Semaphore::new(MAX_PAGES),
            forms_kib: Semaphore::new(MAX_FORMS_KIB),
        }
    }

    /// Answers one request. Pages of the console may take a while; all others are answered at once. A connection whose form
    /// is arriving isn't in use yet.
    pub(super) async fn answer<B: Body<Error: Into<BoxError>>>(
        &self,
        presence: &Presence,
        peer: Peer,
        request: Request<B>,
    ) -> Page {
        PanicPoint::AdminPage.pass();
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let max_form_bytes = match (&head.method, Browser::max_form_bytes(path)) {
            (&Method::GET | &Method::HEAD, _)
                if Browser::owns(path) || is_mistyped(path, &head.headers) =>
            {
                None
            }
            (&Method::POST, Some(max_bytes)) => Some(max_bytes),
            _ => {
                let _in_use = presence.in_use();
                return plain_answer(&self.app, &head.method, path);
            }
        };
        let host = head.headers.get(HOST);
        let mut request = PageRequest {
            path: path.to_owned(),
            query: head.uri.query().map(str::to_owned),
            host: host.and_then(|host| host.to_str().ok()).map(str::to_owned),
            method: head.method,
            headers: head.headers,
            peer,
            form: String::new(),
        };
        let form = match max_form_bytes {
            Some(max_bytes) => self.form(presence, &request, body, max_bytes).await,
            None => Ok(Form::unread()),
        };
        let form = match form {
            Ok(form) => form,
            Err((status, words)) => return page(status, PLAIN, words),
        };
        request.form = form.text;
        // Never closed.
        let _place = self.pages.acquire().await;
        let _in_use = presence.in_use();
        self.browser.answer(request, presence).await
    }

    /// Reads a form of at most so many bytes. A long one of somebody who must sign in first isn't read: the answer says so.
    async fn form<B: Body<Error: Into<BoxError>>>(
        &self,
        presence: &Presence,
        request: &PageRequest,
        body: B,
        max_bytes: usize,
    ) -> Result<Form<'_>, (StatusCode, &'static str)> {
        let kind = request.headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next());
        let is_form = |kind: &str| {
            kind.trim()
                .eq_ignore_ascii_case("application/x-www-form-urlencoded")
        };
        if !kind.is_some_and(is_form) {
            let words = "only forms can be sent: application/x-www-form-urlencoded\n";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
        }
        let too_large = (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the form is too large, or broke off\n",
        );
        let length = body.size_hint().upper();
        let length = length.map_or(Ok(max_bytes), usize::try_from);
        let length = length.map_err(|_| too_large)?;
        if length > max_bytes {
            return Err(too_large);
        }
        if length > MAX_UNKNOWN_FORM_BYTES {
            if !self.browser.is_operator(request).await {
                return Ok(Form::unread());
            }
            presence.note(Caller::WithKey);
        }
        let kib = u32::try_from(length.div_ceil(1024)).map_err(|_| too_large)?;
        let read = async {
            let memory = self.forms_kib.acquire_many(kib).await;
            (memory.ok(), Limited::new(body, max_bytes).collect().await)
        };
        let Ok((_memory, read)) = tokio::time::timeout(FORM_TIMEOUT, read).await else {
            return Err((StatusCode::REQUEST_TIMEOUT, "the form took too long\n"));
        };
        let bytes = read.map_err(|_| too_large)?.to_bytes();
        let unreadable = (StatusCode::BAD_REQUEST, "the form isn't UTF-8\n");
        let text = String::from_utf8(bytes.into()).map_err(|_| unreadable)?;
        Ok(Form { text, _memory })
    }
}

impl Form<'_> {
    /// Returns the empty form of a request whose body isn't read.
    fn unread() -> Self {
        Self {
            text: String::new(),
            _memory: None,
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Returns true if a person asks for a page that doesn't exist: the browser's page leads on, the text for programs doesn't.
fn is_mistyped(path: &str, headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok());
    let is_person = accepted.is_some_and(|kinds| kinds.contains("text/html"));
    is_person && !matches!(path, "/livez" | "/readyz" | "/metrics")
}

fn plain_answer(app: &App, method: &Method, path: &str) -> Page {
    let page: fn(&App) -> Page = match path {
        "/livez" => |_| page(StatusCode::OK, PLAIN, "alive\n"),
        "/readyz" => ready,
        "/metrics" => |app| page(StatusCode::OK, text::CONTENT_TYPE, scrape::text(app)),
        _ => |_| {
            let there_are = "page not found; there are /livez, /readyz, /metrics and /catalog\n";
            page(StatusCode::NOT_FOUND, PLAIN, there_are)
        },
    };
    match *method {
        Method::GET | Method::HEAD => page(app),
        _ => not_allowed(path),
    }
}

fn not_allowed(path: &str) -> Page {
    let (only, allowed) = match Browser::max_form_bytes(path) {
        Some(_) => (
            "only GET, HEAD and POST are allowed here\n",
            "GET, HEAD, POST",
        ),
        None => ("only GET and HEAD are allowed here\n", "GET, HEAD"),
    };
    let mut page = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, only);
    let allowed = HeaderValue::from_static(allowed);
    page.headers_mut().insert(ALLOW, allowed);
    page
}

fn page(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Page {
    let mut page = Response::new(Full::new(body.into()));
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    page
}

/// Reason for which the server isn't ready for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NotReady {
    /// The server is shutting down.
    Draining,
    /// Nothing was published yet, or the catalog is still being read.
    NoCatalog,
    /// The thread that follows the catalog hangs: loads aren't noticed.
    CatalogThreadStuck,
    /// The thread that follows the keys hangs: revocations aren't noticed.
    KeysThreadStuck,
    /// The store has been unreachable for so long that keys are no longer trusted.
    StaleKeys,
}

/// Returns the reason for which the server isn't ready; `None` if it is.
pub(super) fn not_ready(app: &App) -> Option<NotReady> {
    if app.draining.load(Ordering::Relaxed) {
        return Some(NotReady::Draining);
    }
    if app.live.snapshot().is_none() {
        return Some(NotReady::NoCatalog);
    }
    let now = Instant::now();
    let metrics = &app.live.metrics;
    if metrics.follow_keys.heartbeat.is_late(now) {
        return Some(NotReady::KeysThreadStuck);
    }
    if metrics.follow_catalog.heartbeat.is_late(now) {
        return Some(NotReady::CatalogThreadStuck);
    }
    let is_fresh = app.live.contact.is_fresh(BootTime::now());
    (!is_fresh).then_some(NotReady::StaleKeys)
}

#[derive(Debug, Serialize)]
struct Readiness {
    ready: bool,
    reason: Option<NotReady>,
    revision: Option<LiveRevision>,
    store: StoreContact,
    /// Files of the state directory by name; null without one.
    state_files: Option<BTreeMap<&'static str, WrittenFile>>,
}

/// Contact with the followed store.
#[derive(Debug, Serialize)]
struct StoreContact {
    /// True if the last attempt to read the store succeeded.
    readable: bool,
    /// Seconds since the keys were last known to be current; null until then.
    contact_age_seconds: Option<u64>,
    /// Maximum age of keys, in seconds.
    max_stale_keys_seconds: u64,
}

#[derive(Debug, Serialize)]
struct LiveRevision {
    number: u64,
    id: String,
    /// Seconds since the revision was published.
    age_seconds: i64,
    /// Seconds since the revision went live on this server.
    live_seconds: i64,
}

fn store_contact(app: &App) -> StoreContact {
    let contact = &app.live.contact;
    StoreContact {
        readable: is_store_readable(app),
        contact_age_seconds: contact.age(BootTime::now()).map(|age| age.as_secs()),
        max_stale_keys_seconds: contact.max_stale().as_secs(),
    }
}

/// Returns true if the last attempt to read the store succeeded.
pub(super) fn is_store_readable(app: &App) -> bool {
    let metrics = &app.live.metrics;
    !metrics.follow_catalog.is_failing() && !metrics.follow_keys.is_failing()
}

fn ready(app: &App) -> Page {
    let reason = not_ready(app);
    let now = Timestamp::now();
    let revision = app.live.snapshot().map(|snapshot| {
        let revision = snapshot.revision();
        LiveRevision {
            number: revision.number,
            id: revision.id.clone(),
            age_seconds: now.duration_since(revision.created_at).as_secs(),
            live_seconds: now.as_second() - app.live.metrics.live_since.get() as i64,
        }
    });
    let readiness = Readiness {
        ready: reason.is_none(),
        reason,
        revision,
        store: store_contact(app),
        state_files: state_files::written(&app.live.metrics.state_files, now),
    };
    let status = match reason {
        None => StatusCode::OK,
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    // Plain texts and numbers can't fail to become JSON.
    let body = serde_json::to_vec(&readiness).unwrap_or_default();
    page(status, "application/json", body)
}
