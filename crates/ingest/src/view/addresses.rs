//! The public addresses of texts, put into a canonical text by copying around them.

use std::ops::Range;

use memchr::memmem;
use vitrine_model::content::TextDigest;

use super::OWN_TEXT_PREFIX;

/// The path below the public address where texts are.
const TEXTS: &str = "/v2/texts/";

/// The public addresses of the texts that the service holds, made from configuration and never from
/// a request's `Host`.
#[derive(Debug, Clone)]
pub struct TextAddresses {
    /// Replacement of [`OWN_TEXT_PREFIX`], escaped as it stands within a JSON string.
    prefix: String,
}

impl TextAddresses {
    /// The addresses of a service whose clients find it at `public_url`.
    #[must_use]
    pub fn new(public_url: &str) -> Self {
        Self {
            prefix: format!("{}{TEXTS}", public_url.trim_end_matches('/')),
        }
    }

    /// The address at which clients find the service.
    #[must_use]
    pub fn public_url(&self) -> &str {
        self.prefix.strip_suffix(TEXTS).unwrap_or_default()
    }

    /// Returns the prefix of all these addresses.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The digest of the text that an address names, if it is one of these.
    #[must_use]
    pub fn digest(&self, url: &str) -> Option<TextDigest> {
        let name = url.strip_prefix(&self.prefix)?;
        name.strip_suffix(".md")?.parse().ok()
    }

    /// The digests of the texts that a canonical text names as held here, but for those that were taken down.
    pub fn own_texts<'d>(
        document: &'d str,
        content: Option<&Range<usize>>,
        taken_down: &'d [TextDigest],
    ) -> impl Iterator<Item = TextDigest> + 'd {
        let content = content.map_or("", |content| &document[content.clone()]);
        content
            .split('"')
            .filter_map(|name| {
                let name = name.strip_prefix(OWN_TEXT_PREFIX)?;
                name.strip_suffix(".md")?.parse().ok()
            })
            .filter(|digest| !taken_down.contains(digest))
    }

    /// Puts the public addresses into a canonical text. A text that was taken down becomes null.
    ///
    /// Copies; parses nothing. Returns where the content resources lie afterwards.
    pub fn publish(
        &self,
        document: &str,
        content: Option<Range<usize>>,
        taken_down: &[TextDigest],
        out: &mut Vec<u8>,
    ) -> Option<Range<usize>> {
        let Some(content) = content else {
            out.extend_from_slice(document.as_bytes());
            return None;
        };
        let marker = format!("\"{OWN_TEXT_PREFIX}");
        let (head, tail) = (&document[..content.start], &document[content.end..]);
        let mut rest = &document[content];
        out.extend_from_slice(head.as_bytes());
        let start = out.len();
        while let Some(at) = memmem::find(rest.as_bytes(), marker.as_bytes()) {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let value = &rest[at + marker.len()..];
            // `DIGEST.md"`: 64 digits, then as far as the closing quote.
            let (name, after) = value.split_once('"').unwrap_or((value, ""));
            let digest = name
                .strip_suffix(".md")
                .and_then(|digest| digest.parse().ok());
            if digest.is_some_and(|digest| taken_down.contains(&digest)) {
                out.extend_from_slice(b"null");
            } else {
                out.push(b'"');
                out.extend_from_slice(self.prefix.as_bytes());
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            rest = after;
        }
        out.extend_from_slice(rest.as_bytes());
        let end = out.len();
        out.extend_from_slice(tail.as_bytes());
        Some(start..end)
    }
}
