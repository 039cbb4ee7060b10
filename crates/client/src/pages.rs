//! Walks over the pages of a list: by cursors, until a page is empty or has none (docs/contract/listing.md#cursors).
//!
//! A product that is in the catalog from the first page to the last comes exactly once, despite changes of others: the list
//! is ordered by code, and a cursor is a code. Products that are added or removed meanwhile come at most once.

use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use futures_core::Stream;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::answer::Page;
use crate::error::{Error, Escaped};
use crate::list::{Cursor, ProductsRequest};
use crate::product::Product;

type InFlight<T> = Pin<Box<dyn Future<Output = Result<Page<T>>> + Send>>;

/// Stream of the pages of a list. It ends after the last page with products, or with an error; a list without products
/// has no page.
///
/// An interrupted walk can be resumed from [`cursor`](Self::cursor) at any time.
#[must_use = "a stream does nothing until it is asked for its next item"]
pub struct Pages<T = Product> {
    request: ProductsRequest<T>,
    in_flight: Option<InFlight<T>>,
    /// Cursors seen so far, none of which may repeat.
    seen_cursors: HashSet<String>,
    is_over: bool,
}

impl<T: DeserializeOwned + Send + 'static> Pages<T> {
    pub(crate) fn new(request: ProductsRequest<T>) -> Self {
        Self {
            request,
            in_flight: None,
            seen_cursors: HashSet::new(),
            is_over: false,
        }
    }

    /// Returns the next page.
    pub async fn next(&mut self) -> Option<Result<Page<T>>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the cursor after the last page, for [`ProductsRequest::after`] (or [`before`](ProductsRequest::before) on a
    /// walk backwards). `None` at the start.
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        match &self.request.cursor {
            Cursor::Start => None,
            Cursor::After(cursor) | Cursor::Before(cursor) => Some(cursor),
        }
    }

    /// Advances to the cursor of a page, or ends the walk.
    fn advance(&mut self, page: Page<T>) -> Option<Result<Page<T>>> {
        let is_back = matches!(self.request.cursor, Cursor::Before(_));
        let cursors = &page.pagination.cursors;
        let cursor = if is_back {
            &cursors.before
        } else {
            &cursors.after
        };
        if page.catalog.is_empty() {
            self.is_over = true;
            return None;
        }
        match cursor.clone() {
            None => self.is_over = true,
            Some(cursor) if self.seen_cursors.insert(cursor.clone()) => {
                self.request.cursor = if is_back {
                    Cursor::Before(cursor)
                } else {
                    Cursor::After(cursor)
                };
            }
            Some(cursor) => {
                self.is_over = true;
                return Some(Err(Error::Circle {
                    cursor: Escaped(&cursor).to_string(),
                }));
            }
        }
        Some(Ok(page))
    }
}

impl<T: DeserializeOwned + Send + 'static> Stream for Pages<T> {
    type Item = Result<Page<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.in_flight.is_none() {
            let request = self.request.clone();
            self.in_flight = Some(Box::pin(async move { request.page().await }));
        }
        let Some(in_flight) = &mut self.in_flight else {
            return Poll::Ready(None);
        };
        let outcome = ready!(in_flight.as_mut().poll(context));
        self.in_flight = None;
        Poll::Ready(match outcome {
            Ok(page) => self.advance(page),
            Err(error) => {
                self.is_over = true;
                Some(Err(error))
            }
        })
    }
}

// Nothing in it is pinned.
impl<T> Unpin for Pages<T> {}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pages").field(&self.request).finish()
    }
}

/// Stream of the products of a list, page by page ([`Pages`]). It ends after the last product, or with an error.
///
/// To resume later, pass the code of the last product to [`after`](ProductsRequest::after).
#[must_use = "a stream does nothing until it is asked for its next item"]
#[derive(Debug)]
pub struct Items<T = Product> {
    pages: Pages<T>,
    products: vec::IntoIter<T>,
}

impl<T: DeserializeOwned + Send + 'static> Items<T> {
    pub(crate) fn new(pages: Pages<T>) -> Self {
        Self {
            pages,
            products: Vec::new().into_iter(),
        }
    }

    /// Returns the next product.
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<T: DeserializeOwned + Send + 'static> Stream for Items<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(product) = self.products.next() {
                return Poll::Ready(Some(Ok(product)));
            }
            match ready!(Pin::new(&mut self.pages).poll_next(context)) {
                Some(Ok(page)) => self.products = page.catalog.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<T> Unpin for Items<T> {}
