//! Cache of responses by URL, with their ETags, bounded in bytes.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::sync::{Cache as QuickCache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use reqwest::header::HeaderValue;

/// Approximate memory of a cached response beside its bytes.
const OVERHEAD_BYTES: usize = 200;
/// Typical length of a response, for sizing the cache.
const ESTIMATED_RESPONSE_BYTES: usize = 64 << 10;
/// Maximum length of a tag that is sent back, in bytes.
const MAX_TAG_BYTES: usize = 256;

/// A response body with its entity tag.
#[derive(Debug)]
pub(crate) struct CachedResponse {
    pub(crate) tag: HeaderValue,
    pub(crate) body: Bytes,
}

/// Weighs cached responses in bytes.
#[derive(Debug, Clone)]
struct ByteWeighter;

impl Weighter<String, Arc<CachedResponse>> for ByteWeighter {
    fn weight(&self, url: &String, answer: &Arc<CachedResponse>) -> u64 {
        (url.len() + answer.tag.len() + answer.body.len() + OVERHEAD_BYTES) as u64
    }
}

/// Cache of responses by URL. Key and version are the same for all requests of a client, so the URL determines the
/// response.
#[derive(Debug)]
pub(crate) struct Cache(QuickCache<String, Arc<CachedResponse>, ByteWeighter>);

impl Cache {
    /// Creates a cache with this capacity in bytes; none for 0.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        if bytes == 0 {
            return None;
        }
        let options = OptionsBuilder::new()
            // One shard, so that a response can use the whole capacity.
            .shards(1)
            .estimated_items_capacity((bytes / ESTIMATED_RESPONSE_BYTES).max(16))
            .weight_capacity(bytes as u64)
            .build()
            .ok()?;
        let (hash, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Some(Self(QuickCache::with_options(
            options,
            ByteWeighter,
            hash,
            lifecycle,
        )))
    }

    pub(crate) fn get(&self, url: &str) -> Option<Arc<CachedResponse>> {
        self.0.get(url)
    }

    /// Stores a response, if it has a tag that can be sent back.
    pub(crate) fn put(&self, url: &str, tag: Option<&HeaderValue>, body: &Bytes) {
        let tag = tag.filter(|tag| tag.len() <= MAX_TAG_BYTES && tag.to_str().is_ok());
        match tag {
            Some(tag) => {
                let answer = CachedResponse {
                    tag: tag.clone(),
                    body: body.clone(),
                };
                self.0.insert(url.to_owned(), Arc::new(answer));
            }
            // The cached response is outdated now.
            None => {
                self.0.remove(url);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_stays_within_its_capacity() {
        assert!(Cache::new(0).is_none());
        let cache = Cache::new(100_000).unwrap();
        let tag = HeaderValue::from_static("W/\"1\"");
        for number in 0..1_000 {
            cache.put(&format!("/{number}"), Some(&tag), &vec![0; 1_000].into());
        }
        let kept = (0..1_000).filter_map(|number| cache.get(&format!("/{number}")));
        let kept = kept.count();
        assert!((10..=100).contains(&kept), "{kept}");
        cache.put("/long", Some(&tag), &vec![0; 100_001].into());
        assert!(cache.get("/long").is_none());
    }

    #[test]
    fn responses_without_a_usable_tag_are_not_cached() {
        let cache = Cache::new(100_000).unwrap();
        let tag = HeaderValue::from_static("W/\"1\"");
        let body = Bytes::from_static(b"a");
        for odd in [
            None,
            Some(HeaderValue::from_bytes(b"\"\xff\"").unwrap()),
            Some("x".repeat(257).parse().unwrap()),
        ] {
            cache.put("/", Some(&tag), &body);
            assert!(cache.get("/").is_some());
            cache.put("/", odd.as_ref(), &body);
            assert!(cache.get("/").is_none(), "{odd:?}");
        }
    }
}
