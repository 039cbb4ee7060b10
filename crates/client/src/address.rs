//! URLs of a server: the base URL and encoded parts.

use std::net::IpAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use crate::builder::BuildError;

/// Characters to encode in a path or query: all but the unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Codes that no product has: they are paths of other operations, or what programs write where a variable is empty
/// (docs/contract/resources.md#codes).
const RESERVED_CODES: [&str; 12] = [
    "",
    ".",
    "..",
    "categories",
    "countries",
    "changes",
    "undefined",
    "null",
    "None",
    "nil",
    "NaN",
    "[object Object]",
];

/// Encodes a value as part of a path or query.
pub(crate) fn encode(value: &str) -> String {
    utf8_percent_encode(value, ENCODED).to_string()
}

/// Returns true if the path of a product with this code leads to no other operation.
pub(crate) fn can_be_code(code: &str) -> bool {
    !RESERVED_CODES.contains(&code)
}

/// Parses a base URL, given with or without `/v2`; returns it with `/v2` and without a trailing slash.
pub(crate) fn base_url(base: &str) -> Result<Url, BuildError> {
    let wrong = |why: &str| BuildError::Address(why.to_owned());
    let mut url = Url::parse(base.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("it isn't one of http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "it has a user or a password in it; the key is a matter of its own",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it has a query or a fragment"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if let Some((base, _)) = path.split_once("/v2/") {
        url.set_path(base);
        let base = url.as_str().trim_end_matches('/');
        return Err(wrong(&format!("use the part before `/v2`: {base}")));
    }
    match path.ends_with("/v2") {
        true => url.set_path(&path),
        false => url.set_path(&format!("{path}/v2")),
    }
    Ok(url)
}

/// Returns true if requests to this URL stay on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_with_or_without_v2_are_accepted() {
        for (base, expected) in [
            ("https://catalog.example", "https://catalog.example/v2"),
            ("https://catalog.example/", "https://catalog.example/v2"),
            ("https://catalog.example/v2", "https://catalog.example/v2"),
            (
                " https://catalog.example/v2/ ",
                "https://catalog.example/v2",
            ),
            ("https://a.example/b/v2", "https://a.example/b/v2"),
            ("https://a.example:8443/b//", "https://a.example:8443/b/v2"),
            ("https://a.example/xv2", "https://a.example/xv2/v2"),
            ("http://[::1]:8080", "http://[::1]:8080/v2"),
        ] {
            assert_eq!(base_url(base).unwrap().as_str(), expected);
        }
        for base in [
            "catalog.example",
            "ftp://catalog.example",
            "https://user:pass-word@catalog.example",
            "https://catalog.example/?limit=5",
            "https://catalog.example/#a",
            "https://catalog.example/v2/product/",
            "",
        ] {
            let refused = base_url(base).unwrap_err().to_string();
            assert!(refused.contains("https://catalog.example"), "{refused}");
            assert!(!refused.contains("pass-word"), "{refused}");
        }
    }

    #[test]
    fn only_localhost_and_loopback_are_loopback() {
        for (base, expected) in [
            ("http://localhost", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]", true),
            ("http://127.0.0.1.example", false),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&base_url(base).unwrap()), expected, "{base}");
        }
    }
}
