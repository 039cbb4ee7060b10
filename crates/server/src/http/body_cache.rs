//! Bodies that are worth keeping: compressed ones, and plain ones that took some making.
//!
//! A body is known by its tag, which is a hash of its content: so what is kept outlives a change of the
//! catalog that leaves it as it was, and nothing kept is ever out of date. What is asked for most
//! stays; plain bodies, cheap to make again, never push out compressed ones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::sync::Semaphore;

use super::body::Body;
use super::compress::{Effort, WORTH_COMPRESSING_BYTES, compress, gzip_thoroughly};
use super::conditional::ContentHash;
use super::encoding::Coding;
use super::making::Later;
use crate::error_chain::ErrorChain;
use crate::metrics::{CacheState, Counter};
use crate::panic_point::PanicPoint;

/// What keeping a body takes beside its bytes, about.
const OVERHEAD_BYTES: u64 = 160;

/// The least room of a part of a cache: the longest body that can be kept.
const SHARD_BYTES: u64 = 8 << 20;

/// Bodies up to this length are compressed where they are, in less time than it takes to hand
/// them to another thread and wait for it.
pub(super) const HERE_BYTES: usize = 16 << 10;

/// How many bodies wait for each core that compresses, at most: a second at worst, with Brotli.
const WAITING_PER_CORE: usize = 64;

/// Key of a kept body: its content, and how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) hash: ContentHash,
    pub(super) coding: Coding,
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
pub(super) struct BodyCache {
    compressed: Option<Arc<Bodies>>,
    plain: Option<Bodies>,
    compressed_asked: Asked,
    plain_asked: Asked,
    /// As many bodies are compressed at the same time as there are cores.
    turns: Arc<Semaphore>,
    /// How many wait for a turn, not counting those who wait for a body that another request has compressed.
    waiting: AtomicUsize,
    most_waiting: usize,
    /// How many requests were refused because of that.
    pub(super) shed: Counter,
}

impl BodyCache {
    /// A cache that takes up to `bytes` of memory, a third of it for plain bodies; 0 keeps nothing.
    pub(super) fn new(bytes: u64) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            compressed: bodies(bytes - bytes / 3).map(Arc::new),
            plain: bodies(bytes / 3),
            compressed_asked: Asked::default(),
            plain_asked: Asked::default(),
            turns: Arc::new(Semaphore::new(cores)),
            waiting: AtomicUsize::new(0),
            most_waiting: cores * WAITING_PER_CORE,
            shed: Counter::default(),
        }
    }

    /// A cache for which as many bodies wait as may.
    #[cfg(test)]
    pub(super) fn busy() -> Self {
        let cache = Self::new(0);
        cache.waiting.store(cache.most_waiting, Ordering::Relaxed);
        cache
    }

    /// Whether as many bodies wait to be compressed as may.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.most_waiting
    }

    /// Whether a body would have to wait behind so many others that it had better not be made. In passing, one that is
    /// kept or is just being compressed may be found to be so; its client asks again.
    pub(super) fn is_too_busy_for(&self, key: &Key) -> bool {
        self.is_busy() && key.coding != Coding::Identity && !self.is_kept(key)
    }

    /// Whether a body is kept encoded. Nobody asks for it by that.
    pub(super) fn is_kept(&self, key: &Key) -> bool {
        let cache = self.compressed.as_ref();
        cache.is_some_and(|cache| cache.peek(key).is_some())
    }

    /// A body that is kept encoded. One that was made quickly, and is asked for again, is made smaller meanwhile.
    pub(super) fn compressed(&self, key: &Key) -> Option<Bytes> {
        let cache = self.compressed.as_ref()?;
        let kept = self.compressed_asked.count(cache.get(key))?;
        if kept.could_be_smaller {
            self.make_smaller(cache, key, &kept.bytes);
        }
        Some(kept.bytes)
    }

    fn make_smaller(&self, cache: &Arc<Bodies>, key: &Key, bytes: &Bytes) {
        // While there is other work, it can wait until it is asked for once more.
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return;
        };
        // From here on it isn't to be begun again.
        cache.insert(*key, bytes.clone().into());
        let (cache, key, quick) = (Arc::clone(cache), *key, bytes.clone());
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            if let Some(smaller) = settled(gzip_thoroughly(&quick))
                && smaller.len() < quick.len()
            {
                cache.insert(key, smaller.into());
            }
        });
    }

    /// A body that is kept plain.
    pub(super) fn plain(&self, key: &Key) -> Option<Bytes> {
        let kept = self.plain.as_ref()?.get(key);
        Some(self.plain_asked.count(kept)?.bytes)
    }

    /// How the two parts do, by name.
    pub(super) fn states(&self) -> [(&'static str, CacheState); 2] {
        [
            (
                "compressed",
                self.compressed_asked.state(self.compressed.as_deref()),
            ),
            ("plain", self.plain_asked.state(self.plain.as_ref())),
        ]
    }

    /// Keeps a plain body, which becomes one string for that.
    pub(super) fn keep_plain(&self, key: Key, body: Body) -> Body {
        let Some(cache) = &self.plain else {
            return body;
        };
        let body = body.into_bytes();
        cache.insert(key, body.clone().into());
        body.into()
    }

    /// Compresses a body that is short enough for that to be done at once; gives it back otherwise.
    pub(super) fn compress_here(&self, key: Key, plain: &Bytes) -> Option<Bytes> {
        if plain.len() > HERE_BYTES {
            return None;
        }
        let made = settled(compress(key.coding, Effort::Thorough, plain))?;
        // A shorter one is for a client that refuses plain bodies; others would find it here.
        if let Some(cache) = &self.compressed
            && plain.len() >= WORTH_COMPRESSING_BYTES
        {
            cache.insert(key, made.clone().into());
        }
        Some(made)
    }

    /// The encoded form of a body: the kept one, or one that is made on a thread that serves nobody.
    /// Whoever asks for the same body meanwhile waits for it; should its maker fail or go away, one of
    /// those makes it. `None` where it can't be made, or too many wait.
    pub(super) async fn compress(&self, key: Key, plain: Later) -> Option<Bytes> {
        let Some(cache) = &self.compressed else {
            return self.make(key.coding, plain).await;
        };
        match cache.get_value_or_guard_async(&key).await {
            Ok(kept) => Some(kept.bytes),
            Err(guard) => {
                let made = self.make(key.coding, plain).await?;
                // One that is too long to be kept is given to those who wait, all the same.
                let _ = guard.insert(Kept {
                    bytes: made.clone(),
                    could_be_smaller: key.coding == Coding::Gzip,
                });
                Some(made)
            }
        }
    }

    async fn make(&self, coding: Coding, plain: Later) -> Option<Bytes> {
        let waits = Waits::begin(&self.waiting);
        if self.waiting.load(Ordering::Relaxed) > self.most_waiting {
            return None;
        }
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        drop(waits);
        let made = tokio::task::spawn_blocking(move || {
            // The turn ends with the work, even where nobody waits for it any more.
            let _turn = turn;
            PanicPoint::CompressBody.pass();
            plain.with(|plain| compress(coding, Effort::Quick, plain))
        });
        settled(made.await.unwrap_or_else(|panic| Err(panic.into())))
    }
}

/// A request that waits for a turn, until this is dropped: the client may go away meanwhile.
struct Waits<'c>(&'c AtomicUsize);

impl<'c> Waits<'c> {
    fn begin(waiting: &'c AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
fn settled(made: std::io::Result<Bytes>) -> Option<Bytes> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::conditional::EntityTag;

    #[tokio::test]
    async fn only_so_many_bodies_wait_for_their_turn() {
        let cache = Arc::new(BodyCache::new(0));
        let hash = EntityTag::of(b"a body").hash();
        let key = Key {
            hash,
            coding: Coding::Zstd,
        };
        let cores = u32::try_from(available_parallelism().map_or(1, usize::from)).unwrap();
        let turns = Arc::clone(&cache.turns);
        let taken = turns.acquire_many_owned(cores).await.unwrap();
        let waiting: Vec<_> = (0..cache.most_waiting)
            .map(|_| {
                assert!(!cache.is_too_busy_for(&key));
                let asked = Arc::clone(&cache);
                let body = Later::Made(Bytes::from_static(b"a body"));
                let asked = async move { asked.compress(key, body).await };
                tokio::spawn(asked)
            })
            .collect();
        while cache.waiting.load(Ordering::Relaxed) < cache.most_waiting {
            tokio::task::yield_now().await;
        }
        assert!(cache.is_too_busy_for(&key));
        assert!(!cache.is_too_busy_for(&Key {
            coding: Coding::Identity,
            ..key
        }));
        // What isn't refused beforehand goes out as it is.
        assert_eq!(
            cache
                .compress(key, Later::Made(Bytes::from_static(b"a body")))
                .await,
            None
        );
        drop(taken);
        for asked in waiting {
            assert!(asked.await.unwrap().is_some());
        }
        assert!(!cache.is_too_busy_for(&key));
        assert_eq!(cache.waiting.load(Ordering::Relaxed), 0);
    }
}
