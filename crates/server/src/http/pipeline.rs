//! How a request is judged: route → method → catalog loaded → key → version → parameters → does the
//! product exist → quota. The first step that fails answers (docs/contract/errors.md#order-of-checks).

use std::time::Instant;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use vitrine_model::key::{KeyTable, KnownKey};
use vitrine_model::quota::{Admission, Taken};
use vitrine_model::version::{ApiVersion, VersionError};
use vitrine_wire::error::ErrorType;

use super::App;
use super::access::client::Peer;
use super::access::quota::{Account, Cost, Step};
use super::access::simulation;
use super::body::budget::Account as SendAccount;
use super::endpoints;
use super::endpoints::texts;
use super::error::ApiError;
use super::request::host;
use super::request::parameters;
use super::response::X_API_VERSION;
use super::response::resource::{Prepared, Resource, SendContext};
use super::routes::{Captured, KeyedOperation, Operation, Route, Target, find, nearest};
use super::service::HasFragment;
use crate::metrics::limits::Decision;
use crate::panic_point::PanicPoint;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The longest target, path and query together, in bytes.
const MAX_TARGET_BYTES: usize = 8 * 1024;
/// The most headers.
const MAX_HEADERS: usize = 64;
/// The most that all headers may take, in bytes.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// What the access log says of a request beside what it can see itself.
#[derive(Debug, Default)]
pub(super) struct Trail<'r> {
    /// The route.
    pub(super) route: Option<&'static Route>,
    /// The prefix of the key.
    pub(super) key: Option<&'r str>,
    /// The version that answered.
    pub(super) version: Option<&'static str>,
    /// The revision that answered.
    pub(super) revision: Option<u64>,
    /// The error that a test key asked for with `X-Simulate`.
    pub(super) simulated: Option<ErrorType>,
}

/// The steps that need only the head's first line and its size: limits, route, method.
pub(super) fn admit(request: &Parts, trail: &mut Trail<'_>) -> Result<Target, ApiError> {
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
    let target = find(path).ok_or_else(|| ApiError::no_such_path(nearest(path)))?;
    trail.route = Some(target.route);
    match request.method {
        Method::GET | Method::HEAD => Ok(target),
        _ => Err(ApiError::plain(ErrorType::MethodNotAllowed)),
    }
}

/// Client and connection of a request.
#[derive(Debug)]
pub(super) struct Client<'c> {
    /// The client, as far as proxies are believed.
    pub(super) peer: Peer,
    /// Pays for answers over the connection.
    pub(super) connection: &'c SendAccount,
}

/// What judging comes to.
pub(super) enum Judged<'r> {
    /// An answer.
    Answer(Prepared),
    /// An answer that costs quota which is kept elsewhere: ask there, and judge again.
    Costs(Cost<'r>),
}

/// The steps that follow. `settled` is what became of the request's [`Cost`], where an earlier judging of the same
/// request came to one.
pub(super) fn judge<'r>(
    app: &App,
    request: &'r Parts,
    target: &Target,
    client: &Client<'_>,
    settled: Option<Taken>,
    trail: &mut Trail<'r>,
) -> Judged<'r> {
    let context = app.send_context(None, client.connection);
    let answer = match target.route.operation {
        Operation::Keyed(operation) => {
            let keyed = Keyed {
                app,
                client,
                request,
                operation,
                captured: &target.captured,
            };
            match keyed.judge(settled, trail) {
                Ok(judged) => return judged,
                Err(error) => Err(error),
            }
        }
        Operation::GetText => {
            text(app, request, &target.captured).and_then(|found| public(context, request, found))
        }
        Operation::GetOpenapi => parameters::none(request.uri.query()).and_then(|()| {
            public(
                context,
                request,
                app.document.of(app.addresses.public_url()),
            )
        }),
        Operation::Docs => parameters::none(request.uri.query())
            .and_then(|()| app.site.find(&target.captured))
            .and_then(|found| public(context, request, found)),
    };
    Judged::Answer(answer.unwrap_or_else(Prepared::from))
}

fn text(app: &App, request: &Parts, captured: &Captured) -> Result<Resource<'static>, ApiError> {
    let snapshot = app
        .live
        .snapshot()
        .ok_or_else(|| ApiError::plain(ErrorType::Unavailable))?;
    parameters::none(request.uri.query())?;
    let Captured::Digest(digest) = captured else {
        return Err(ApiError::no_such_text());
    };
    texts::by_digest(&snapshot, digest, Timestamp::now())
}

/// What needs no key and costs no quota.
fn public(
    context: SendContext<'_>,
    request: &Parts,
    found: Resource<'_>,
) -> Result<Prepared, ApiError> {
    if found.is_known_to(&request.headers) {
        return Ok(found.not_modified().into());
    }
    found.reserved(context)?.found(&request.headers, context)
}

/// A request for something that needs a key.
struct Keyed<'a, 'r> {
    app: &'a App,
    client: &'a Client<'a>,
    request: &'r Parts,
    operation: KeyedOperation,
    captured: &'a Captured,
}

impl<'r> Keyed<'_, 'r> {
    fn judge(&self, settled: Option<Taken>, trail: &mut Trail<'r>) -> Result<Judged<'r>, ApiError> {
        let (app, headers) = (self.app, &self.request.headers);
        let snapshot = app
            .live
            .snapshot()
            .ok_or_else(|| ApiError::plain(ErrorType::Unavailable))?;
        trail.revision = Some(snapshot.revision().number);
        let moment = Instant::now();
        if !app.live.contact.is_fresh(moment) {
            return Err(ApiError::keys_too_old());
        }
        let keys = app.live.keys();
        let (key, prefix) = authenticate(headers, &keys, Timestamp::now())
            .map_err(|error| count_failed(error, app, self.client.peer))?;
        trail.key = Some(prefix);
        let mut account = Account::new(key, moment.saturating_duration_since(app.started), settled);
        let mut prepared = match negotiate_version(headers, key) {
            Err(error) => Prepared::from(error),
            Ok(version) => {
                trail.version = Some(version.as_str());
                PanicPoint::VersionKnown.pass();
                let asked = simulation::requested(headers, key);
                trail.simulated = asked.as_ref().ok().copied().flatten();
                let found = asked.and_then(|asked| match asked {
                    Some(kind) => Err(simulation::error(kind)),
                    None => {
                        let query = self.request.uri.query();
                        endpoints::read(self.operation, &snapshot, app, self.captured, query)
                    }
                });
                let sending = Some(&key.usage.sending_bytes);
                let context = app.send_context(sending, self.client.connection);
                let mut prepared = match self.settle(found, &mut account, prefix, context) {
                    Judged::Answer(prepared) => prepared,
                    elsewhere => return Ok(elsewhere),
                };
                let version = HeaderValue::from_static(version.as_str());
                let headers = prepared.answer.headers_mut();
                headers.insert(X_API_VERSION, version);
                if let Some(kind) = trail.simulated {
                    simulation::add_headers(kind, headers);
                    account.simulate(kind);
                }
                prepared
            }
        };
        account.describe(prepared.answer.headers_mut());
        Ok(Judged::Answer(prepared))
    }

    /// The last steps: a client that has the answer is told so for nothing; 200 and 404 cost quota.
    fn settle(
        &self,
        found: Result<Resource<'_>, ApiError>,
        account: &mut Account<'_>,
        prefix: &'r str,
        context: SendContext<'_>,
    ) -> Judged<'r> {
        let headers = &self.request.headers;
        let found = match found {
            Ok(resource) if resource.is_known_to(headers) => {
                return Judged::Answer(resource.not_modified().into());
            }
            // Before it costs anything: nobody pays for a 503. Who has paid elsewhere is sent a long page plain.
            Ok(resource) if account.is_settled() => resource.reserved(context),
            found => found
                .and_then(|resource| resource.not_shed(headers, context))
                .and_then(|resource| resource.reserved(context)),
        };
        let found = match found {
            Err(error) if error.kind != ErrorType::NotFound => {
                return Judged::Answer(error.into());
            }
            found => found,
        };
        match account.take(self.app, prefix) {
            Step::Granted => {
                let answer = found.and_then(|resource| resource.found(headers, context));
                Judged::Answer(answer.unwrap_or_else(Prepared::from))
            }
            Step::Refused(error) => Judged::Answer(error.into()),
            Step::Elsewhere(cost) => Judged::Costs(cost),
        }
    }
}

/// Counts a key that isn't valid against the client's address: who tries too many is told to wait. A request without
/// any key guesses nothing.
fn count_failed(error: ApiError, app: &App, client: Peer) -> ApiError {
    if error.kind != ErrorType::InvalidApiKey {
        return error;
    }
    let failed = &app.metrics.limits.failed_keys;
    match app.access.failed_keys.take(client, app.started.elapsed()) {
        Admission::Granted => {
            failed.of(Decision::Granted).increment();
            error
        }
        Admission::Refused { retry_after } => {
            failed.of(Decision::Refused).increment();
            ApiError::too_many_failed_keys(retry_after)
        }
    }
}

/// The key that a request bears, and its prefix as the request wrote it.
fn authenticate<'k, 'r>(
    headers: &'r HeaderMap,
    keys: &'k KeyTable,
    now: Timestamp,
) -> Result<(&'k KnownKey, &'r str), ApiError> {
    let invalid = || ApiError::plain(ErrorType::InvalidApiKey);
    let presented = single(headers, &X_API_KEY)
        .map_err(|Unreadable| invalid())?
        .ok_or_else(|| ApiError::plain(ErrorType::Unauthorized))?;
    let key = keys.authenticate(presented, now).ok_or_else(invalid)?;
    let prefix = presented.split_once('.').map_or("", |(prefix, _)| prefix);
    Ok((key, prefix))
}

fn negotiate_version(headers: &HeaderMap, key: &KnownKey) -> Result<ApiVersion, ApiError> {
    let error = |kind| match kind {
        VersionError::Removed => ApiError::plain(ErrorType::VersionRemoved),
        VersionError::Unknown => ApiError::plain(ErrorType::InvalidVersion),
    };
    let asked =
        single(headers, &X_API_VERSION).map_err(|Unreadable| error(VersionError::Unknown))?;
    match asked.or(key.record.api_version.as_deref()) {
        Some(version) => version.parse().map_err(error),
        None => Ok(ApiVersion::default()),
    }
}

/// A header is there twice, or isn't text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The value of a header that may be there once; an empty one counts as none.
pub(super) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Unreadable)?.trim();
            Ok((!text.is_empty()).then_some(text))
        }
        (Some(_), Some(_)) => Err(Unreadable),
    }
}
