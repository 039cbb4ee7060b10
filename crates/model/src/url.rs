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
        if text.len() > Self::MAX_LENGTH_BYTES
            || text.chars().any(|c| c.is_whitespace() || c.is_control())
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

impl fmt::Display for WebUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
