//! Walks over the pages of a list: by cursors, until a page is empty or has none (docs/contract/listing.md#cursors).
//!
//! A product that is in the catalog from the first page to the last comes exactly once, whatever changes around it: the list is
//! ordered by code, and a cursor is the code where it goes on. One that comes or goes meanwhile comes once or not at all.

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
use crate::error::{Error, Plain};
use crate::list::{Cursor, ProductsRequest};
use crate::product::Product;

type InFlight<T> = Pin<Box<dyn Future<Output = Result<Page<T>>> + Send>>;

/// The pages of a list, as a stream. It ends with the last page that has products, or with an error; a list without products
/// has no page.
///
/// A walk that was interrupted goes on from [`cursor`](Self::cursor), now or next week.
#[must_use = "a stream does nothing until it is asked for its next item"]
pub struct Pages<T = Product> {
    request: ProductsRequest<T>,
    in_flight: Option<InFlight<T>>,
    /// Cursors that were followed: none may come again.
    followed: HashSet<String>,
    is_over: bool,
}

impl<T: DeserializeOwned + Send + 'static> Pages<T> {
    pub(crate) fn new(request: ProductsRequest<T>) -> Self {
        Self {
            request,
            in_flight: None,
            followed: HashSet::new(),
            is_over: false,
        }
    }

    /// The next page.
    pub async fn next(&mut self) -> Option<Result<Page<T>>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Where the walk stands: the cursor behind the last page that came, for [`ProductsRequest::after`] (or
    /// [`before`](ProductsRequest::before) on a walk back). `None` at the start.
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        match &self.request.cursor {
            Cursor::Start => None,
            Cursor::After(cursor) | Cursor::Before(cursor) => Some(cursor),
        }
    }

    /// Takes note of a page: where it goes on, or that it was the last.
    fn take(&mut self, page: Page<T>) -> Option<Result<Page<T>>> {
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
            Some(cursor) if self.followed.insert(cursor.clone()) => {
                self.request.cursor = if is_back {
                    Cursor::Before(cursor)
                } else {
                    Cursor::After(cursor)
                };
            }
            Some(cursor) => {
                self.is_over = true;
                return Some(Err(Error::Circle {
                    cursor: Plain(&cursor).to_string(),
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
            Ok(page) => self.take(page),
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

/// The products of a list, as a stream over its [`Pages`]. It ends with the last product, or with an error.
///
/// To go on later, ask for what comes [`after`](ProductsRequest::after) the code of the last product that you had.
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

    /// The next product.
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
