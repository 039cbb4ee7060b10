//! The operations: each asks the snapshot and says how its answer is made.

use std::fmt::Write as _;

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use vitrine_model::content::TextDigest;
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, ProductView, Snapshot};
use vitrine_wire::answer::{
    Category, CategoryList, CountryList, Cursors, PageSize, Pagination, Pong,
};
use vitrine_wire::error::ErrorType;

use super::App;
use super::answer::Resource;
use super::conditional::EntityTag;
use super::error::ApiError;
use super::parameters;
use super::routes::{Captured, KeyedOperation};
use crate::view::{ContentForm, content_json};

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
        KeyedOperation::GetProduct => get_product(snapshot, app, captured, query),
        KeyedOperation::ListCategories => {
            parameters::none(query)?;
            let category = |code: &'s str| Category { code: code.into() };
            let categories = snapshot.categories().map(category).collect();
            Ok(json(&CategoryList { categories }))
        }
        KeyedOperation::ListCountries => {
            parameters::none(query)?;
            let countries: Vec<String> = snapshot.countries().map(|c| c.to_string()).collect();
            let countries = countries.iter().map(Into::into).collect();
            Ok(json(&CountryList { countries }))
        }
        KeyedOperation::Ping => {
            parameters::none(query)?;
            Ok(json(&Pong { message: "pong" }))
        }
    }
}

/// The Markdown of a digest.
pub(super) fn text(
    snapshot: &Snapshot,
    digest: &TextDigest,
    now: Timestamp,
) -> Result<String, ApiError> {
    let markdown = snapshot
        .text(digest, now)
        .ok_or_else(ApiError::no_such_text)?;
    markdown.unpack().map_err(|_| damaged(digest))
}

fn json<'s>(body: &impl serde::Serialize) -> Resource<'s> {
    // Lists of texts can't fail to become JSON.
    Resource::whole(serde_json::to_vec(body).unwrap_or_default())
}

fn list_products<'s>(
    snapshot: &'s Snapshot,
    query: Option<&str>,
) -> Result<Resource<'s>, ApiError> {
    let list = parameters::list(query)?;
    let page = snapshot.page(&list);
    // The products and the limit determine every byte of the page.
    let parts = [&page.hash()[..], &list.limit.get().to_le_bytes()];
    Ok(Resource {
        tag: EntityTag::of_parts(parts.into_iter()),
        link: link(&page, query.unwrap_or_default()),
        body: Box::new(move || page_body(&page, &list)),
    })
}

/// A page as JSON: the products' bytes are copied between what stands around them.
fn page_body(page: &Page<'_>, list: &ListQuery) -> Vec<u8> {
    let pagination = Pagination {
        cursors: Cursors {
            before: page.first().map(Into::into),
            after: page.last().map(Into::into),
        },
        page: PageSize {
            limit: u16::try_from(list.limit.get()).unwrap_or(u16::MAX),
        },
    };
    let (head, middle, end) = (&b"{\"catalog\":["[..], &b"],\"pagination\":"[..], &b"}"[..]);
    let pagination = serde_json::to_vec(&pagination).unwrap_or_default();
    let slices: Vec<&[u8]> = page.slices().collect();
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
    match form {
        ContentForm::Url => Ok(Resource {
            tag: EntityTag::from_hash(product.hash()),
            link: None,
            body: Box::new(move || product.bytes().to_vec()),
        }),
        ContentForm::Md | ContentForm::Html => {
            with_texts(snapshot, app, product, form).map(Resource::whole)
        }
    }
}

/// A product with its texts in another form than the one that it was rendered with.
fn with_texts(
    snapshot: &Snapshot,
    app: &App,
    product: ProductView<'_>,
    form: ContentForm,
) -> Result<Vec<u8>, ApiError> {
    let bytes = product.bytes();
    let Some(content) = product.content() else {
        return Ok(bytes.to_vec());
    };
    let now = Timestamp::now();
    let mut failure = None;
    let mut markdown = |digest| {
        let unpacked = snapshot.text(&digest, now)?.unpack();
        unpacked.map_err(|_| failure = Some(damaged(&digest))).ok()
    };
    let rendered = content_json(&bytes[content.clone()], form, |url| {
        let digest = app.addresses.digest(url)?;
        if form == ContentForm::Md {
            return markdown(digest);
        }
        let html = app.html.render(digest, || markdown(digest))?;
        Some(html.to_string())
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let rendered = rendered.map_err(|error| {
        let (code, error): (_, &dyn std::error::Error) = (product.code(), &error);
        tracing::error!(code, error, "the content resources can't be read back");
        ApiError::plain(ErrorType::InternalServerError)
    })?;
    Ok([&bytes[..content.start], &rendered, &bytes[content.end..]].concat())
}

/// A text that doesn't unpack: the log names it, the client learns only that the service failed.
fn damaged(digest: &TextDigest) -> ApiError {
    tracing::error!(%digest, "a text is damaged");
    ApiError::plain(ErrorType::InternalServerError)
}
