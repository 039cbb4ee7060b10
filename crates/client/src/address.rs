//! Where a server of the contract is.

use std::net::IpAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use crate::builder::BuildError;

/// What stands as it is in a path and in a query (RFC 3986, 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Codes that no product has, since other operations have their paths (docs/contract/resources.md#codes).
const NO_CODES: [&str; 6] = ["", ".", "..", "categories", "countries", "changes"];

/// A value as a part of a path or a query.
pub(crate) fn encode(value: &str) -> String {
    utf8_percent_encode(value, ENCODED).to_string()
}

/// Whether this can be the code of a product as far as its path goes.
pub(crate) fn can_be_code(code: &str) -> bool {
    !NO_CODES.contains(&code)
}

/// The address of a server, with `/v2` and without a slash at the end; it may be given with `/v2` or without.
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
    match path.ends_with("/v2") {
        true => url.set_path(&path),
        false => url.set_path(&format!("{path}/v2")),
    }
    Ok(url)
}

/// Whether what is sent there doesn't leave this machine.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_with_the_version_or_without() {
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
            "",
        ] {
            let refused = base_url(base).unwrap_err().to_string();
            assert!(refused.contains("https://catalog.example"), "{refused}");
            assert!(!refused.contains("pass-word"), "{refused}");
        }
    }

    #[test]
    fn only_this_machine_is_this_machine() {
        for (base, expected) in [
            ("http://localhost", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]", true),
            ("http://127.0.0.1.example", false),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(
                is_this_machine(&base_url(base).unwrap()),
                expected,
                "{base}"
            );
        }
    }
}
