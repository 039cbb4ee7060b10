//! Pages of products: found by a scan, named by an entity tag, sent from the snapshot.

use std::fmt::Write as _;
use std::sync::Arc;

use http::HeaderValue;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, Run, Snapshot};
use vitrine_wire::answer::{Cursors, PageSize, Pagination};

use crate::http::body::budget::Payer;
use crate::http::body::{Body, Glue, PAGE_START, PageBody};
use crate::http::error::ApiError;
use crate::http::request::parameters;
use crate::http::request::query::encoded;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::{CachePolicy, Resource};

/// Maximum length of a `Link` header, in bytes.
const MAX_LINK_BYTES: usize = 2 * 1024;

/// Maximum runs of a page that isn't cached. One of more is copied while it is sent, so that a shared copy pays.
const MAX_RUNS_NOT_CACHED: usize = 6;

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

/// Cache of the heads of one snapshot's pages, by the raw query: clients read the same pages again and again, and mostly
/// have them already.
#[derive(Debug)]
pub(crate) struct PageHeads(Cache<Box<str>, PageHead, ByLength>);

#[derive(Debug, Clone)]
struct ByLength;

impl Weighter<Box<str>, PageHead> for ByLength {
    fn weight(&self, query: &Box<str>, head: &PageHead) -> u64 {
        let link = head.link.as_ref().map_or(0, HeaderValue::len);
        (query.len() + link + size_of::<PageHead>() + 64) as u64
    }
}

impl Default for PageHeads {
    fn default() -> Self {
        Self(Cache::with_weighter(4_096, MAX_HEADS_BYTES, ByLength))
    }
}

/// Finds the page of a query.
///
/// # Errors
///
/// If a parameter is refused.
pub(crate) fn find<'s>(
    snapshot: &'s Arc<Snapshot>,
    heads: &PageHeads,
    query: Option<&'s str>,
) -> Result<Resource<'s>, ApiError> {
    let heads = &heads.0;
    if let Some(head) = heads.get(query.unwrap_or_default()) {
        // Its products are looked for only if they are to be sent.
        let length = head.length;
        let body = move |payer: Payer<'_>| {
            let list = parameters::list(query)?;
            Ok(body(snapshot, &snapshot.page(&list), &list, length, payer))
        };
        let page = Resource::new(head.tag, length, body).with_link(head.link);
        return Ok(page.cached_plain(head.cache_plain));
    }
    let mut kept = String::new();
    let list = parameters::list_noting(query, |name, value| {
        // Writing to a string can't fail.
        let _ = write!(kept, "{name}={}&", encoded(value));
    })?;
    let page = snapshot.page(&list);
    let (mut runs, mut products_bytes) = (0, 0);
    for run in page.runs() {
        runs += 1;
        products_bytes += snapshot.run(run).len() + 1;
    }
    // The products and the limit determine every byte of the page.
    let hash = page.hash();
    let parts = [&hash.as_bytes()[..], &list.limit.get().to_le_bytes()];
    let last_comma = usize::from(runs > 0);
    let head = PageHead {
        tag: EntityTag::of_parts(parts.into_iter()),
        link: link(&page, &kept),
        length: PAGE_START.len() + products_bytes - last_comma + end(&page, &list).len(),
        cache_plain: match runs > MAX_RUNS_NOT_CACHED && page.len() >= MIN_PRODUCTS_CACHED {
            true => CachePolicy::Always,
            false => CachePolicy::Never,
        },
    };
    heads.insert(query.unwrap_or_default().into(), head.clone());
    let (length, link) = (head.length, head.link);
    let body = move |payer: Payer<'_>| Ok(body(snapshot, &page, &list, length, payer));
    let page = Resource::new(head.tag, length, body).with_link(link);
    Ok(page.cached_plain(match head.cache_plain {
        CachePolicy::Always => CachePolicy::OnSecondHit,
        policy => policy,
    }))
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

/// Returns the body of a page, of `length` bytes.
fn body(
    snapshot: &Arc<Snapshot>,
    page: &Page<'_>,
    list: &ListQuery,
    length: usize,
    payer: Payer<'_>,
) -> Body {
    let runs: Box<[Run]> = page.runs().collect();
    let end = end(page, list);
    if runs.is_empty() {
        return Body::from([PAGE_START, &end].concat());
    }
    let page = PageBody {
        snapshot: Arc::clone(snapshot),
        runs,
        glue: Glue::List(end.into()),
        payer: payer.to_owned(),
        next: 0,
    };
    Body::page(page, length)
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
        let query = |number: usize| format!("{number:0>1000}").into_boxed_str();
        let least = 1_500 + size_of::<(Box<str>, PageHead)>() as u64;
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
