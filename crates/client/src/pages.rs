//! Walks over the pages of a list: by cursors, until a page is empty or has none (docs/contract/listing.md#cursors).
//!
//! A product that is in the catalog from the first page to the last comes exactly once, despite changes of others: the list
//! is ordered by code, and a cursor is a code. Products that are added or removed meanwhile come at most once.

use std::collections::HashSet;

use futures_util::stream::{self, TryStreamExt as _};
use serde::de::DeserializeOwned;

use crate::Result;
use crate::answer::Page;
use crate::error::{Error, Escaped};
use crate::list::{Cursor, ProductsRequest};
use crate::stream::Results;

/// Returns the pages with products; an error ends them.
pub(crate) fn pages<T: DeserializeOwned + Send + 'static>(
    request: ProductsRequest<T>,
) -> Results<Page<T>> {
    // Cursors seen so far, none of which may repeat.
    let start = Some((request, HashSet::new()));
    Results::new(stream::try_unfold(start, |walk| async move {
        let Some((mut request, mut seen)) = walk else {
            return Ok(None);
        };
        let page = request.page().await?;
        if page.catalog.is_empty() {
            return Ok(None);
        }
        let cursors = &page.pagination.cursors;
        let (cursor, is_back) = match request.cursor {
            Cursor::Before(_) => (cursors.before.clone(), true),
            Cursor::Start | Cursor::After(_) => (cursors.after.clone(), false),
        };
        let Some(cursor) = cursor else {
            return Ok(Some((page, None)));
        };
        if !seen.insert(cursor.clone()) {
            let cursor = Escaped(&cursor).to_string();
            return Err(Error::Circle { cursor });
        }
        request.cursor = match is_back {
            true => Cursor::Before(cursor),
            false => Cursor::After(cursor),
        };
        Ok(Some((page, Some((request, seen)))))
    }))
}

/// Returns the products, page by page.
pub(crate) fn products<T: DeserializeOwned + Send + 'static>(
    request: ProductsRequest<T>,
) -> Results<T> {
    let products = pages(request)
        .map_ok(|page| stream::iter(page.catalog.into_iter().map(Result::Ok)))
        .try_flatten();
    Results::new(products)
}
