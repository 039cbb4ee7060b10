//! Answers of last time, each by its address and its ETag, in memory bounded in bytes.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::sync::{Cache as Kept, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use reqwest::header::HeaderValue;

/// What keeping an answer takes beside its bytes, about.
const OVERHEAD_BYTES: usize = 200;
/// How long an answer is, about.
const USUAL_BYTES: usize = 64 << 10;
/// The longest tag that is sent back.
const MOST_TAG_BYTES: usize = 256;

/// An answer with the tag that it came with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) tag: HeaderValue,
    pub(crate) body: Bytes,
}

/// Weighs what is kept, in bytes.
#[derive(Debug, Clone)]
struct Bytewise;

impl Weighter<String, Arc<Answer>> for Bytewise {
    fn weight(&self, url: &String, answer: &Arc<Answer>) -> u64 {
        (url.len() + answer.tag.len() + answer.body.len() + OVERHEAD_BYTES) as u64
    }
}

/// The answers that are kept. The key and the version are the same for all of a client's requests, so an address says which
/// answer is meant.
#[derive(Debug)]
pub(crate) struct Cache(Kept<String, Arc<Answer>, Bytewise>);

impl Cache {
    /// A cache of so many bytes; none of 0.
    pub(crate) fn of(bytes: usize) -> Option<Self> {
        if bytes == 0 {
            return None;
        }
        let options = OptionsBuilder::new()
            // One part: an answer may take as much as there is.
            .shards(1)
            .estimated_items_capacity((bytes / USUAL_BYTES).max(16))
            .weight_capacity(bytes as u64)
            .build()
            .ok()?;
        let (hash, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Some(Self(Kept::with_options(options, Bytewise, hash, lifecycle)))
    }

    pub(crate) fn get(&self, url: &str) -> Option<Arc<Answer>> {
        self.0.get(url)
    }

    /// Keeps an answer, if it has a tag that can be sent back.
    pub(crate) fn put(&self, url: &str, tag: Option<&HeaderValue>, body: &Bytes) {
        let tag = tag.filter(|tag| tag.len() <= MOST_TAG_BYTES && tag.to_str().is_ok());
        match tag {
            Some(tag) => {
                let answer = Answer {
                    tag: tag.clone(),
                    body: body.clone(),
                };
                self.0.insert(url.to_owned(), Arc::new(answer));
            }
            // What was kept for this address is old now.
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
    fn it_keeps_no_more_bytes_than_it_may() {
        assert!(Cache::of(0).is_none());
        let cache = Cache::of(100_000).unwrap();
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
    fn what_can_not_be_asked_for_by_its_tag_is_not_kept() {
        let cache = Cache::of(100_000).unwrap();
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
