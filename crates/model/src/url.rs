//! Web addresses outside the catalog.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// An absolute `http` or `https` URL, kept byte for byte as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebUrl(Box<str>);

impl WebUrl {
    /// Maximum length of a URL, in bytes: browsers and proxies reliably carry that much.
    pub const MAX_LENGTH_BYTES: usize = 2_048;

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new(
            "url",
            "an absolute http or https URL without blanks, at most 2048 bytes, such as `https://shop.example/help`",
        );
        if text.len() > Self::MAX_LENGTH_BYTES {
            return Err(invalid);
        }
        if is_plain(text) {
            return Ok(Self(text.into()));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control())
            // The parser below accepts these; they would break out of an attribute in HTML.
            || text.contains(['"', '<', '>', '\\', '`'])
        {
            return Err(invalid);
        }
        let url = ::url::Url::parse(text).map_err(|_| invalid)?;
        let has_slashes = text
            .split_once(':')
            .is_some_and(|(_, rest)| rest.starts_with("//"));
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !has_slashes {
            return Err(invalid);
        }
        Ok(Self(text.into()))
    }
}

/// Returns true if a URL is valid at a glance, as those of nearly all products are: a host of plain labels, then characters that
/// need no escape. Parsing it would take a load an eighth of its time.
fn is_plain(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let is_label = |label: &str| {
        let first = label.bytes().next();
        // `xn--…` has to be decoded.
        first.is_some_and(|byte| byte.is_ascii_lowercase())
            && !label.starts_with("xn--")
            && (label.bytes())
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    host.split('.').all(is_label) && path.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// True for bytes that need no escape in a path, a query or a fragment.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"/-._~%?#&=+,:;@!$'()*";
    let mut at = 0;
    while at < others.len() {
        plain[others[at] as usize] = true;
        at += 1;
    }
    plain
};

impl fmt::Display for WebUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_urls_are_valid() {
        let pieces = [
            "https://", "http://", "a", "b.c", "xn--a", "shop", ".", "-", "7", "%", "%2", "/", "?",
            "#", ":", "@", " ", "é", "[", "&=",
        ];
        let mut plain = 0;
        // All texts of four pieces, behind a scheme or not.
        for number in 0..pieces.len().pow(4) {
            let piece = |place: u32| pieces[number / pieces.len().pow(place) % pieces.len()];
            let text = format!("{}{}{}{}", piece(0), piece(1), piece(2), piece(3));
            if is_plain(&text) {
                plain += 1;
                let url = ::url::Url::parse(&text).expect("a URL");
                assert!(url.has_host() && text.contains("://"), "{text}");
            }
        }
        assert!(plain > 500, "{plain}");
    }

    #[test]
    fn urls_other_than_absolute_http_or_https_are_refused() {
        for url in [
            "https://shop.example/help?a=b#c",
            "http://shop.example",
            "HTTPS://Shop.example/%20",
        ] {
            assert_eq!(url.parse::<WebUrl>().unwrap().as_str(), url);
        }
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "//shop.example",
            "/help",
            "ftp://shop.example",
            "https:shop.example",
            "https://",
            "https://shop.example/a b",
            "java\nscript:alert(1)",
            "https://shop.example/\"onload=",
            "mailto:a@shop.example",
            "",
        ] {
            assert!(url.parse::<WebUrl>().is_err(), "{url}");
        }
    }
}
