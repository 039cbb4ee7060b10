//! Bodies that are worth keeping: compressed ones, and plain ones that took some making.
//!
//! A body is known by its tag, which is a hash of its content: so what is kept outlives a change of the
//! catalog that leaves it as it was, and nothing kept is ever out of date. What is asked for most
//! stays; plain bodies, cheap to make again, never push out compressed ones.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use super::Body;
use super::budget::Account;
use super::compress::{Effort, WORTH_COMPRESSING_BYTES, compress, gzip_thoroughly};
use super::fair_queue::FairQueue;
use crate::error_chain::ErrorChain;
use crate::http::request::encoding::Coding;
use crate::metrics::{CacheState, Counter};
use crate::panic_point::PanicPoint;
use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use vitrine_model::content_hash::ContentHash;

/// What keeping a body takes beside its bytes, about.
const OVERHEAD_BYTES: u64 = 160;

/// The least room of a part of a cache: the longest body that can be kept.
const SHARD_BYTES: u64 = 8 << 20;

/// Bodies up to this length are compressed where they are, in less time than it takes to hand
/// them to another thread and wait for it.
pub(crate) const HERE_BYTES: usize = 16 << 10;

/// Names a body: its content, and how it is encoded.
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

impl Weighter<Key, Kept> for ByLength {
    fn weight(&self, _key: &Key, body: &Kept) -> u64 {
        body.bytes.len() as u64 + OVERHEAD_BYTES
    }
}

type Bodies = Cache<Key, Kept, ByLength>;

/// A body that is kept.
#[derive(Debug, Clone)]
struct Kept {
    bytes: Bytes,
    /// Whether it could be smaller, were it given more time.
    could_be_smaller: bool,
}

impl From<Bytes> for Kept {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            could_be_smaller: false,
        }
    }
}

/// The kept bodies of one server.
pub(crate) struct BodyCache {
    compressed: Option<Arc<Bodies>>,
    plain: Option<Bodies>,
    compressed_asked: Asked,
    plain_asked: Asked,
    turns: Arc<FairQueue>,
    /// Requests refused because too many bodies waited to be compressed.
    pub(crate) shed: Counter,
}

impl BodyCache {
    /// A cache that takes up to `bytes` of memory, a third of it for plain bodies; 0 keeps nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            compressed: bodies(bytes - bytes / 3).map(Arc::new),
            plain: bodies(bytes / 3),
            compressed_asked: Asked::default(),
            plain_asked: Asked::default(),
            turns: FairQueue::new(cores),
            shed: Counter::default(),
        }
    }

    /// Returns true if a body of this account would find no place to wait for its turn to be compressed. One that is just being
    /// compressed may be found to be so; its client asks again.
    pub(crate) fn is_too_busy_for(&self, key: Key, account: &Account) -> bool {
        let is_cached = |cache: &Arc<Bodies>| cache.peek(&key).is_some();
        key.coding != Coding::Identity
            && self.turns.is_full_for(account)
            && !self.compressed.as_ref().is_some_and(is_cached)
    }

    /// A body that is kept encoded. One that was made quickly, and is asked for again, is made smaller meanwhile.
    pub(crate) fn compressed(&self, key: &Key) -> Option<Bytes> {
        let cache = self.compressed.as_ref()?;
        let kept = self.compressed_asked.count(cache.get(key))?;
        if kept.could_be_smaller {
            self.make_smaller(cache, key, &kept.bytes);
        }
        Some(kept.bytes)
    }

    fn make_smaller(&self, cache: &Arc<Bodies>, key: &Key, bytes: &Bytes) {
        // While there is other work, it can wait until it is asked for once more.
        let Some(turn) = self.turns.try_take() else {
            return;
        };
        // From here on it isn't to be begun again.
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

    /// A body that is kept plain.
    pub(crate) fn plain(&self, key: &Key) -> Option<Bytes> {
        let kept = self.plain.as_ref()?.get(key);
        Some(self.plain_asked.count(kept)?.bytes)
    }

    /// How the two parts do, by name.
    pub(crate) fn states(&self) -> [(&'static str, CacheState); 2] {
        [
            (
                "compressed",
                self.compressed_asked.state(self.compressed.as_deref()),
            ),
            ("plain", self.plain_asked.state(self.plain.as_ref())),
        ]
    }

    /// Keeps a plain body.
    pub(crate) fn keep_plain(&self, key: Key, body: Bytes) {
        if let Some(cache) = &self.plain {
            cache.insert(key, body.into());
        }
    }

    /// Compresses a body at once, which must be short.
    pub(crate) fn compress_here(&self, key: Key, plain: &[u8]) -> Option<Bytes> {
        let made = log_error(compress(key.coding, Effort::Thorough, plain))?;
        // A shorter one is for a client that refuses plain bodies; others would find it here.
        if let Some(cache) = &self.compressed
            && plain.len() >= WORTH_COMPRESSING_BYTES
        {
            cache.insert(key, made.clone().into());
        }
        Some(made)
    }

    /// The encoded form of a body: the cached one, or one that is made on a thread that serves nobody. Requests for the
    /// same body meanwhile wait for it; if its maker fails or goes away, one of them makes it. `None` if it can't be
    /// made, or too many bodies of this account wait.
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
                // One that is too long to be cached is given to those who wait, all the same.
                let _ = guard.insert(Kept {
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
            // The turn ends with the work, even if nobody waits for it any more.
            let _turn = turn;
            PanicPoint::CompressBody.pass();
            plain.with_bytes(|plain| compress(coding, Effort::Quick, plain))
        });
        log_error(made.await.unwrap_or_else(|panic| Err(panic.into())))
    }
}

/// How often a part was asked, and had the body.
#[derive(Debug, Default)]
struct Asked {
    hits: Counter,
    misses: Counter,
}

impl Asked {
    fn count(&self, found: Option<Kept>) -> Option<Kept> {
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

/// What was made; a failure is logged, and the client is sent the plain body.
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
    // Rounded down to a power of two: rounded up, a part would be too small for a long page.
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
