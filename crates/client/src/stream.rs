//! Streams of results: pages, products, events of a sync.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{BoxStream, Stream, StreamExt as _};

use crate::Result;

/// Stream of results, which ends after an error. Dropping the future of [`next`](Self::next) loses nothing.
#[must_use = "a stream does nothing until it is asked for its next item"]
pub struct Results<T>(BoxStream<'static, Result<T>>);

impl<T> Results<T> {
    pub(crate) fn new(stream: impl Stream<Item = Result<T>> + Send + 'static) -> Self {
        Self(stream.boxed())
    }

    /// Returns the next item.
    pub async fn next(&mut self) -> Option<Result<T>> {
        self.0.next().await
    }
}

impl<T> Stream for Results<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl<T> fmt::Debug for Results<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").finish_non_exhaustive()
    }
}
