//! HTML of texts on request, which the sanitiser in `vitrine_ingest::html` makes safe (docs/contract/texts.md#html).
//!
//! Rendering takes up to 100 ms, so that it has a few threads of its own turn by turn: those that serve go on meanwhile.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use vitrine_ingest::html;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use crate::http::body::budget::Account;
use crate::http::body::fair_queue::FairQueue;
use crate::metrics::CacheState;
use crate::metrics::values::Counter;

/// The most that rendered HTML may take in memory, in bytes.
const CACHE_BYTES: u64 = 32 << 20;

/// Number of parts of the cache. The HTML of any text fits into one: quotes of 1 MiB become 6 MiB.
const CACHE_SHARDS: usize = 4;

/// Maximum number of requests of one key that wait for their turn to have texts rendered.
const MAX_WAITING_OF_KEY: usize = 1_024;

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
            Ok(Arc::new(Html::of(html::sanitised(&markdown))))
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
