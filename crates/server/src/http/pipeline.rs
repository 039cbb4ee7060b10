//! Path of a request: admit → authenticate → resolve → charge → respond. The first step that fails answers
//! (docs/contract/errors.md#order-of-checks).

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{IF_NONE_MATCH, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use vitrine_model::key::{KeyTable, KnownKey};
use vitrine_model::quota::Admission;
use vitrine_model::snapshot::Snapshot;
use vitrine_wire::error::ErrorType;

use super::access::authentication;
use super::access::client::Peer;
use super::access::quota::KeyQuota;
use super::access::simulation;
use super::access_log::RequestLogContext;
use super::changes_path::{Deferred, Waited};
use super::connection::Connection;
use super::endpoints::{Found, texts};
use super::error::ApiError;
use super::request::version::X_API_VERSION;
use super::request::{HasFragment, host, parameters, version};
use super::response::resource::{Resource, SendContext};
use super::response::{Response, seconds_up};
use super::routes::{Captured, KeyedOperation, Operation, Target, find, nearest};
use super::state::App;
use super::visible::Visible;
use crate::boot_time::BootTime;
use crate::metrics::table::{Caller, FailedKey};
use crate::panic_point::PanicPoint;

/// Maximum length of a target, path and query together, in bytes.
const MAX_TARGET_BYTES: usize = 8 * 1024;
/// Maximum number of headers.
const MAX_HEADERS: usize = 64;
/// Maximum length of all headers together, in bytes.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Client and connection of a request.
#[derive(Debug)]
pub(super) struct Client<'c> {
    /// Address of the client, or of the nearest proxy that isn't trusted.
    pub(super) peer: Peer,
    /// Its connection.
    pub(super) connection: &'c dyn Connection,
}

/// A request that was admitted.
pub(super) struct Admitted<'a, 'r> {
    pub(super) app: &'a App,
    pub(super) request: &'r Parts,
    pub(super) target: &'a Target,
    pub(super) client: &'a Client<'a>,
}

/// Result of resolving a request that needs a key.
pub(super) enum Outcome<'s> {
    /// The client has the current body already, which costs no quota.
    NotModified(Response),
    /// No changes, and nothing left to look at, which costs no quota either; and the pause before the next request, if there should be one.
    NoChanges(Resource<'s>, Option<Duration>),
    /// The request has to wait before it can be answered.
    Deferred(Deferred),
    /// A resource, or the error that there is none: both cost quota.
    NeedsQuota(Result<Resource<'s>, ApiError>),
}

/// Admits a request by its size, `Host`, route and method, before its body is read.
pub(super) fn admit(
    app: &App,
    request: &Parts,
    log: &mut RequestLogContext<'_>,
) -> Result<Target, ApiError> {
    let target_bytes = request
        .uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if target_bytes > MAX_TARGET_BYTES {
        return Err(ApiError::plain(ErrorType::UriTooLong));
    }
    let header_bytes: usize = request
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    if request.headers.len() > MAX_HEADERS || header_bytes > MAX_HEADER_BYTES {
        return Err(ApiError::plain(ErrorType::HeadersTooLarge));
    }
    host::check(request)?;
    if request.extensions.get::<HasFragment>().is_some() {
        return Err(ApiError::fragment());
    }
    let path = request.uri.path();
    let target = find(path)
        .filter(|target| target.captured != Captured::Page || app.endpoints.site().has(path))
        .ok_or_else(|| ApiError::no_such_path(nearest(path)))?;
    log.route = Some(target.route);
    match request.method {
        Method::GET | Method::HEAD => Ok(target),
        _ => Err(ApiError::plain(ErrorType::MethodNotAllowed)),
    }
}

impl<'r> Admitted<'_, 'r> {
    /// Answers the request.
    pub(super) async fn answer(&self, log: &mut RequestLogContext<'r>) -> Response {
        PanicPoint::Handler.pass();
        let response = match self.target.route.operation {
            Operation::Keyed(operation) => self.answer_keyed(operation, log).await,
            Operation::GetText => self.answer_public(self.text()).await,
            Operation::GetOpenapi => {
                let query = self.request.uri.query();
                self.answer_public(self.app.endpoints.openapi(query)).await
            }
            Operation::Docs => self.answer_public(self.docs()).await,
            Operation::SearchDocs => {
                let query = self.request.uri.query();
                let found = self.app.endpoints.site().search(query);
                self.answer_public(found).await
            }
        };
        response.unwrap_or_else(Response::from)
    }

    /// Answers a request that needs a key.
    ///
    /// # Errors
    ///
    /// If the client isn't authenticated: such an answer tells neither version nor quota.
    async fn answer_keyed(
        &self,
        operation: KeyedOperation,
        log: &mut RequestLogContext<'r>,
    ) -> Result<Response, ApiError> {
        let mut waited = Waited::default();
        loop {
            self.wait_for_keys().await;
            let deferred = 'deferred: {
                let snapshot = self.snapshot()?;
                log.revision = Some(snapshot.revision().number);
                let keys = self.app.live.keys();
                let now = Instant::now();
                let (key, prefix) = self.authenticate(&keys)?;
                log.key = Some(prefix);
                // Before the answer, which may take a while.
                self.client.connection.note(Caller::WithKey);
                let mut quota = KeyQuota::new(key, prefix, self.app.started, now);
                let context = self.send_context(Some(key));

                let mut pause = None;
                let caller = (key, &quota);
                let resolved = self.resolve(operation, &snapshot, caller, context, &waited, log);
                let found = match resolved {
                    Ok(Outcome::NotModified(response)) => Err(response),
                    Ok(Outcome::NoChanges(resource, until_next)) => {
                        pause = until_next;
                        Ok(resource)
                    }
                    Ok(Outcome::NeedsQuota(found)) => {
                        let (shared, limits) = (&self.app.access.shared, &self.app.metrics.limits);
                        let charged = quota.charge(shared.as_deref(), limits).await;
                        charged.and(found).map_err(Response::from)
                    }
                    Ok(Outcome::Deferred(deferred)) => {
                        let is_first = self.needs_quota_first(&deferred);
                        match is_first.then(|| quota.check(&self.app.metrics.limits)) {
                            Some(Err(refused)) => Err(refused.into()),
                            _ => break 'deferred deferred,
                        }
                    }
                    Err(error) => Err(error.into()),
                };
                let mut response = match found {
                    Ok(resource) => self.respond(resource, context).await,
                    Err(response) => response,
                };
                describe(response.headers_mut(), &mut quota, pause, log);
                key.usage.counts.count_request();
                return Ok(response);
            };
            let began = Instant::now();
            let is_rendering = matches!(deferred, Deferred::Render { .. });
            // Nothing else is held meanwhile.
            self.wait(deferred, &mut waited).await;
            if !is_rendering {
                log.waited += began.elapsed();
            }
        }
    }

    /// Returns true if a request with an exhausted quota is refused before its wait. A 304, which costs none, may need HTML.
    fn needs_quota_first(&self, deferred: &Deferred) -> bool {
        matches!(deferred, Deferred::Render { .. })
            && !self.request.headers.contains_key(IF_NONE_MATCH)
    }

    /// Waits for the keys if this process was stopped, since others may have been revoked meanwhile.
    async fn wait_for_keys(&self) {
        let contact = &self.app.live.contact;
        if contact.is_overdue(BootTime::now()) {
            // Boxed, so that other requests need no room for it.
            Box::pin(contact.asked()).await;
        }
    }

    /// Authenticates the request; returns the key with its prefix as the request wrote it.
    fn authenticate<'k>(&self, keys: &'k KeyTable) -> Result<(&'k KnownKey, &'r str), ApiError> {
        if !self.app.live.contact.is_fresh(BootTime::now()) {
            return Err(ApiError::keys_too_old());
        }
        authentication::authenticate(&self.request.headers, keys, Timestamp::now())
            .map_err(|error| self.count_failed(error))
    }

    /// Counts an invalid key against the client's address. Returns the error for too many of them instead, if they
    /// are. A request without a key guesses nothing and isn't counted.
    fn count_failed(&self, error: ApiError) -> ApiError {
        if error.kind != ErrorType::InvalidApiKey {
            return error;
        }
        let app = self.app;
        let failed = &app.metrics.limits.failed_keys;
        let now = app.started.elapsed();
        match app.access.failed_keys.take(self.client.peer, now) {
            Admission::Granted => {
                failed.of(FailedKey::Refused).increment();
                error
            }
            Admission::Refused { retry_after } => {
                failed.of(FailedKey::Limited).increment();
                ApiError::too_many_failed_keys(retry_after)
            }
        }
    }

    /// Resolves the request: version, simulated error, parameters, existence; then memory and a place in the queue of
    /// what is compressed, since a 503 costs no quota.
    ///
    /// # Errors
    ///
    /// If one of these fails. Such an answer costs no quota.
    fn resolve<'s>(
        &'s self,
        operation: KeyedOperation,
        snapshot: &'s Arc<Snapshot>,
        (key, quota): (&KnownKey, &KeyQuota<'_>),
        context: SendContext<'_>,
        waited: &Waited,
        log: &mut RequestLogContext<'r>,
    ) -> Result<Outcome<'s>, ApiError> {
        let headers = &self.request.headers;
        let endpoints = &self.app.endpoints;
        let version = version::negotiate(headers, key)?;
        log.version = Some(version.date);
        PanicPoint::VersionKnown.pass();
        log.simulated = simulation::requested(headers, key)?;
        let found = match log.simulated {
            Some(kind) => Err(simulation::error(kind)),
            None if operation == KeyedOperation::ListChanges => {
                return self.changes(&version, (key, quota), context, waited, log);
            }
            None => {
                let query = self.request.uri.query();
                let captured = &self.target.captured;
                let assortment = key.visible.assortment()?;
                let visible = Visible::new(assortment, snapshot, version.discounts);
                match operation {
                    KeyedOperation::GetProduct => {
                        endpoints.product(snapshot, &visible, captured, query, &waited.rendered)
                    }
                    _ => endpoints
                        .keyed(&version, operation, snapshot, visible, query)
                        .map(Found::Resource),
                }
            }
        };
        let found = match found {
            Ok(Found::Unrendered(texts)) => {
                let account = context.payer.key().clone();
                return Ok(Outcome::Deferred(Deferred::Render { texts, account }));
            }
            Ok(Found::Resource(resource)) => Ok(resource),
            Err(error) => Err(error),
        };
        match found {
            Ok(resource) if resource.matches_if_none_match(headers) => {
                Ok(Outcome::NotModified(resource.not_modified()))
            }
            Ok(resource) => {
                let resource = resource.not_shed(headers, context)?.reserved(context)?;
                Ok(Outcome::NeedsQuota(Ok(resource)))
            }
            Err(error) if error.kind == ErrorType::NotFound => Ok(Outcome::NeedsQuota(Err(error))),
            Err(error) => Err(error),
        }
    }

    /// Answers a request that needs no key and costs no quota.
    async fn answer_public(
        &self,
        found: Result<Resource<'_>, ApiError>,
    ) -> Result<Response, ApiError> {
        let found = found?;
        if found.matches_if_none_match(&self.request.headers) {
            return Ok(found.not_modified());
        }
        let context = self.send_context(None);
        Ok(self.respond(found.reserved(context)?, context).await)
    }

    fn text(&self) -> Result<Resource<'static>, ApiError> {
        let snapshot = self.snapshot()?;
        self.refuse_parameters()?;
        texts::find(&snapshot, &self.target.captured, Timestamp::now())
    }

    fn docs(&self) -> Result<Resource<'static>, ApiError> {
        self.refuse_parameters()?;
        let site = self.app.endpoints.site();
        site.find(self.request.uri.path(), &self.target.captured)
    }

    /// Makes the response to what was found.
    async fn respond(&self, found: Resource<'_>, context: SendContext<'_>) -> Response {
        let response = found.respond(&self.request.headers, context).await;
        response.unwrap_or_else(Response::from)
    }

    fn refuse_parameters(&self) -> Result<(), ApiError> {
        parameters::none(self.request.uri.query())
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, ApiError> {
        let snapshot = self.app.live.snapshot();
        snapshot.ok_or_else(|| ApiError::plain(ErrorType::Unavailable))
    }

    /// Memory for an answer to a key, if the request has one, over its connection.
    fn send_context<'k>(&'k self, key: Option<&'k KnownKey>) -> SendContext<'k> {
        let account = key.map(|key| &key.usage.sending_bytes);
        self.app
            .send_context(account, self.client.connection.account())
    }
}

/// Adds the headers that tell the version, the quota and the pause before the next request.
fn describe(
    headers: &mut HeaderMap,
    quota: &mut KeyQuota<'_>,
    pause: Option<Duration>,
    log: &RequestLogContext<'_>,
) {
    if let Some(version) = log.version {
        headers.insert(X_API_VERSION, HeaderValue::from_static(version));
    }
    if let Some(kind) = log.simulated {
        simulation::add_headers(kind, headers);
        quota.simulate(kind);
    }
    if let Some(pause) = pause {
        headers.insert(RETRY_AFTER, seconds_up(pause).into());
    }
    quota.describe(headers);
}
