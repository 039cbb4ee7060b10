//! CORS (Fetch Standard, "CORS protocol"; docs/contract/endpoints.md#origins): any origin may read what needs no key;
//! only origins that the operator names may read what needs one.

use std::fmt;
use std::str::FromStr;

use arc_swap::ArcSwap;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};

use crate::http::response::{Response, vary_by};
use crate::http::routes::{Operation, Route};

/// Response headers that pages may read beside those of the safelist.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Link, RateLimit, RateLimit-Policy, Retry-After, X-Api-Version, X-Request-Id",
);
/// Request headers that pages may send. `Content-Type` is among them because libraries send it with every request.
const ACCEPTED: HeaderValue = HeaderValue::from_static(
    "Content-Type, If-None-Match, Traceparent, Tracestate, X-Api-Key, X-Api-Version, X-Request-Id, X-Simulate",
);
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");
/// Lifetime of a preflight's answer in browsers, in seconds: two hours, the longest that Chromium allows.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// An origin as browsers write it: scheme, host and, unless it is the scheme's own, port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// Explains why a text is not an origin that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidOrigin(&'static str);

impl fmt::Display for InvalidOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for InvalidOrigin {}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        if text == "*" {
            return Err(InvalidOrigin(
                "`*` would let every page use a key that it got hold of; name each origin",
            ));
        }
        let invalid = InvalidOrigin("expected SCHEME://HOST[:PORT], such as https://shop.example");
        let Some((_, rest)) = text.split_once("://") else {
            return Err(invalid);
        };
        if rest.contains(['/', '?', '#']) {
            return Err(InvalidOrigin(
                "an origin ends after its host and port: https://shop.example",
            ));
        }
        let uri: Uri = text.parse().map_err(|_| invalid)?;
        let (scheme, host) = (uri.scheme_str(), uri.host());
        let (Some(scheme), Some(host @ [_, ..])) = (scheme, host.map(str::as_bytes)) else {
            return Err(invalid);
        };
        let is_userless = uri
            .authority()
            .is_some_and(|all| !all.as_str().contains('@'));
        let in_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(byte);
        if !is_userless || !host.iter().all(in_host) {
            return Err(invalid);
        }
        // `Uri` takes a port that is too large for none.
        let port = match rest.get(host.len()..).unwrap_or_default() {
            "" => None,
            port => match port.strip_prefix(':').map(str::parse::<u16>) {
                Some(Ok(port)) => Some(port),
                _ => return Err(invalid),
            },
        };
        let usual = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let bare = format!("{scheme}://{}", String::from_utf8_lossy(host)).to_ascii_lowercase();
        Ok(Self(match port {
            Some(port) if Some(port) != usual => format!("{bare}:{port}"),
            _ => bare,
        }))
    }
}

/// Origins whose pages may read what needs a key; none by default.
#[derive(Debug, Default)]
pub struct Cors(ArcSwap<Vec<Origin>>);

impl Cors {
    /// Allows exactly these origins from now on.
    pub fn allow(&self, origins: Vec<Origin>) {
        self.0.store(origins.into());
    }

    /// Returns true if a request with another method than GET or HEAD is a preflight to be answered.
    pub(crate) fn permits_preflight(&self, request: &Parts, route: Option<&Route>) -> bool {
        let headers = &request.headers;
        let is_preflight = request.method == Method::OPTIONS
            && headers.contains_key(ORIGIN)
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        is_preflight && (is_public(route) || self.allowed(headers).is_some())
    }

    /// Adds the headers that let pages read a response.
    pub(crate) fn describe(
        &self,
        request: &HeaderMap,
        route: Option<&Route>,
        headers: &mut HeaderMap,
    ) {
        if is_public(route) {
            const ANY: HeaderValue = HeaderValue::from_static("*");
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
            return;
        }
        if self.0.load().is_empty() {
            return;
        }
        vary_by(headers, "Origin");
        if let Some(origin) = self.allowed(request) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }

    /// Returns the origin of a request if the operator named it.
    fn allowed<'r>(&self, request: &'r HeaderMap) -> Option<&'r HeaderValue> {
        let mut origins = request.get_all(ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else {
            return None;
        };
        let allowed = self.0.load();
        let is_allowed = allowed.iter().any(|Origin(allowed)| origin == allowed);
        is_allowed.then_some(origin)
    }
}

/// Returns the response to a preflight, without the headers of [`Cors::describe`].
pub(crate) fn preflight() -> Response {
    let mut answer = Response::default();
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ACCEPTED);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    answer
}

/// Returns true if a route needs no key. A path without a route doesn't count: its errors are for the named origins.
fn is_public(route: Option<&Route>) -> bool {
    match route.map(|route| route.operation) {
        Some(
            Operation::GetText | Operation::GetOpenapi | Operation::Docs | Operation::SearchDocs,
        ) => true,
        Some(Operation::Keyed(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_normalised_and_malformed_ones_refused() {
        for (text, expected) in [
            ("https://shop.example", "https://shop.example"),
            ("HTTPS://Shop.Example:443", "https://shop.example"),
            ("http://localhost:80", "http://localhost"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("https://shop.example:80", "https://shop.example:80"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("capacitor://localhost", "capacitor://localhost"),
            ("https://xn--caf-dma.example", "https://xn--caf-dma.example"),
        ] {
            assert_eq!(text.parse(), Ok(Origin(expected.to_owned())), "{text}");
        }
        for text in [
            "",
            "*",
            "null",
            "shop.example",
            "https://",
            "https://*.shop.example",
            "https://shop.example/",
            "https://shop.example/path",
            "https://shop.example?x",
            "https://shop.example#x",
            "https://user@shop.example",
            "https://shop.example:",
            "https://shop.example:99999",
            "https://caf\u{e9}.example",
            "https://shop example",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
