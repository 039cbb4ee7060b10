//! The operations: each asks the snapshot and says how its answer is made.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, Snapshot};
use vitrine_wire::answer::{Cursors, PageSize, Pagination};
use vitrine_wire::error::ErrorType;

use super::answer::{Keep, Resource};
use super::conditional::EntityTag;
use super::error::ApiError;
use super::html::HtmlRenderer;
use super::routes::{Captured, KeyedOperation};
use super::{App, parameters, ready, texts};
use crate::view::ContentForm;

/// The longest `Link` header, in bytes.
const MAX_LINK_BYTES: usize = 2 * 1024;

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
        KeyedOperation::GetProduct => get_product(snapshot, &app.html, captured, query),
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
    let limit = list.limit.get().to_le_bytes();
    let parts = std::iter::once(&limit[..]).chain(page.hashes().map(|hash| &hash[..]));
    let link = link(&page, query.unwrap_or_default());
    let tag = EntityTag::of_parts(parts);
    let found = Resource::keyed(tag, move || Ok(page_body(&page, &list).into()));
    Ok(found.with_link(link).kept(Keep::Plain))
}

/// A page as JSON: the products' bytes are copied between what stands around them.
fn page_body(page: &Page<'_>, list: &ListQuery) -> Vec<u8> {
    let pagination = Pagination {
        cursors: Cursors {
            before: page.first().map(|code| code.as_str().into()),
            after: page.last().map(|code| code.as_str().into()),
        },
        page: PageSize {
            limit: u16::try_from(list.limit.get()).unwrap_or(u16::MAX),
        },
    };
    let (head, middle, end) = (&b"{\"catalog\":["[..], &b"],\"pagination\":"[..], &b"}"[..]);
    let pagination = serde_json::to_vec(&pagination).unwrap_or_default();
    let slices = page.slices();
    let products: usize = slices.iter().map(|slice| slice.len() + 1).sum();
    let mut body =
        Vec::with_capacity(head.len() + products + middle.len() + pagination.len() + end.len());
    body.extend_from_slice(head);
    for (index, slice) in slices.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(slice);
    }
    for part in [middle, &pagination, end] {
        body.extend_from_slice(part);
    }
    body
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
    html: &'s HtmlRenderer,
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
        let tag = EntityTag::from_hash(*product.hash());
        return Ok(Resource::keyed(tag, move || {
            Ok(product.bytes().to_vec().into())
        }));
    };
    texts::in_product(snapshot, html, product, content, form)
}
