//! Negotiation of the media type of errors: HTML or JSON (RFC 9110, section 12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

use super::encoding::thousandths;

/// Returns true if the client prefers HTML over JSON, as browsers do. `*/*` alone and a missing header mean JSON.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let ranges: Vec<MediaRange<'_>> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(MediaRange::parse)
        .collect();
    quality(&ranges, "text", "html") > quality(&ranges, "application", "json")
}

/// Member of an `Accept` list, without its parameters.
struct MediaRange<'v> {
    kind: &'v str,
    subtype: &'v str,
    /// Quality in thousandths.
    quality: u16,
}

impl<'v> MediaRange<'v> {
    /// Returns `None` for a malformed member, which is skipped.
    fn parse(member: &'v str) -> Option<Self> {
        let mut parts = member.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut quality = 1000;
        for parameter in parts {
            if let Some((name, value)) = parameter.split_once('=')
                && name.eq_ignore_ascii_case("q")
            {
                quality = thousandths(value.as_bytes())?;
            }
        }
        Some(Self {
            kind,
            subtype,
            quality,
        })
    }

    /// Returns the precedence of this range for a media type: the more specific, the higher.
    fn precedence(&self, kind: &str, subtype: &str) -> Option<u8> {
        let is_kind = self.kind.eq_ignore_ascii_case(kind);
        match () {
            () if is_kind && self.subtype.eq_ignore_ascii_case(subtype) => Some(2),
            () if is_kind && self.subtype == "*" => Some(1),
            () if self.kind == "*" && self.subtype == "*" => Some(0),
            () => None,
        }
    }
}

/// Returns the quality of a media type: that of the most specific range that matches, else 0.
fn quality(ranges: &[MediaRange<'_>], kind: &str, subtype: &str) -> u16 {
    ranges
        .iter()
        .filter_map(|range| Some((range.precedence(kind, subtype)?, range.quality)))
        .max()
        .map_or(0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_needs_a_higher_quality_than_json() {
        for (accept, is_html) in [
            // Firefox and Chromium, then Safari's and curl's.
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("text/html", true),
            ("TEXT/HTML; charset=utf-8", true),
            ("text/*, application/json;q=0.5", true),
            ("application/json;q=0, */*", true),
            ("*/*", false),
            ("", false),
            // axios, jQuery.
            ("application/json, text/plain, */*", false),
            ("application/json, text/javascript, */*; q=0.01", false),
            ("text/html, application/json", false),
            ("text/html;q=0.5, application/json;q=0.6", false),
            ("text/html;q=0, */*", false),
            ("text/html;q=2", false),
            ("text/html;q=", false),
            ("html", false),
            ("text/plain", false),
            ("*/html", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(prefers_html(&headers), is_html, "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
