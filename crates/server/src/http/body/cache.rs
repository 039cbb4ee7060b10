//! Cache of bodies: compressed ones, and plain ones that are expensive to make.
//!
//! Keys are hashes of the content: an entry stays valid when the catalog changes elsewhere, and is never stale. Popular
//! entries stay. Plain bodies are cheap to make again, so they have a part of their own and never evict compressed
//! ones.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use super::Body;
use super::budget::Account;
use super::compress::{Effort, WORTH_COMPRESSING_BYTES, compress, gzip_thoroughly};
use super::fair_queue::FairQueue;
use crate::error_chain::ErrorChain;
use crate::http::request::encoding::Coding;
use crate::metrics::CacheState;
use crate::metrics::values::Counter;
use crate::panic_point::PanicPoint;
use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use vitrine_model::content_hash::ContentHash;

/// Estimated overhead of an entry, in bytes.
const OVERHEAD_BYTES: u64 = 160;

/// Minimum size of a shard, and so the maximum length of a cached body, in bytes.
const SHARD_BYTES: u64 = 8 << 20;

/// Maximum length of a body that is compressed on the request's thread, in bytes: that takes less time than a handover
/// to another thread.
pub(crate) const HERE_BYTES: usize = 16 << 10;

/// Key of a body: its content and coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    hash: ContentHash,
    pub(crate) coding: Coding,
}

impl Key {
    pub(crate) fn new(hash: ContentHash, coding: Coding) -> Self {
        Self { hash, coding }
    }
}

#[derive(Clone)]
struct ByLength;

impl Weighter<Key, CachedBody> for ByLength {
    fn weight(&self, _key: &Key, body: &CachedBody) -> u64 {
        body.bytes.len() as u64 + OVERHEAD_BYTES
    }
}

type Bodies = Cache<Key, CachedBody, ByLength>;

/// A cached body.
#[derive(Debug, Clone)]
struct CachedBody {
    bytes: Bytes,
    /// True if compressing again with more effort would make it smaller.
    could_be_smaller: bool,
}

impl From<Bytes> for CachedBody {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            could_be_smaller: false,
        }
    }
}

/// Cache of the bodies of one server, bounded in bytes.
pub(crate) struct BodyCache {
    compressed: Option<Arc<Bodies>>,
    plain: Option<Bodies>,
    compressed_stats: HitStats,
    plain_stats: HitStats,
    turns: Arc<FairQueue>,
    /// Number of requests refused because too many bodies were queued for compression.
    pub(crate) shed: Counter,
}

impl BodyCache {
    /// Creates a cache of up to `bytes`, a third of them for plain bodies; 0 caches nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            compressed: bodies(bytes - bytes / 3).map(Arc::new),
            plain: bodies(bytes / 3),
            compressed_stats: HitStats::default(),
            plain_stats: HitStats::default(),
            turns: FairQueue::new(cores),
            shed: Counter::default(),
        }
    }

    /// Returns true if a body of this account would have to be compressed while its queue is full. A body that is being
    /// compressed at this moment counts as well: its client retries.
    pub(crate) fn is_too_busy_for(&self, key: Key, account: &Account) -> bool {
        let is_cached = |cache: &Arc<Bodies>| cache.peek(&key).is_some();
        key.coding != Coding::Identity
            && self.turns.is_full_for(account)
            && !self.compressed.as_ref().is_some_and(is_cached)
    }

    /// Returns a compressed body. One that was compressed quickly is recompressed in the background.
    pub(crate) fn compressed(&self, key: &Key) -> Option<Bytes> {
        let cache = self.compressed.as_ref()?;
        let kept = self.compressed_stats.count(cache.get(key))?;
        if kept.could_be_smaller {
            self.recompress(cache, key, &kept.bytes);
        }
        Some(kept.bytes)
    }

    fn recompress(&self, cache: &Arc<Bodies>, key: &Key, bytes: &Bytes) {
        // It can wait for another request while all turns are taken.
        let Some(turn) = self.turns.try_take() else {
            return;
        };
        // Marks it, so that it isn't recompressed twice.
        cache.insert(*key, bytes.clone().into());
        let (cache, key, quick) = (Arc::clone(cache), *key, bytes.clone());
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            if let Some(smaller) = log_error(gzip_thoroughly(&quick))
                && smaller.len() < quick.len()
            {
                cache.insert(key, smaller.into());
            }
        });
    }

    /// Returns a plain body.
    pub(crate) fn plain(&self, key: &Key) -> Option<Bytes> {
        let kept = self.plain.as_ref()?.get(key);
        Some(self.plain_stats.count(kept)?.bytes)
    }

    /// Returns the states of both parts, by name.
    pub(crate) fn states(&self) -> [(&'static str, CacheState); 2] {
        [
            (
                "compressed",
                self.compressed_stats.state(self.compressed.as_deref()),
            ),
            ("plain", self.plain_stats.state(self.plain.as_ref())),
        ]
    }

    /// Inserts a plain body.
    pub(crate) fn insert_plain(&self, key: Key, body: Bytes) {
        if let Some(cache) = &self.plain {
            cache.insert(key, body.into());
        }
    }

    /// Compresses a short body on this thread; `None` if that fails.
    pub(crate) fn compress_here(&self, key: Key, plain: &[u8]) -> Option<Bytes> {
        let made = log_error(compress(key.coding, Effort::Thorough, plain))?;
        // A shorter body is compressed only for clients that refuse plain bodies; other clients must not find it here.
        if let Some(cache) = &self.compressed
            && plain.len() >= WORTH_COMPRESSING_BYTES
        {
            cache.insert(key, made.clone().into());
        }
        Some(made)
    }

    /// Returns the compressed body: from the cache, or from a background thread. Requests for a body that is being
    /// compressed wait for it; if that fails or its request is cancelled, one of them takes over. `None` if compressing
    /// fails, or the queue of this account is full.
    pub(crate) async fn compress(
        &self,
        key: Key,
        plain: &Body,
        account: &Account,
    ) -> Option<Bytes> {
        let Some(cache) = &self.compressed else {
            return self.make(key.coding, plain, account).await;
        };
        match cache.get_value_or_guard_async(&key).await {
            Ok(kept) => Some(kept.bytes),
            Err(guard) => {
                let made = self.make(key.coding, plain, account).await?;
                // Waiting requests get a body that is too long to be cached, too.
                let _ = guard.insert(CachedBody {
                    bytes: made.clone(),
                    could_be_smaller: key.coding == Coding::Gzip,
                });
                Some(made)
            }
        }
    }

    async fn make(&self, coding: Coding, plain: &Body, account: &Account) -> Option<Bytes> {
        let turn = self.turns.take(account).await?;
        let plain = plain.clone();
        let made = tokio::task::spawn_blocking(move || {
            // The turn ends with the work, even if its request was cancelled.
            let _turn = turn;
            PanicPoint::CompressBody.pass();
            plain.with_bytes(|plain| compress(coding, Effort::Quick, plain))
        });
        log_error(made.await.unwrap_or_else(|panic| Err(panic.into())))
    }
}

/// Hits and misses of one part of the cache.
#[derive(Debug, Default)]
struct HitStats {
    hits: Counter,
    misses: Counter,
}

impl HitStats {
    fn count(&self, found: Option<CachedBody>) -> Option<CachedBody> {
        match found {
            Some(_) => self.hits.increment(),
            None => self.misses.increment(),
        }
        found
    }

    fn state(&self, bodies: Option<&Bodies>) -> CacheState {
        CacheState {
            hits: self.hits.get(),
            misses: self.misses.get(),
            bytes: bodies.map_or(0, Cache::weight),
        }
    }
}

/// Logs a compression error. The client gets the plain body.
fn log_error(made: std::io::Result<Bytes>) -> Option<Bytes> {
    made.inspect_err(|error| {
        let error = ErrorChain(error);
        tracing::error!(%error, "a body can't be compressed");
    })
    .ok()
}

fn bodies(bytes: u64) -> Option<Bodies> {
    let shards = usize::try_from(bytes / SHARD_BYTES)
        .unwrap_or(1)
        .clamp(1, 64);
    // Rounded down to a power of two: rounded up, a shard would be too small for a long page.
    let shards = 1 << shards.ilog2();
    let options = OptionsBuilder::new()
        .shards(shards)
        .estimated_items_capacity(shards * 1024)
        .weight_capacity(bytes)
        .build()
        .ok()?;
    (bytes > 0).then(|| {
        Cache::with_options(
            options,
            ByLength,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        )
    })
}

impl fmt::Debug for BodyCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bodies: Option<&Bodies>| bodies.map_or(0, Cache::weight);
        out.debug_struct("BodyCache")
            .field("compressed_bytes", &bytes(self.compressed.as_deref()))
            .field("plain_bytes", &bytes(self.plain.as_ref()))
            .finish_non_exhaustive()
    }
}
