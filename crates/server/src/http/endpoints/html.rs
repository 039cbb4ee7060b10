//! Markdown to HTML that is safe to put into any page (docs/contract/texts.md#html).
//!
//! CommonMark with tables and strikethrough; raw HTML is left out; what remains goes through a
//! sanitiser with a short list of what is allowed. HTML is never stored: its bytes may change with
//! a release, its safety may not.
//!
//! Rendering takes up to 100 ms, so that it has a few threads of its own turn by turn: those that serve go on meanwhile.

mod cost;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use ammonia::{Builder, UrlRelative};
use comrak::Arena;
use comrak::arena_tree::NodeEdge;
use comrak::nodes::AstNode;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use crate::http::body::budget::Account;
use crate::http::body::fair_queue::FairQueue;
use crate::metrics::{CacheState, Counter};

/// The most that rendered HTML may take in memory, in bytes.
const CACHE_BYTES: u64 = 32 << 20;

/// Number of parts of the cache. The HTML of any text fits into one: quotes of 1 MiB become 6 MiB.
const CACHE_SHARDS: usize = 4;

/// Maximum number of requests of one key that wait for their turn to have texts rendered.
const MAX_WAITING_OF_KEY: usize = 1_024;

/// Maximum cost of parsing Markdown, in marks: 100 ms for 1 MiB, with sanitising.
const MAX_PARSING_COST: usize = 32 << 10;

/// Maximum number of bytes that are searched to write HTML again: 20 ms.
const MAX_WRITING_COST: usize = 256 << 20;

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

/// A text to render.
pub(crate) type Unrendered = (TextDigest, PackedMarkdown);

/// Reason why a text has no HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenderError {
    /// Too much waits to be rendered for this key.
    Busy,
    /// Its Markdown is damaged.
    Damaged,
}

/// Texts that were rendered for a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rendered(Vec<(TextDigest, Result<Arc<Html>, RenderError>)>);

impl Rendered {
    /// Returns what was rendered of a text; none if it wasn't asked for.
    pub(crate) fn get(&self, digest: &TextDigest) -> Option<Result<Arc<Html>, RenderError>> {
        let found = self.0.iter().find(|(of, _)| of == digest);
        found.map(|(_, html)| html.clone())
    }

    /// Adds texts.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Renders Markdown, and keeps what it rendered last.
pub struct HtmlRenderer {
    cleaner: Builder<'static>,
    cache: HtmlCache,
    asked: Counter,
    missed: Counter,
    turns: Arc<FairQueue>,
    /// Number of requests refused because too much waited to be rendered.
    pub(crate) shed: Counter,
}

type HtmlCache = Cache<TextDigest, Arc<Html>, ByLength>;

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
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            cleaner: cleaner(),
            cache: cache(),
            asked: Counter::default(),
            missed: Counter::default(),
            turns: FairQueue::with_limit((cores / 2).max(1), Some(MAX_WAITING_OF_KEY)),
            shed: Counter::default(),
        }
    }

    /// Returns the HTML of a text if it was rendered lately.
    pub(crate) fn cached(&self, digest: &TextDigest) -> Option<Arc<Html>> {
        self.asked.increment();
        self.cache.get(digest)
    }

    /// Renders texts on another thread, once it is this account's turn.
    pub(crate) async fn render(
        self: &Arc<Self>,
        texts: Vec<Unrendered>,
        account: &Account,
    ) -> Rendered {
        let busy = texts
            .iter()
            .map(|(digest, _)| (*digest, Err(RenderError::Busy)));
        let busy = Rendered(busy.collect());
        let Some(turn) = self.turns.take(account).await else {
            self.shed.increment();
            return busy;
        };
        let renderer = Arc::clone(self);
        let render = move || {
            // The turn ends with the work, even if its request was cancelled.
            let _turn = turn;
            let texts = texts.into_iter();
            let rendered =
                texts.map(|(digest, markdown)| (digest, renderer.kept(digest, &markdown)));
            Rendered(rendered.collect())
        };
        match spawn_blocking(render).await {
            Ok(rendered) => rendered,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The server ends.
                Err(_) => busy,
            },
        }
    }

    /// Renders a text unless it is cached. Other threads with the same text wait for this one.
    fn kept(
        &self,
        digest: TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<Arc<Html>, RenderError> {
        self.cache.get_or_insert_with(&digest, || {
            self.missed.increment();
            let markdown = markdown.unpack_as(&digest);
            let markdown = markdown.map_err(|_| RenderError::Damaged)?;
            Ok(Arc::new(Html::of(self.sanitised(&markdown))))
        })
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

    /// The HTML of some Markdown. If that would nest, grow or cost beyond all reason, the Markdown itself, preformatted: no text
    /// may take more than 100 ms.
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
        let is_parsed =
            blank_lines(markdown) <= MAX_BLANK_LINES && cost::parsing(markdown) <= MAX_PARSING_COST;
        let is_reasonable = is_parsed && {
            let document = comrak::parse_document(&arena, markdown, &options);
            depth(document) <= MAX_NESTING
                && comrak::format_html(document, &options, &mut html).is_ok()
                && cost::writing(&html.text) <= MAX_WRITING_COST
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

/// Returns an empty cache.
fn cache() -> HtmlCache {
    let options = OptionsBuilder::new()
        .shards(CACHE_SHARDS)
        .estimated_items_capacity(4_096)
        .weight_capacity(CACHE_BYTES)
        .build();
    match options {
        Ok(options) => Cache::with_options(
            options,
            ByLength,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ),
        // All options that it needs are there.
        Err(_) => Cache::with_weighter(4_096, CACHE_BYTES, ByLength),
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
