//! Markdown to HTML that is safe to put into any page (docs/contract/texts.md#html).
//!
//! CommonMark with tables and strikethrough; raw HTML is left out; what remains goes through a
//! sanitiser with a short list of what is allowed. HTML is never stored: its bytes may change with
//! a release, its safety may not.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use ammonia::{Builder, UrlRelative};
use comrak::Arena;
use comrak::arena_tree::NodeEdge;
use comrak::nodes::AstNode;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use vitrine_model::content::TextDigest;

use crate::metrics::{CacheState, Counter};

/// The most that rendered HTML may take in memory, in bytes.
const CACHE_BYTES: u64 = 32 << 20;

/// The deepest nesting that is rendered. Sanitising takes time by its square.
const MAX_NESTING: usize = 100;

/// The most blank lines in a row. Each costs a step for every list around it.
const MAX_BLANK_LINES: usize = 100;

/// Length of HTML that is always allowed, in bytes.
const FREE_HTML_BYTES: usize = 64 << 10;

/// Maximum growth of HTML beyond that, as a multiple of its text. It is mostly less than twice as long; what comes to more
/// is nearly all elements, which take far more time to sanitise than words, or a short table of a million cells.
const MAX_HTML_GROWTH: usize = 3;

/// The HTML of a text, with its hash.
#[derive(Debug)]
pub struct Html {
    text: Box<str>,
    hash: [u8; 32],
}

impl Html {
    fn of(text: String) -> Self {
        Self {
            hash: Sha256::digest(&text).into(),
            text: text.into(),
        }
    }

    /// The HTML.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its SHA-256: texts that differ may come to the same HTML.
    #[must_use]
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }
}

/// Renders Markdown, and keeps what it rendered last.
pub struct HtmlRenderer {
    cleaner: Builder<'static>,
    cache: Cache<TextDigest, Arc<Html>, ByLength>,
    asked: Counter,
    missed: Counter,
}

#[derive(Clone)]
struct ByLength;

impl Weighter<TextDigest, Arc<Html>> for ByLength {
    fn weight(&self, _digest: &TextDigest, html: &Arc<Html>) -> u64 {
        // An empty text takes its place too.
        html.text.len() as u64 + 128
    }
}

impl HtmlRenderer {
    /// A renderer with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cleaner: cleaner(),
            cache: Cache::with_weighter(4_096, CACHE_BYTES, ByLength),
            asked: Counter::default(),
            missed: Counter::default(),
        }
    }

    /// The HTML of the text of this digest, whose Markdown `unpack` gives.
    ///
    /// # Errors
    ///
    /// Those of `unpack`.
    pub fn render<E>(
        &self,
        digest: TextDigest,
        unpack: impl FnOnce() -> Result<String, E>,
    ) -> Result<Arc<Html>, E> {
        self.asked.increment();
        // Requests for the same text meanwhile wait for this rendering.
        let render = || {
            self.missed.increment();
            Ok(Arc::new(Html::of(self.sanitised(&unpack()?))))
        };
        self.cache.get_or_insert_with(&digest, render)
    }

    /// Returns the state of the cache.
    #[must_use]
    pub fn cache_state(&self) -> CacheState {
        // In this order: a request in between must not make hits negative.
        let misses = self.missed.get();
        CacheState {
            hits: self.asked.get().saturating_sub(misses),
            misses,
            bytes: self.cache.weight(),
        }
    }

    /// The HTML of some Markdown. Where that would nest or grow beyond all reason, the Markdown itself,
    /// preformatted: the time that a text takes must be in proportion to its length.
    #[must_use]
    pub fn sanitised(&self, markdown: &str) -> String {
        let mut options = comrak::Options::default();
        options.extension.table = true;
        options.extension.strikethrough = true;
        let arena = Arena::new();
        let mut html = Bounded {
            most: FREE_HTML_BYTES + MAX_HTML_GROWTH * markdown.len(),
            text: String::new(),
        };
        let is_reasonable = blank_lines(markdown) <= MAX_BLANK_LINES && {
            let document = comrak::parse_document(&arena, markdown, &options);
            depth(document) <= MAX_NESTING
                && comrak::format_html(document, &options, &mut html).is_ok()
        };
        if !is_reasonable {
            let mut text = String::from("<pre><code>");
            // Writing to a string can't fail.
            let _ = comrak::html::escape(&mut text, markdown);
            return text + "</code></pre>\n";
        }
        self.cleaner.clean(&html.text).to_string()
    }
}

/// The most blank lines in a row.
fn blank_lines(markdown: &str) -> usize {
    let mut most = 0;
    let mut row = 0;
    let lines = markdown.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split('\r')
    });
    for line in lines {
        row = if line.trim_ascii().is_empty() {
            row + 1
        } else {
            0
        };
        most = most.max(row);
    }
    most
}

/// Returns the depth of a document.
fn depth<'a>(document: &'a AstNode<'a>) -> usize {
    let mut level = 0_usize;
    let mut deepest = 0;
    for edge in document.traverse() {
        match edge {
            NodeEdge::Start(_) => level += 1,
            NodeEdge::End(_) => level -= 1,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Takes HTML up to a limit.
struct Bounded {
    most: usize,
    text: String,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// Only what Markdown makes; only addresses that lead outside and can't act.
fn cleaner() -> Builder<'static> {
    let tags = HashSet::from([
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "img",
        "li",
        "ol",
        "p",
        "pre",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]);
    let mut cleaner = Builder::empty();
    cleaner
        .tags(tags)
        .clean_content_tags(HashSet::from(["script", "style"]))
        .add_tag_attributes("a", ["href", "title"])
        .add_tag_attributes("img", ["src", "alt", "title"])
        .add_tag_attributes("ol", ["start"])
        .add_tag_attributes("td", ["align"])
        .add_tag_attributes("th", ["align"])
        .url_schemes(HashSet::from(["http", "https", "mailto", "tel"]))
        // A relative address would lead into the partner's own site.
        .url_relative(UrlRelative::Deny)
        .attribute_filter(|_element, attribute, value| match attribute {
            "href" | "src" if !is_absolute(value) => None,
            _ => Some(value.into()),
        })
        .link_rel(Some("nofollow noopener noreferrer"));
    cleaner
}

/// Returns true if a URL is absolute in browsers too: on a page of the same scheme, they take `https:a.example` for a
/// relative one.
fn is_absolute(address: &str) -> bool {
    ["http://", "https://", "mailto:", "tel:"]
        .iter()
        .any(|start| {
            let head = address.as_bytes().get(..start.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
        })
}

impl fmt::Debug for HtmlRenderer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HtmlRenderer").finish_non_exhaustive()
    }
}

impl Default for HtmlRenderer {
    fn default() -> Self {
        Self::new()
    }
}
