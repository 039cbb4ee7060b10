//! Whole responses to requests with any headers, compared with the rules one by one: key, version, simulation,
//! `If-None-Match` (RFC 9110, section 13.1.2), `Accept-Encoding` (RFC 9110, section 12.5.3), request id
//! (docs/contract/access.md, docs/contract/errors.md, docs/contract/caching.md).
//!
//! An input is lines: a letter for the header, then its value. In values, `{K}` is a key, `{T}` a test key, `{P}` one
//! pinned to a removed version, `{X}` an expired one, `{R}` a revoked one, `{E}` the entity tag of the resource.

mod codings;
mod tags;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use vitrine::app::{self, AppSettings};
use vitrine::http::error::ApiError;
use vitrine::http::fuzzing::Answering;
use vitrine::live::fuzzing::live;
use vitrine_model::key::{KeyKind, KeyRecord, KeyTable, NewKey};
use vitrine_wire::error::ErrorType;

use self::codings::{check_coding, decoded, weights};
use self::tags::check_tag;
use crate::catalog::{PUBLIC_URL, catalog};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_API_VERSION: HeaderName = HeaderName::from_static("x-api-version");
const X_SIMULATE: HeaderName = HeaderName::from_static("x-simulate");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Paths of requests: a long list, a short one, a product, its texts in other forms, and one with a body too short to
/// be compressed.
const TARGETS: [&str; 5] = [
    "/v2/product?limit=9",
    "/v2/product?limit=1",
    "/v2/product/PANDANLANE-SG",
    "/v2/product/PANDANLANE-SG?content=html",
    "/v2/ping",
];

/// State of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Good,
    Test,
    Pinned,
    Expired,
    Revoked,
}

const KEYS: [(&str, Key); 5] = [
    ("{K}", Key::Good),
    ("{T}", Key::Test),
    ("{P}", Key::Pinned),
    ("{X}", Key::Expired),
    ("{R}", Key::Revoked),
];

struct World {
    answering: Answering,
    runtime: tokio::runtime::Runtime,
    keys: Vec<(Key, String)>,
    /// Plain body and tag of each target.
    plain: Vec<(Bytes, HeaderValue)>,
}

thread_local! {
    static WORLD: World = World::new();
}

static SECRETS: LazyLock<Vec<(Key, NewKey)>> = LazyLock::new(|| {
    let key = |(place, (_, key)): (u8, (&str, Key))| {
        let kind = match key {
            Key::Test => KeyKind::Test,
            _ => KeyKind::Live,
        };
        (key, NewKey::from_random(kind, &[place + 1; 40]))
    };
    (0..).zip(KEYS).map(key).collect()
});

impl World {
    fn new() -> Self {
        let records = SECRETS.iter().map(|(key, new)| {
            let kind = match key {
                Key::Test => KeyKind::Test,
                _ => KeyKind::Live,
            };
            KeyRecord {
                api_version: (*key == Key::Pinned).then(|| "2023-07-27".to_owned()),
                expires_at: (*key == Key::Expired).then_some(Timestamp::UNIX_EPOCH),
                revoked_at: (*key == Key::Revoked).then_some(Timestamp::UNIX_EPOCH),
                ..KeyRecord::new(new, kind, "fuzzing", Timestamp::UNIX_EPOCH)
            }
        });
        let keys = KeyTable::new(records.collect(), &KeyTable::default());
        let live = Arc::new(live(catalog(usize::MAX).snapshot, keys));
        let settings = AppSettings {
            public_url: PUBLIC_URL.to_owned(),
            cache_bytes: 1 << 20,
            ..AppSettings::default()
        };
        let app = Arc::new(app::build(settings, live));
        let mut world = Self {
            answering: Answering::new(app).expect("random numbers"),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime"),
            keys: SECRETS
                .iter()
                .map(|(key, new)| (*key, new.reveal()))
                .collect(),
            plain: Vec::new(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(X_API_KEY, world.keys[0].1.parse().expect("a value"));
        world.plain = (0..TARGETS.len())
            .map(|target| {
                let (_, answered, body) = world.answer(target, &headers);
                let tag = answered.get(ETAG).expect("a tag").clone();
                (body, tag)
            })
            .collect();
        world
    }

    fn answer(&self, target: usize, headers: &HeaderMap) -> (StatusCode, HeaderMap, Bytes) {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = TARGETS[target].parse().expect("a target");
        *request.headers_mut() = headers.clone();
        request
            .headers_mut()
            .insert("host", HeaderValue::from_static("localhost"));
        let answer = self.runtime.block_on(self.answering.answer(request));
        let (parts, body) = answer.into_parts();
        (parts.status, parts.headers, body.into_bytes())
    }

    /// Returns the request that an input describes.
    fn request(&self, bytes: &[u8]) -> (usize, HeaderMap) {
        let mut target = 0;
        let mut headers = HeaderMap::new();
        // Fewer than the maximum number of headers.
        for line in bytes.split(|byte| *byte == b'\n').take(40) {
            let Some((letter, value)) = line.split_first() else {
                continue;
            };
            let name = match letter {
                b'k' => X_API_KEY,
                b'v' => X_API_VERSION,
                b's' => X_SIMULATE,
                b'n' => IF_NONE_MATCH,
                b'e' => ACCEPT_ENCODING,
                b'i' => X_REQUEST_ID,
                digit @ b'0'..=b'4' => {
                    target = usize::from(digit - b'0');
                    continue;
                }
                _ => continue,
            };
            let mut value = value.to_vec();
            for (key, (name, _)) in self.keys.iter().zip(KEYS) {
                value = replaced(&value, name.as_bytes(), key.1.as_bytes());
            }
            let tag = self.plain.get(target).map(|(_, tag)| tag.as_bytes());
            value = replaced(&value, b"{E}", tag.unwrap_or_default());
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        (target, headers)
    }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(from) {
            out.extend_from_slice(to);
            rest = after;
        } else {
            out.push(rest[0]);
            rest = &rest[1..];
        }
    }
    out
}

/// Checks a response against the rules.
pub fn check(bytes: &[u8]) {
    WORLD.with(|world| {
        let (target, headers) = world.request(bytes);
        let (status, answered, body) = world.answer(target, &headers);
        let (plain, tag) = &world.plain[target];
        let about = format!("{} {headers:?}", TARGETS[target]);
        check_id(&headers, &answered, &about);
        match judge(world, &headers) {
            Err((error, has_version)) => {
                assert_eq!(status, ApiError::status(error), "{about}");
                assert_eq!(answered.contains_key(X_API_VERSION), has_version, "{about}");
                check_error(error, &headers, &answered, &body, &about);
            }
            Ok(()) => {
                assert_eq!(answered[X_API_VERSION], "2024-02-05", "{about}");
                assert_eq!(answered[ETAG], tag, "{about}");
                check_tag(&headers, tag, status, &about);
                if status == StatusCode::OK {
                    check_coding(&headers, &answered, plain.len(), &about);
                    assert_eq!(decoded(&answered, &body), plain, "{about}");
                } else {
                    assert!(body.is_empty(), "{about}");
                }
            }
        }
        check_secrets(world, &headers, &answered, &body);
    });
}

/// Returns the single value of a header; an empty one counts as missing.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    let [value] = values.as_slice() else {
        return if values.is_empty() { Ok(None) } else { Err(()) };
    };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| ())?;
    let is_plain = text.chars().all(|c| c == '\t' || (' '..='~').contains(&c));
    let text = text.trim_matches([' ', '\t']);
    match is_plain {
        true => Ok((!text.is_empty()).then_some(text)),
        false => Err(()),
    }
}

/// Returns the first step that fails, and true if that is after the version was negotiated.
fn judge(world: &World, headers: &HeaderMap) -> Result<(), (ErrorType, bool)> {
    let key = match single(headers, &X_API_KEY) {
        Ok(None) => return Err((ErrorType::Unauthorized, false)),
        Ok(Some(given)) => world.keys.iter().find(|(_, key)| key == given),
        Err(()) => None,
    };
    let key = match key.map(|(key, _)| *key) {
        None | Some(Key::Expired | Key::Revoked) => {
            return Err((ErrorType::InvalidApiKey, false));
        }
        Some(key) => key,
    };
    match single(headers, &X_API_VERSION) {
        Ok(None) if key == Key::Pinned => return Err((ErrorType::VersionRemoved, false)),
        Ok(None | Some("2024-02-05")) => {}
        Ok(Some("2023-07-27" | "2023-01-16")) => return Err((ErrorType::VersionRemoved, false)),
        Ok(Some(_)) | Err(()) => return Err((ErrorType::InvalidVersion, false)),
    }
    match single(headers, &X_SIMULATE) {
        Ok(None) => Ok(()),
        _ if key != Key::Test => Err((ErrorType::Forbidden, true)),
        Err(()) => Err((ErrorType::BadRequest, true)),
        Ok(Some(asked)) => {
            let asked = ErrorType::ALL.iter().find(|kind| kind.as_str() == asked);
            Err((asked.copied().unwrap_or(ErrorType::BadRequest), true))
        }
    }
}

fn check_id(headers: &HeaderMap, answered: &HeaderMap, about: &str) {
    let ids: Vec<&HeaderValue> = answered.get_all(X_REQUEST_ID).iter().collect();
    let [id] = ids.as_slice() else {
        panic!("{ids:?} for {about}");
    };
    let given: Vec<&HeaderValue> = headers.get_all(X_REQUEST_ID).iter().collect();
    let is_fit = |id: &HeaderValue| {
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
        (1..=128).contains(&id.len()) && id.as_bytes().iter().all(fits)
    };
    match given.as_slice() {
        [one] if is_fit(one) => assert_eq!(id, one, "{about}"),
        _ => {
            let id = id.to_str().expect("text");
            let (start, count) = id.split_once('-').expect("a hyphen");
            let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(start.len() == 16 && is_hexadecimal(start), "{id}");
            assert!(!count.is_empty() && is_hexadecimal(count), "{id}");
        }
    }
}

fn check_error(
    error: ErrorType,
    headers: &HeaderMap,
    answered: &HeaderMap,
    body: &Bytes,
    about: &str,
) {
    let body = decoded(answered, body);
    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["type"], error.as_str(), "{about}");
    assert!(body["message"].is_string(), "{about}");
    assert_eq!(answered["content-type"], "application/json", "{about}");
    assert_eq!(answered["cache-control"], "no-store", "{about}");
    assert!(!answered.contains_key(ETAG), "{about}");
    // Plain, unless plain was refused.
    if answered.contains_key(CONTENT_ENCODING) {
        check_coding(headers, answered, usize::MAX, about);
        let (weights, _) = weights(headers);
        assert_eq!(weights.plain(), Some(0), "{about}");
    }
}

/// Checks that no response contains a key, unless the client sent it as its request id.
fn check_secrets(world: &World, headers: &HeaderMap, answered: &HeaderMap, body: &Bytes) {
    let body = decoded(answered, body);
    for (_, key) in &world.keys {
        let (_, secret) = key.split_once('.').expect("a key");
        let says = |bytes: &[u8]| {
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        };
        let is_own = headers
            .get_all(X_REQUEST_ID)
            .iter()
            .any(|id| says(id.as_bytes()))
            || headers
                .get_all(X_SIMULATE)
                .iter()
                .any(|asked| says(asked.as_bytes()));
        let is_said = says(&body) || answered.values().any(|value| says(value.as_bytes()));
        assert!(is_own || !is_said, "{answered:?}");
    }
}
