//! Blocking client: methods that block, and pages as iterators.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.in"));
//! use vitrine_client::{Key, blocking::Client};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = StandIn::start();
//! # let (base_url, key) = (server.base_url(), "partner.s3cret");
//! let client = Client::new(&base_url, Key::new(key)?)?;
//! for product in client.all(client.products().orderable()) {
//!     let product = product?;
//!     println!("{} {}", product.code, product.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Its methods panic if they are called from async code, because they would block its thread: use [`crate::Client`] there.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::builder::{BuildError, ClientBuilder};
use crate::changes::{ChangesPage, ChangesRequest};
use crate::client::Content;
use crate::content::{ContentHtml, ContentMarkdown};
use crate::list::ProductsRequest;
use crate::product::Product;
use crate::sync::SyncEvent;
use crate::{Category, Key, Page, Result};

/// A [`crate::Client`] whose methods block. It is cheap to clone, and threads may share it.
#[derive(Debug, Clone)]
pub struct Client {
    client: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// Creates a client with the default settings. `base_url` may end in `/v2`.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn new(base_url: &str, key: Key) -> std::result::Result<Self, BuildError> {
        Self::build(crate::Client::builder(base_url, key))
    }

    /// Creates a client with the settings of [`crate::Client::builder`].
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn build(builder: ClientBuilder) -> std::result::Result<Self, BuildError> {
        let client = builder.build()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| BuildError::Http(error.to_string()))?;
        Ok(Self {
            client,
            runtime: Arc::new(runtime),
        })
    }

    /// Returns the base URL, with `/v2` and without a trailing slash.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.client.base_url()
    }

    /// Returns a list request, for [`page`](Self::page), [`pages`](Self::pages) and [`all`](Self::all).
    pub fn products(&self) -> ProductsRequest {
        self.client.products()
    }

    /// Fetches one page of a list.
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn page<T: DeserializeOwned>(&self, list: &ProductsRequest<T>) -> Result<Page<T>> {
        self.runtime.block_on(list.page())
    }

    /// Iterates over all pages of a list, like [`ProductsRequest::pages`].
    pub fn pages<T: DeserializeOwned + Send + 'static>(
        &self,
        list: ProductsRequest<T>,
    ) -> impl Iterator<Item = Result<Page<T>>> + use<T> {
        let (runtime, mut pages) = (Arc::clone(&self.runtime), list.pages());
        std::iter::from_fn(move || runtime.block_on(pages.next()))
    }

    /// Iterates over all products of a list, like [`ProductsRequest::stream`].
    pub fn all<T: DeserializeOwned + Send + 'static>(
        &self,
        list: ProductsRequest<T>,
    ) -> impl Iterator<Item = Result<T>> + use<T> {
        let (runtime, mut products) = (Arc::clone(&self.runtime), list.stream());
        std::iter::from_fn(move || runtime.block_on(products.next()))
    }

    /// Returns a request for what changed, for [`changes_page`](Self::changes_page) and [`sync`](Self::sync).
    pub fn changes(&self) -> ChangesRequest {
        self.client.changes()
    }

    /// Fetches one page of changes, like [`ChangesRequest::page`].
    ///
    /// # Errors
    ///
    /// As [`ChangesRequest::page`].
    pub fn changes_page<T: DeserializeOwned>(
        &self,
        changes: &ChangesRequest<T>,
    ) -> Result<ChangesPage<T>> {
        self.runtime.block_on(changes.page())
    }

    /// Keeps a copy of the catalog right, like [`ChangesRequest::sync`]: iterates over changes and their tokens. The iterator
    /// ends only with an error, and waits for the server while nothing changes.
    pub fn sync<T: DeserializeOwned + Send + 'static>(
        &self,
        changes: ChangesRequest<T>,
        stored: Option<String>,
    ) -> impl Iterator<Item = Result<SyncEvent<T>>> + use<T> {
        let (runtime, mut events) = (Arc::clone(&self.runtime), changes.sync(stored));
        std::iter::from_fn(move || runtime.block_on(events.next()))
    }

    /// As [`crate::Client::product`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn product(&self, code: &str) -> Result<Product> {
        self.runtime.block_on(self.client.product(code))
    }

    /// As [`crate::Client::product_markdown`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn product_markdown(&self, code: &str) -> Result<Product<ContentMarkdown>> {
        self.runtime.block_on(self.client.product_markdown(code))
    }

    /// As [`crate::Client::product_html`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn product_html(&self, code: &str) -> Result<Product<ContentHtml>> {
        self.runtime.block_on(self.client.product_html(code))
    }

    /// As [`crate::Client::product_as`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn product_as<T: DeserializeOwned>(&self, code: &str, content: Content) -> Result<T> {
        self.runtime.block_on(self.client.product_as(code, content))
    }

    /// As [`crate::Client::categories`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn categories(&self) -> Result<Vec<Category>> {
        self.runtime.block_on(self.client.categories())
    }

    /// As [`crate::Client::countries`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn countries(&self) -> Result<Vec<String>> {
        self.runtime.block_on(self.client.countries())
    }

    /// As [`crate::Client::ping`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn ping(&self) -> Result<()> {
        self.runtime.block_on(self.client.ping())
    }

    /// As [`crate::Client::text`].
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub fn text(&self, url: &str) -> Result<String> {
        self.runtime.block_on(self.client.text(url))
    }
}
