//! A client of one server: one method an operation.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::Result;
use crate::address::{can_be_code, encode};
use crate::answer::{Category, CategoryList, CountryList, Pong};
use crate::builder::{BuildError, ClientBuilder};
use crate::cache::Cache;
use crate::content::{ContentHtml, ContentMarkdown};
use crate::error::Error;
use crate::key::Key;
use crate::list::ProductsRequest;
use crate::product::Product;
use crate::retry::Retries;

/// The form of a product's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Content {
    /// Addresses of Markdown.
    #[default]
    Url,
    /// Markdown.
    Md,
    /// Sanitised HTML.
    Html,
}

impl Content {
    /// The value of the parameter `content`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Md => "md",
            Self::Html => "html",
        }
    }
}

/// A client of one server with one key. It is cheap to clone, and clones share connections and the cache.
///
/// Its methods need a Tokio runtime; `blocking` has the same for programs without one. A method whose future is dropped
/// stops asking.
#[derive(Debug, Clone)]
pub struct Client(pub(crate) Arc<Inner>);

/// What clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    /// With `/v2`, and without a slash at the end.
    pub(crate) base_url: String,
    pub(crate) key: Key,
    pub(crate) retries: Retries,
    pub(crate) most_body_bytes: usize,
    pub(crate) cache: Option<Cache>,
}

impl Client {
    /// A client with the usual settings. `base_url` is given with `/v2` or without.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn new(base_url: &str, key: Key) -> std::result::Result<Self, BuildError> {
        Self::builder(base_url, key).build()
    }

    /// A client with settings of your own.
    #[must_use]
    pub fn builder(base_url: &str, key: Key) -> ClientBuilder {
        ClientBuilder::new(base_url, key)
    }

    /// The server's address, with `/v2` and without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.0.base_url
    }

    /// Lists products: narrow the request that this returns, then take a page, all pages or all products of it.
    pub fn products(&self) -> ProductsRequest {
        ProductsRequest::new(self.clone())
    }

    /// A product with the addresses of its texts.
    ///
    /// # Errors
    ///
    /// As every method: see [`Error`]. Where there is no such product, [`Error::is_not_found`] says so.
    pub async fn product(&self, code: &str) -> Result<Product> {
        self.product_as(code, Content::Url).await
    }

    /// A product with its texts as Markdown.
    ///
    /// # Errors
    ///
    /// As [`product`](Self::product).
    pub async fn product_markdown(&self, code: &str) -> Result<Product<ContentMarkdown>> {
        self.product_as(code, Content::Md).await
    }

    /// A product with its texts as HTML that the server has sanitised.
    ///
    /// # Errors
    ///
    /// As [`product`](Self::product).
    pub async fn product_html(&self, code: &str) -> Result<Product<ContentHtml>> {
        self.product_as(code, Content::Html).await
    }

    /// A product as a type of yours: [`Json`](crate::Json) is what the server sent, to the letter.
    ///
    /// # Errors
    ///
    /// As [`product`](Self::product).
    pub async fn product_as<T: DeserializeOwned>(&self, code: &str, content: Content) -> Result<T> {
        if !can_be_code(code) {
            return Err(Error::Request(format!(
                "{code:?} can't be the code of a product"
            )));
        }
        let parameter = match content {
            Content::Url => String::new(),
            other => format!("?content={}", other.as_str()),
        };
        self.0
            .ask(&format!("/product/{}{parameter}", encode(code)))
            .await
    }

    /// The categories of the catalog, sorted: the values that the filter takes.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn categories(&self) -> Result<Vec<Category>> {
        let CategoryList { categories } = self.0.ask("/product/categories").await?;
        Ok(categories)
    }

    /// The countries of the catalog, sorted: ISO 3166-1 alpha-2 codes, the values that the filter takes.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn countries(&self) -> Result<Vec<String>> {
        let CountryList { countries } = self.0.ask("/product/countries").await?;
        Ok(countries)
    }

    /// Whether the server answers and takes the key.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn ping(&self) -> Result<()> {
        let Pong { .. } = self.0.ask("/ping").await?;
        Ok(())
    }

    /// The Markdown at an address that a product's `content_resources` has. The key isn't sent there.
    ///
    /// The address is whatever the catalog says. A program that can reach what strangers shouldn't, such as a private network,
    /// had better look at its host first, or take the texts from [`product_markdown`](Self::product_markdown).
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn text(&self, url: &str) -> Result<String> {
        self.0.text(url).await
    }
}
