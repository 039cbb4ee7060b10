//! Pages of products: found by a scan, known by their tag, sent as they lie in memory or copied together.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, Snapshot};
use vitrine_wire::answer::{Cursors, PageSize, Pagination};

use super::answer::{Keep, Resource, WhileBusy};
use super::body::Body;
use super::body_cache::HERE_BYTES;
use super::conditional::EntityTag;
use super::error::ApiError;
use super::making::{Later, Make};
use super::query::{encoded, pairs};
use super::{App, parameters};

/// The longest `Link` header, in bytes.
const MAX_LINK_BYTES: usize = 2 * 1024;

/// A page of so few slices goes out as it lies in memory; of more, copying them together costs less than
/// sending each.
const FEW_SLICES: usize = 6;

/// A page of so many products, copied together, is worth keeping.
const MANY_PRODUCTS: usize = 100;

/// The most that may be remembered of a snapshot's pages, in bytes.
const REMEMBERED_BYTES: u64 = 2 << 20;

/// What a page's answer says of itself.
#[derive(Debug, Clone)]
struct PageHead {
    tag: EntityTag,
    link: Option<HeaderValue>,
    keep: Keep,
    while_busy: WhileBusy,
}

/// The heads of one snapshot's pages, by the query as it was sent: clients read the same pages again and again,
/// and most of them have them already.
#[derive(Debug)]
pub(super) struct PageHeads(Cache<Box<str>, PageHead, ByLength>);

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
        Self(Cache::with_weighter(4_096, REMEMBERED_BYTES, ByLength))
    }
}

/// The page that a query asks for.
pub(super) fn find<'s>(
    snapshot: &'s Arc<Snapshot>,
    app: &App,
    query: Option<&'s str>,
) -> Result<Resource<'s>, ApiError> {
    let of_snapshot = app.ready.of(snapshot);
    let heads = &of_snapshot.pages.0;
    if let Some(head) = heads.get(query.unwrap_or_default()) {
        return Ok(resource(head, Known { snapshot, query }));
    }
    let list = parameters::list(query)?;
    let page = snapshot.page(&list);
    // The products and the limit determine every byte of the page.
    let parts = [&page.hash()[..], &list.limit.get().to_le_bytes()];
    let head = PageHead {
        tag: EntityTag::of_parts(parts.into_iter()),
        link: link(&page, query.unwrap_or_default()),
        keep: keep(page.slice_count(), page.len()),
        // A shorter one never waits.
        while_busy: if products_bytes(&page) > HERE_BYTES {
            WhileBusy::PutOff
        } else {
            WhileBusy::SentPlain
        },
    };
    heads.insert(query.unwrap_or_default().into(), head.clone());
    let keep = match head.keep {
        Keep::Plain => Keep::OnceAskedAgain,
        keep => keep,
    };
    let body = Found {
        snapshot,
        list,
        page,
    };
    Ok(resource(head, body).kept(keep))
}

/// A page that was found before: its products are looked for only if its body is to be made.
struct Known<'s> {
    snapshot: &'s Arc<Snapshot>,
    query: Option<&'s str>,
}

impl Make for Known<'_> {
    fn now(self: Box<Self>) -> Result<Body, ApiError> {
        let list = parameters::list(self.query)?;
        Ok(page_body(&self.snapshot.page(&list), &list))
    }

    fn later(self: Box<Self>) -> Result<Later, ApiError> {
        Ok(later(self.snapshot, parameters::list(self.query)?))
    }
}

/// A page that was just found.
struct Found<'s> {
    snapshot: &'s Arc<Snapshot>,
    list: ListQuery,
    page: Page<'s>,
}

impl Make for Found<'_> {
    fn now(self: Box<Self>) -> Result<Body, ApiError> {
        Ok(page_body(&self.page, &self.list))
    }

    fn later(self: Box<Self>) -> Result<Later, ApiError> {
        Ok(later(self.snapshot, self.list))
    }
}

/// What finds a page and makes its body on another thread.
fn later(snapshot: &Arc<Snapshot>, list: ListQuery) -> Later {
    let snapshot = Arc::clone(snapshot);
    Later::written(move |out| write_page(&snapshot.page(&list), &list, out))
}

fn resource<'s>(head: PageHead, body: impl Make + 's) -> Resource<'s> {
    let PageHead {
        tag,
        link,
        keep,
        while_busy,
    } = head;
    let page = Resource::new(tag, body).with_link(link);
    page.kept(keep).while_busy(while_busy)
}

/// Whether a page of so many slices and products is worth keeping once it was put together.
fn keep(slices: usize, products: usize) -> Keep {
    if slices > FEW_SLICES && products >= MANY_PRODUCTS {
        Keep::Plain
    } else {
        Keep::No
    }
}

/// How long a page's products are, with what stands between them.
fn products_bytes(page: &Page<'_>) -> usize {
    page.slices().map(|slice| slice.len() + 1).sum()
}

/// What stands ahead of a page's products.
const PAGE_HEAD: &[u8] = b"{\"catalog\":[";

/// What stands behind a page's products.
fn page_end(page: &Page<'_>, list: &ListQuery) -> Vec<u8> {
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

/// A page as JSON: the products' bytes, and what stands around them.
fn page_body(page: &Page<'_>, list: &ListQuery) -> Body {
    let slices = page.slice_count();
    if !(1..=FEW_SLICES).contains(&slices) {
        let mut body = Vec::new();
        write_page(page, list, &mut body);
        return body.into();
    }
    let mut parts = Vec::with_capacity(slices * 2 + 1);
    for slice in page.shared_slices() {
        parts.push(Bytes::from_static(if parts.is_empty() {
            PAGE_HEAD
        } else {
            b","
        }));
        parts.push(slice);
    }
    parts.push(page_end(page, list).into());
    parts.into()
}

/// Appends a page as JSON, copied together.
fn write_page(page: &Page<'_>, list: &ListQuery, out: &mut Vec<u8>) {
    let end = page_end(page, list);
    out.reserve(PAGE_HEAD.len() + products_bytes(page) + end.len());
    out.extend_from_slice(PAGE_HEAD);
    for (index, slice) in page.slices().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(slice);
    }
    out.extend_from_slice(&end);
}

/// The page's neighbours (RFC 8288): the request's parameters in their order, the cursor last.
fn link(page: &Page<'_>, query: &str) -> Option<HeaderValue> {
    let mut kept = String::new();
    for (name, value) in pairs(query) {
        // A query that can't be decoded was refused before.
        let (Ok(name), Ok(value)) = (name, value) else {
            continue;
        };
        if name != "before" && name != "after" {
            let value = encoded(&value);
            // Writing to a string can't fail.
            let _ = write!(kept, "{name}={value}&");
        }
    }
    let previous = page.first().filter(|_| page.has_previous());
    let next = page.last().filter(|_| page.has_next());
    let link = |(cursor, code, relation)| format!("<?{kept}{cursor}={code}>; rel=\"{relation}\"");
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
    use std::time::Duration;

    use http::HeaderMap;
    use http::header::ACCEPT_ENCODING;
    use vitrine_model::revision::Revision;
    use vitrine_model::snapshot::{BlockBuilder, Entry, TextTable};

    use super::super::body_cache::BodyCache;
    use super::*;
    use crate::live::Live;
    use crate::metrics::Metrics;
    use crate::view::TextAddresses;

    /// Whether a page of two neighbours, each so long, is put off where too many bodies wait to be compressed.
    fn is_put_off(product_bytes: usize) -> bool {
        let mut block = BlockBuilder::default();
        for code in ["A", "B"] {
            let entry = Entry {
                code: &code.parse().unwrap(),
                bytes: &vec![b'x'; product_bytes],
                content: None,
                facets: &[],
            };
            block.push(&entry).unwrap();
        }
        let blocks = vec![block.finish().unwrap()];
        let (revision, texts) = (Revision::default(), TextTable::default());
        let snapshot = Snapshot::new(revision, Arc::default(), blocks, texts);
        let snapshot = Arc::new(snapshot.unwrap());
        let live = Arc::new(Live::new(Duration::MAX));
        let addresses = TextAddresses::new("http://localhost");
        let mut app = App::new(live, Arc::new(Metrics::new(&[])), addresses, 0);
        app.bodies = BodyCache::busy();
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("br"))]);
        // The second is made of what was remembered of the first.
        let twice = [(); 2].map(|()| {
            let page = find(&snapshot, &app, None).unwrap();
            page.is_too_much(&headers, &app.bodies)
        });
        assert_eq!(twice[0], twice[1]);
        twice[0]
    }

    #[test]
    fn long_pages_are_put_off_however_few_slices_they_have() {
        assert!(is_put_off(HERE_BYTES));
        assert!(!is_put_off(HERE_BYTES / 4));
        // A comma for each.
        assert!(is_put_off(HERE_BYTES / 2));
        assert!(!is_put_off(HERE_BYTES / 2 - 1));
    }

    #[test]
    fn what_is_put_together_of_many_parts_is_kept() {
        for (slices, products, kept) in [
            (500, 500, Keep::Plain),
            (7, 100, Keep::Plain),
            (6, 500, Keep::No),
            (99, 99, Keep::No),
            (1, 1, Keep::No),
        ] {
            assert_eq!(keep(slices, products), kept, "{products} in {slices}");
        }
    }

    #[test]
    fn what_is_remembered_of_pages_is_bounded_in_bytes() {
        let head = PageHead {
            tag: EntityTag::of(b""),
            link: Some(HeaderValue::from_str(&"l".repeat(500)).unwrap()),
            keep: Keep::No,
            while_busy: WhileBusy::SentPlain,
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
