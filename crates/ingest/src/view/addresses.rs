//! Public URLs of texts, inserted into a canonical document by copying.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use vitrine_model::content::TextDigest;

/// Start of a value that names one of the service's texts: a quote and [`OWN_TEXT_PREFIX`](super::OWN_TEXT_PREFIX).
const MARKER: &str = "\"texts/";

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER));

/// Path of texts below the public URL.
const TEXTS: &str = TextDigest::PATH;

/// Public URLs of the service's texts, made from configuration, never from a request's `Host`.
#[derive(Debug, Clone)]
pub struct TextAddresses {
    /// Replacement of [`OWN_TEXT_PREFIX`](super::OWN_TEXT_PREFIX), escaped for a JSON string.
    prefix: String,
}

impl TextAddresses {
    /// Returns the addresses of a service at `public_url`.
    #[must_use]
    pub fn new(public_url: &str) -> Self {
        Self {
            prefix: format!("{}{TEXTS}", public_url.trim_end_matches('/')),
        }
    }

    /// Returns the public URL of the service.
    #[must_use]
    pub fn public_url(&self) -> &str {
        self.prefix.strip_suffix(TEXTS).unwrap_or_default()
    }

    /// Returns the common prefix of these URLs.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the digest in a URL, if it is one of the service's texts.
    #[must_use]
    pub fn digest(&self, url: &str) -> Option<TextDigest> {
        let name = url.strip_prefix(&self.prefix)?;
        name.strip_suffix(".md")?.parse().ok()
    }

    /// Returns the digests of the service's texts in a canonical document, except those taken down.
    pub fn own_texts<'d>(
        document: &'d str,
        content: Option<&Range<usize>>,
        taken_down: &'d [TextDigest],
    ) -> impl Iterator<Item = TextDigest> + 'd {
        let content = content.map_or("", |content| &document[content.clone()]);
        FINDER
            .find_iter(content.as_bytes())
            .filter_map(|at| {
                let value = &content[at + MARKER.len()..];
                let (name, _) = value.split_once('"').unwrap_or((value, ""));
                name.strip_suffix(".md")?.parse().ok()
            })
            .filter(|digest| !taken_down.contains(digest))
    }

    /// Returns a canonical document with public URLs, and the range of its content resources. A text that was taken down
    /// becomes null.
    ///
    /// Copies without parsing, into `published`, and only a document that names texts of the service.
    pub fn publish<'d>(
        &self,
        document: &'d str,
        content: Option<Range<usize>>,
        taken_down: &[TextDigest],
        published: &'d mut Vec<u8>,
    ) -> (&'d [u8], Option<Range<usize>>) {
        let names_own = |range: &Range<usize>| {
            let content = &document.as_bytes()[range.clone()];
            FINDER.find(content).is_some()
        };
        let Some(content) = content.clone().filter(names_own) else {
            return (document.as_bytes(), content);
        };
        let out = published;
        out.clear();
        let (head, tail) = (&document[..content.start], &document[content.end..]);
        let mut rest = &document[content];
        out.extend_from_slice(head.as_bytes());
        let start = out.len();
        while let Some(at) = FINDER.find(rest.as_bytes()) {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let value = &rest[at + MARKER.len()..];
            // `DIGEST.md"`: 64 digits, up to the closing quote.
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
        (out, Some(start..end))
    }
}
