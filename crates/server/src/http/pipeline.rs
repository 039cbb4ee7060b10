//! How a request is judged: route → method → catalog loaded → key → version → parameters → does the
//! product exist → quota. The first step that fails answers (decisions, "Errors").

use std::time::{Duration, Instant};

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use vitrine_model::key::{KeyKind, KeyTable, KnownKey};
use vitrine_model::version::{ApiVersion, VersionError};
use vitrine_wire::error::ErrorType;

use super::answer::{Prepared, Resource, X_API_VERSION};
use super::body_cache::BodyCache;
use super::error::ApiError;
use super::routes::{Captured, KeyedOperation, Operation, Route, Target, find};
use super::{App, handlers, parameters, quota, ready, texts};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_SIMULATE: HeaderName = HeaderName::from_static("x-simulate");

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
    /// Whether the error was asked for with `X-Simulate`.
    pub(super) simulated: bool,
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
    let target = find(request.uri.path()).ok_or_else(|| ApiError::plain(ErrorType::NotFound))?;
    trail.route = Some(target.route);
    match request.method {
        Method::GET | Method::HEAD => Ok(target),
        _ => Err(ApiError::plain(ErrorType::MethodNotAllowed)),
    }
}

/// The steps that follow.
pub(super) fn answer<'r>(
    app: &App,
    request: &'r Parts,
    target: &Target,
    trail: &mut Trail<'r>,
) -> Prepared {
    app.forget_damage();
    let answer = match target.route.operation {
        Operation::Keyed(operation) => keyed(app, request, operation, &target.captured, trail),
        Operation::GetText => text(app, request, &target.captured),
        Operation::GetOpenapi => parameters::none(request.uri.query())
            .and_then(|()| public(app, request, ready::document())),
    };
    answer.unwrap_or_else(Prepared::from)
}

fn text(app: &App, request: &Parts, captured: &Captured) -> Result<Prepared, ApiError> {
    let snapshot = app
        .live
        .snapshot()
        .ok_or_else(|| ApiError::plain(ErrorType::Unavailable))?;
    parameters::none(request.uri.query())?;
    let Captured::Digest(digest) = captured else {
        return Err(ApiError::no_such_text());
    };
    let text = texts::by_digest(&snapshot, digest, Timestamp::now())?;
    public(app, request, text)
}

/// What needs no key and costs no quota.
fn public(app: &App, request: &Parts, found: Resource<'_>) -> Result<Prepared, ApiError> {
    if found.is_known_to(&request.headers) {
        return Ok(found.not_modified().into());
    }
    found.found(&request.headers, &app.bodies)
}

fn keyed<'r>(
    app: &App,
    request: &'r Parts,
    operation: KeyedOperation,
    captured: &Captured,
    trail: &mut Trail<'r>,
) -> Result<Prepared, ApiError> {
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
    let (key, prefix) = authenticate(&request.headers, &keys, Timestamp::now())?;
    trail.key = Some(prefix);
    let now = moment.saturating_duration_since(app.started);
    let outcome = negotiate_version(&request.headers, key).map(|version| {
        trail.version = Some(version.as_str());
        let simulated = simulate(&request.headers, key);
        trail.simulated = simulated.is_err();
        let found = simulated.and_then(|()| {
            let query = request.uri.query();
            handlers::read(operation, &snapshot, app, captured, query)
        });
        let mut prepared = settle(found, &request.headers, &app.bodies, key, now);
        let version = HeaderValue::from_static(version.as_str());
        let headers = prepared.answer.headers_mut();
        headers.insert(X_API_VERSION, version);
        prepared
    });
    let mut prepared = outcome.unwrap_or_else(Prepared::from);
    quota::describe(key, now, prepared.answer.headers_mut());
    Ok(prepared)
}

/// The last steps: a client that has the answer is told so for nothing; 200 and 404 cost quota.
fn settle(
    found: Result<Resource<'_>, ApiError>,
    headers: &HeaderMap,
    bodies: &BodyCache,
    key: &KnownKey,
    now: Duration,
) -> Prepared {
    match found {
        Ok(resource) if resource.is_known_to(headers) => resource.not_modified().into(),
        Ok(resource) => quota::take(key, now)
            .and_then(|()| resource.found(headers, bodies))
            .unwrap_or_else(Prepared::from),
        Err(error) if error.kind == ErrorType::NotFound => {
            quota::take(key, now).err().unwrap_or(error).into()
        }
        Err(error) => error.into(),
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

/// Gives a test key the error that it asks for.
fn simulate(headers: &HeaderMap, key: &KnownKey) -> Result<(), ApiError> {
    let asked = single(headers, &X_SIMULATE).map_err(|Unreadable| ApiError::unknown_simulation());
    if asked == Ok(None) {
        return Ok(());
    }
    if key.record.kind != KeyKind::Test {
        return Err(ApiError::plain(ErrorType::Forbidden));
    }
    let asked = asked?;
    let kind = ErrorType::ALL
        .iter()
        .find(|kind| Some(kind.as_str()) == asked);
    Err(kind.map_or_else(ApiError::unknown_simulation, |kind| ApiError::plain(*kind)))
}

/// A header is there twice, or isn't text.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

/// The value of a header that may be there once; an empty one counts as none.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Unreadable> {
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
