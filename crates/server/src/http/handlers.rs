//! The operations: each asks the snapshot and says how its answer is made.

use std::fmt::Write as _;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, Snapshot};
use vitrine_wire::answer::{Cursors, PageSize, Pagination};
use vitrine_wire::error::ErrorType;

use super::answer::{Keep, Resource};
use super::body::Body;
use super::conditional::EntityTag;
use super::error::ApiError;
use super::routes::{Captured, KeyedOperation};
use super::{App, parameters, ready, texts};
use crate::view::ContentForm;

/// The longest `Link` header, in bytes.
const MAX_LINK_BYTES: usize = 2 * 1024;

/// A page of so few slices goes out as it lies in memory; of more, copying them together costs less than
/// sending each.
const FEW_SLICES: usize = 6;

/// A page of so many products, copied together, is worth keeping.
const MANY_PRODUCTS: usize = 100;

/// What stays as it is in a query (RFC 3986, "unreserved").
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Reads what a keyed operation asks for.
pub(super) fn read<'s>(
    operation: KeyedOperation,
    snapshot: &'s Snapshot,
    app: &'s App,
    captured: &Captured,
    query: Option<&str>,
) -> Result<Resource<'s>, ApiError> {
    match operation {
        KeyedOperation::ListProducts => list_products(snapshot, query),
        KeyedOperation::GetProduct => get_product(snapshot, app, captured, query),
        KeyedOperation::ListCategories => {
            parameters::none(query).map(|()| app.ready.of(snapshot).categories.resource())
        }
        KeyedOperation::ListCountries => {
            parameters::none(query).map(|()| app.ready.of(snapshot).countries.resource())
        }
        KeyedOperation::Ping => parameters::none(query).map(|()| ready::pong()),
    }
}

fn list_products<'s>(
    snapshot: &'s Snapshot,
    query: Option<&str>,
) -> Result<Resource<'s>, ApiError> {
    let list = parameters::list(query)?;
    let page = snapshot.page(&list);
    // The products and the limit determine every byte of the page.
    let parts = [&page.hash()[..], &list.limit.get().to_le_bytes()];
    let tag = EntityTag::of_parts(parts.into_iter());
    let link = link(&page, query.unwrap_or_default());
    let keep = match page.slice_count() {
        slices if slices > FEW_SLICES && page.len() >= MANY_PRODUCTS => Keep::Plain,
        _ => Keep::No,
    };
    let found = Resource::keyed(tag, move || Ok(page_body(&page, &list)));
    Ok(found.with_link(link).kept(keep))
}

/// A page as JSON: the products' bytes, and what stands around them.
fn page_body(page: &Page<'_>, list: &ListQuery) -> Body {
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
    let (head, end) = (
        &b"{\"catalog\":["[..],
        [b"],\"pagination\":", &pagination[..], b"}"].concat(),
    );
    let slices = page.slice_count();
    if (1..=FEW_SLICES).contains(&slices) {
        let mut parts = Vec::with_capacity(slices * 2 + 1);
        for slice in page.shared_slices() {
            parts.push(Bytes::from_static(if parts.is_empty() {
                head
            } else {
                b","
            }));
            parts.push(slice);
        }
        parts.push(end.into());
        return parts.into();
    }
    let products: usize = page.slices().map(|slice| slice.len() + 1).sum();
    let mut body = Vec::with_capacity(head.len() + products + end.len());
    body.extend_from_slice(head);
    for (index, slice) in page.slices().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(slice);
    }
    body.extend_from_slice(&end);
    body.into()
}

/// The page's neighbours (RFC 8288): the request's parameters in their order, the cursor last.
fn link(page: &Page<'_>, query: &str) -> Option<String> {
    let mut kept = String::new();
    for (name, value) in parameters::pairs(query) {
        if name != "before" && name != "after" {
            let value = value.unwrap_or_default();
            let value = utf8_percent_encode(&value, ENCODED);
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
    (!links.is_empty() && links.len() <= MAX_LINK_BYTES).then_some(links)
}

fn get_product<'s>(
    snapshot: &'s Snapshot,
    app: &'s App,
    captured: &Captured,
    query: Option<&str>,
) -> Result<Resource<'s>, ApiError> {
    let form = parameters::content_form(query)?;
    let Captured::Code(code) = captured else {
        return Err(ApiError::plain(ErrorType::NotFound));
    };
    let product = snapshot
        .product(code)
        .ok_or_else(|| ApiError::no_such_product(code.as_str()))?;
    let Some(content) = product.content().filter(|_| form != ContentForm::Url) else {
        let tag = EntityTag::from_hash(product.hash());
        return Ok(Resource::keyed(tag, move || {
            Ok(product.bytes().to_vec().into())
        }));
    };
    texts::in_product(snapshot, app, product, content, form)
}
