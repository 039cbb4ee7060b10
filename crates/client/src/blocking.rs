//! The same without async: methods that wait, and pages as iterators.
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
//! Its methods panic where they are called from async code, since they would keep its thread from everything else: there, use
//! [`crate::Client`].

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::builder::{BuildError, ClientBuilder};
use crate::client::Content;
use crate::content::{ContentHtml, ContentMarkdown};
use crate::list::ProductsRequest;
use crate::product::Product;
use crate::{Category, Key, Page, Result};

/// A [`crate::Client`] whose methods wait. It is cheap to clone, and threads may share it.
#[derive(Debug, Clone)]
pub struct Client {
    client: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// A client with the usual settings. `base_url` is given with `/v2` or without.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn new(base_url: &str, key: Key) -> std::result::Result<Self, BuildError> {
        Self::build(crate::Client::builder(base_url, key))
    }

    /// A client with settings of your own, from [`crate::Client::builder`].
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

    /// The server's address, with `/v2` and without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.client.base_url()
    }

    /// A list of products, to be narrowed, for [`page`](Self::page), [`pages`](Self::pages) and [`all`](Self::all).
    pub fn products(&self) -> ProductsRequest {
        self.client.products()
    }

    /// One page of a list.
    ///
    /// # Errors
    ///
    /// As every method: see [`Error`](crate::Error).
    pub fn page<T: DeserializeOwned>(&self, list: &ProductsRequest<T>) -> Result<Page<T>> {
        self.runtime.block_on(list.page())
    }

    /// All pages of a list, as [`Pages`](crate::Pages) tells.
    pub fn pages<T: DeserializeOwned + Send + 'static>(
        &self,
        list: ProductsRequest<T>,
    ) -> impl Iterator<Item = Result<Page<T>>> + use<T> {
        let (runtime, mut pages) = (Arc::clone(&self.runtime), list.pages());
        std::iter::from_fn(move || runtime.block_on(pages.next()))
    }

    /// All products of a list, as [`Items`](crate::Items) tells.
    pub fn all<T: DeserializeOwned + Send + 'static>(
        &self,
        list: ProductsRequest<T>,
    ) -> impl Iterator<Item = Result<T>> + use<T> {
        let (runtime, mut products) = (Arc::clone(&self.runtime), list.stream());
        std::iter::from_fn(move || runtime.block_on(products.next()))
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
