//! Requests that pages elsewhere make a browser send. Each browser of today says where a request comes from: in `Sec-Fetch-Site` over
//! HTTPS and to loopback, in `Origin` else. A request that says nothing is refused, too.

use http::HeaderMap;
use http::header::{HeaderName, ORIGIN};

use crate::browser::PageRequest;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns true if a page of this server sent the request.
pub(super) fn is_own(request: &PageRequest) -> bool {
    let site = one(&request.headers, &SEC_FETCH_SITE);
    let origin = one(&request.headers, &ORIGIN);
    let host = request.host.as_deref().unwrap_or_default();
    let is_host = |origin: &str| {
        let rest = origin
            .strip_prefix("https://")
            .or_else(|| origin.strip_prefix("http://"));
        rest.is_some_and(|rest| !host.is_empty() && rest.eq_ignore_ascii_case(host))
    };
    match (site, origin) {
        (Header::None, Header::One(origin)) => is_host(origin),
        // Pages send no referrer, so that their `Origin` is `null`.
        (Header::One("same-origin"), Header::One("null") | Header::None) => true,
        (Header::One("same-origin"), Header::One(origin)) => is_host(origin),
        _ => false,
    }
}

/// Values of a header that is sent once.
enum Header<'h> {
    None,
    One(&'h str),
    Several,
}

fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Header<'h> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Header::None,
        (Some(value), None) => value.to_str().map_or(Header::Several, Header::One),
        (Some(_), Some(_)) => Header::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own_with(headers: &[(&'static str, &'static str)]) -> bool {
        let mut request = PageRequest {
            host: Some("console.example:9090".to_owned()),
            ..PageRequest::get("/sign-in")
        };
        for (name, value) in headers {
            let value = http::HeaderValue::from_static(value);
            request.headers.append(*name, value);
        }
        is_own(&request)
    }

    #[test]
    fn only_requests_of_own_pages_are_own() {
        let site = "sec-fetch-site";
        for own in [
            &[(site, "same-origin")][..],
            &[(site, "same-origin"), ("origin", "null")],
            &[
                (site, "same-origin"),
                ("origin", "https://console.example:9090"),
            ],
            &[("origin", "https://console.example:9090")],
            &[("origin", "http://CONSOLE.example:9090")],
        ] {
            assert!(is_own_with(own), "{own:?}");
        }
        for forged in [
            &[][..],
            &[(site, "cross-site")],
            &[(site, "same-site")],
            &[(site, "none")],
            &[(site, "same-origin"), (site, "cross-site")],
            &[("origin", "null")],
            &[("origin", "https://evil.example")],
            &[("origin", "https://console.example")],
            &[("origin", "https://console.example:9090.evil.example")],
            &[
                (site, "cross-site"),
                ("origin", "https://console.example:9090"),
            ],
            &[(site, "same-origin"), ("origin", "https://evil.example")],
        ] {
            assert!(!is_own_with(forged), "{forged:?}");
        }
    }
}
