//! What one request finds among the kept bodies, and under what it keeps its own.
//!
//! A damaged snapshot gives bodies that aren't what their tags say. So a body is known by its tag, its coding, and how
//! many damages had been found when its request began: what was begun before a damage was found is found by no
//! request that begins later, even where it is put into the cache long after. It stays there until its room is needed.

use super::body_cache::BodyCache;
use super::conditional::ContentHash;
use super::encoding::Coding;

/// Which body, and how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    hash: ContentHash,
    coding: Coding,
    /// How many damages had been found when the request began.
    damages: u64,
}

impl Key {
    /// How the body is encoded.
    pub(super) fn coding(&self) -> Coding {
        self.coding
    }
}

/// The kept bodies as one request may use them.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptBodies<'c> {
    pub(super) cache: &'c BodyCache,
    damages: u64,
}

impl<'c> KeptBodies<'c> {
    /// Those for a request that begins when so many damages have been found.
    pub(super) fn new(cache: &'c BodyCache, damages: u64) -> Self {
        Self { cache, damages }
    }

    /// What a body is kept under.
    pub(super) fn key(&self, hash: ContentHash, coding: Coding) -> Key {
        let damages = self.damages;
        Key {
            hash,
            coding,
            damages,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use http::header::{ACCEPT_ENCODING, ETAG};
    use http::{HeaderMap, HeaderValue};
    use vitrine_model::revision::Revision;
    use vitrine_model::snapshot::{Block, BlockBuilder, Entry, Snapshot, TextTable};

    use super::super::answer::Keep;
    use super::super::{App, pages};
    use super::*;
    use crate::live::Live;
    use crate::metrics::Metrics;
    use crate::view::TextAddresses;

    /// A catalog of a long product.
    fn block(letter: u8) -> Block {
        let mut block = BlockBuilder::default();
        let entry = Entry {
            code: &"A".parse().unwrap(),
            bytes: &[letter; 30_000],
            content: None,
            facets: &[],
        };
        block.push(&entry).unwrap();
        block.finish().unwrap()
    }

    fn snapshot(block: Block) -> Arc<Snapshot> {
        let texts = TextTable::default();
        let made = Snapshot::new(Revision::default(), Arc::default(), vec![block], texts);
        Arc::new(made.unwrap())
    }

    #[tokio::test]
    async fn what_was_begun_before_a_damage_was_found_is_found_by_nobody_after_it() {
        let whole = block(b'w');
        let directory = Bytes::copy_from_slice(whole.directory());
        let arena = Bytes::copy_from_slice(block(b'd').arena());
        let damaged = snapshot(Block::from_bytes(directory, arena).unwrap());
        let whole = snapshot(whole);
        for coding in ["identity", "gzip", "zstd", "br"] {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(coding))]);
            let live = Arc::new(Live::new(Duration::MAX));
            let addresses = TextAddresses::new("http://localhost");
            let app = App::new(live, Arc::new(Metrics::new(&[])), addresses, 1 << 26);
            let answer = async |snapshot: &Arc<Snapshot>, bodies: KeptBodies<'_>| {
                let page = pages::find(snapshot, &app, None).unwrap().kept(Keep::Plain);
                let found = page.found(&headers, bodies).unwrap();
                let answer = found.finish(&app.bodies).await.unwrap();
                let tag = answer.headers()[ETAG].clone();
                (tag, answer.into_body().into_bytes())
            };
            let before = app.kept_bodies();
            app.live.set_snapshot(Some(Arc::clone(&whole)));
            app.live.note_damage();
            let (tag, expected) = answer(&whole, app.kept_bodies()).await;
            // Only now is the body made that was begun first.
            let late = answer(&damaged, before).await;
            assert!(late.0 == tag && late.1 != expected, "{coding}");
            let kept = answer(&damaged, before).await;
            assert!(kept == late, "{coding}");
            let next = answer(&whole, app.kept_bodies()).await;
            assert!(next == (tag, expected), "{coding}");
        }
    }
}
