//! Pages of products: found by a scan, named by an entity tag, sent from the snapshot.

use std::fmt::Write as _;
use std::sync::Arc;

use http::HeaderValue;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use vitrine_model::changes::StateId;
use vitrine_model::content_hash::ContentHash;
use vitrine_model::query::{Cursor, ListQuery};
use vitrine_model::snapshot::{Page, Snapshot};
use vitrine_wire::answer::{Cursors, PageSize, Pagination};

use crate::http::body::budget::Payer;
use crate::http::body::{Body, PartsBuilder};
use crate::http::discounts::{ShownDiscount, spliced_hash};
use crate::http::error::ApiError;
use crate::http::request::parameters;
use crate::http::request::query::encoded;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::{CachePolicy, Resource};
use crate::http::visible::Visible;

/// Maximum length of a `Link` header, in bytes.
const MAX_LINK_BYTES: usize = 2 * 1024;

/// Bytes of a page before its products.
const PAGE_START: &[u8] = b"{\"catalog\":[";

/// Maximum slices of a page that isn't cached. One of more is copied while it is sent, so that a shared copy pays.
const MAX_SLICES_NOT_CACHED: usize = 6;

/// Minimum products of a cached page.
const MIN_PRODUCTS_CACHED: usize = 100;

/// Maximum memory of a snapshot's page heads, in bytes.
const MAX_HEADS_BYTES: u64 = 2 << 20;

/// Head of a page: all of its response but the body.
#[derive(Debug, Clone)]
struct PageHead {
    tag: EntityTag,
    link: Option<HeaderValue>,
    length: usize,
    /// Policy once the page is asked for again.
    cache_plain: CachePolicy,
}

/// Cache of the heads of one snapshot's pages, by assortment and raw query: clients read the same pages again and again,
/// and mostly have them already.
#[derive(Debug)]
pub(crate) struct PageHeads(Cache<PageKey, PageHead, ByLength>);

/// Determinants of a page, beside the snapshot and the version. Without the assortment, a client would get the page
/// of another one (docs/contract/assortments.md#what-clients-see).
#[derive(Debug, PartialEq, Eq, Hash)]
struct PageKey {
    assortment: StateId,
    query: Box<str>,
}

/// The same, borrowed: with the hash of a [`PageKey`].
#[derive(Hash)]
struct PageKeyRef<'q> {
    assortment: StateId,
    query: &'q str,
}

impl Equivalent<PageKey> for PageKeyRef<'_> {
    fn equivalent(&self, key: &PageKey) -> bool {
        self.assortment == key.assortment && *self.query == *key.query
    }
}

#[derive(Debug, Clone)]
struct ByLength;

impl Weighter<PageKey, PageHead> for ByLength {
    fn weight(&self, key: &PageKey, head: &PageHead) -> u64 {
        let link = head.link.as_ref().map_or(0, HeaderValue::len);
        (key.query.len() + link + size_of::<PageHead>() + 80) as u64
    }
}

impl Default for PageHeads {
    fn default() -> Self {
        Self(Cache::with_weighter(4_096, MAX_HEADS_BYTES, ByLength))
    }
}

/// Finds the page of a query. `heads` are those of the same version.
///
/// # Errors
///
/// If a parameter is refused.
pub(crate) fn find<'s>(
    snapshot: &'s Arc<Snapshot>,
    heads: &PageHeads,
    query: Option<&'s str>,
    visible: Visible,
) -> Result<Resource<'s>, ApiError> {
    let heads = &heads.0;
    let key = PageKeyRef {
        assortment: visible.assortment(),
        query: query.unwrap_or_default(),
    };
    if let Some(head) = heads.get(&key) {
        // Its products are looked for only if they are to be sent.
        let length = head.length;
        let body = move |payer: Payer<'_>| {
            let list = parameters::list(query)?;
            let page = visible.page(snapshot, &list);
            let parts = parts(&page, &list, snapshot, &visible).finish();
            Ok(Body::page(Arc::clone(snapshot), parts, payer.to_owned()))
        };
        let page = Resource::new(head.tag, length, body).with_link(head.link);
        return Ok(page.cached_plain(head.cache_plain));
    }
    let mut kept = String::new();
    let list = parameters::list_noting(query, |name, value| {
        // Writing to a string can't fail.
        let _ = write!(kept, "{name}={}&", encoded(value));
    })?;
    if list.cursor == Cursor::Start {
        parameters::check_categories(&list.filter, || visible.categories(snapshot))?;
    }
    let page = visible.page(snapshot, &list);
    let parts = parts(&page, &list, snapshot, &visible);
    // The products as they are shown and the limit determine every byte of the page. Both have a fixed length.
    let limit = list.limit.get().to_le_bytes();
    let hash = shown_hash(&page, parts.replaced());
    let determinants = [&hash.as_bytes()[..], &limit];
    let is_cached =
        parts.slice_count() > MAX_SLICES_NOT_CACHED && page.len() >= MIN_PRODUCTS_CACHED;
    let tag = EntityTag::of_parts(determinants.into_iter());
    let parts = parts.finish();
    let head = PageHead {
        tag,
        link: link(&page, &kept),
        length: parts.len(),
        cache_plain: match is_cached {
            true => CachePolicy::Always,
            false => CachePolicy::Never,
        },
    };
    let PageKeyRef { assortment, query } = key;
    let query = query.into();
    heads.insert(PageKey { assortment, query }, head.clone());
    let (length, link) = (head.length, head.link);
    let body = move |payer: Payer<'_>| {
        let snapshot = Arc::clone(snapshot);
        Ok(Body::page(snapshot, parts, payer.to_owned()))
    };
    let page = Resource::new(head.tag, length, body).with_link(link);
    Ok(page.cached_plain(match head.cache_plain {
        CachePolicy::Always => CachePolicy::OnSecondHit,
        policy => policy,
    }))
}

/// Returns the hash of a page's products as they are shown, `replaced` with other discounts: the same for the same bytes,
/// rendered or replaced.
fn shown_hash(page: &Page<'_>, replaced: &[(u32, ShownDiscount)]) -> ContentHash {
    if replaced.is_empty() {
        return page.hash();
    }
    let (mut positions, mut replaced) = (0.., replaced.iter().peekable());
    page.hash_of(|product| {
        let position = positions.next();
        match replaced.next_if(|(at, _)| Some(*at) == position) {
            Some((_, discount)) => spliced_hash(product.bytes(), discount),
            None => product.hash(),
        }
    })
}

/// Returns the end of a page, behind its products.
fn end(page: &Page<'_>, list: &ListQuery) -> Vec<u8> {
    let pagination = Pagination {
        cursors: Cursors {
            before: page.first().map(Into::into),
            after: page.last().map(Into::into),
        },
        page: PageSize {
            limit: u16::try_from(list.limit.get()).unwrap_or(u16::MAX),
        },
    };
    // Codes and numbers can't fail to become JSON.
    let pagination = serde_json::to_vec(&pagination).unwrap_or_default();
    [b"],\"pagination\":", &pagination[..], b"}"].concat()
}

/// Returns the parts of a page's body.
fn parts(
    page: &Page<'_>,
    list: &ListQuery,
    snapshot: &Snapshot,
    visible: &Visible,
) -> PartsBuilder {
    let (runs, end) = (page.run_count(), end(page, list));
    // A comma between runs.
    let text_bytes = PAGE_START.len() + runs + end.len();
    let mut parts = PartsBuilder::with_capacity(runs, text_bytes);
    parts.text(PAGE_START);
    let mut products = visible.writer(snapshot);
    for (index, run) in page.runs().enumerate() {
        if index > 0 {
            parts.text(b",");
        }
        products.push(&mut parts, run);
    }
    parts.text(&end);
    parts
}

/// Returns the page's neighbours (RFC 8288): the request's `parameters` in their order, the cursor last.
fn link(page: &Page<'_>, parameters: &str) -> Option<HeaderValue> {
    let previous = page.first().filter(|_| page.has_previous());
    let next = page.last().filter(|_| page.has_next());
    let link =
        |(cursor, code, relation)| format!("<?{parameters}{cursor}={code}>; rel=\"{relation}\"");
    let links: Vec<String> = previous
        .map(|code| ("before", code, "prev"))
        .into_iter()
        .chain(next.map(|code| ("after", code, "next")))
        .map(link)
        .collect();
    let links = links.join(", ");
    let fits = !links.is_empty() && links.len() <= MAX_LINK_BYTES;
    // What was percent-encoded can't be refused.
    fits.then(|| HeaderValue::try_from(links).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_page_heads_are_bounded_in_bytes() {
        let head = PageHead {
            tag: EntityTag::of(b""),
            link: Some(HeaderValue::from_str(&"l".repeat(500)).unwrap()),
            length: 0,
            cache_plain: CachePolicy::Never,
        };
        let query = |number: usize| PageKey {
            assortment: StateId::default(),
            query: format!("{number:0>1000}").into(),
        };
        let least = 1_500 + size_of::<(PageKey, PageHead)>() as u64;
        let counted = ByLength.weight(&query(0), &head);
        assert!((least..least + 64).contains(&counted), "{counted}");
        let heads = PageHeads::default();
        for number in 0..4_000 {
            heads.0.insert(query(number), head.clone());
        }
        let (many, bytes) = (heads.0.len(), heads.0.weight());
        assert!(bytes <= 2 << 20 && many > 1_000, "{many} of {bytes} bytes");
    }
}
