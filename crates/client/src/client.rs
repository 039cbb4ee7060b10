//! Client of one server, with a method for each operation.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::Result;
use crate::address::{can_be_code, encode};
use crate::answer::{Category, CategoryList, CountryList, Pong};
use crate::builder::{BuildError, ClientBuilder};
use crate::cache::Cache;
use crate::changes::ChangesRequest;
use crate::content::{ContentHtml, ContentMarkdown};
use crate::error::Error;
use crate::key::Key;
use crate::list::ProductsRequest;
use crate::product::Product;
use crate::retry::{OnRetry, Retries};
use crate::version::ApiVersion;

/// Form of a product's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Content {
    /// URLs of Markdown.
    #[default]
    Url,
    /// Markdown.
    Md,
    /// Sanitised HTML.
    Html,
}

impl Content {
    /// Returns the value of the parameter `content`.
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
/// Its methods need a Tokio runtime; `blocking` is for programs without one. Dropping a method's future cancels the
/// request.
#[derive(Debug, Clone)]
pub struct Client(pub(crate) Arc<Inner>);

/// State that clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    /// Base URL with `/v2`, without a trailing slash.
    pub(crate) base_url: String,
    pub(crate) key: Key,
    pub(crate) retries: Retries,
    pub(crate) on_retry: OnRetry,
    /// Timeout of one attempt.
    pub(crate) timeout: Duration,
    pub(crate) most_body_bytes: usize,
    pub(crate) cache: Option<Cache>,
    pub(crate) api_version: ApiVersion,
}

impl Client {
    /// Creates a client with the default settings. `base_url` may end in `/v2`.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn new(base_url: &str, key: Key) -> std::result::Result<Self, BuildError> {
        Self::builder(base_url, key).build()
    }

    /// Returns a builder, for other settings than the defaults.
    #[must_use]
    pub fn builder(base_url: &str, key: Key) -> ClientBuilder {
        ClientBuilder::new(base_url, key)
    }

    /// Returns the base URL, with `/v2` and without a trailing slash.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.0.base_url
    }

    /// Returns a list request: add filters, then fetch one page, all pages or all products.
    pub fn products(&self) -> ProductsRequest {
        ProductsRequest::new(self.clone())
    }

    /// Returns a request for what changed, which keeps a copy of the catalog right: add filters, then
    /// [`sync`](ChangesRequest::sync), or fetch one page.
    pub fn changes(&self) -> ChangesRequest {
        ChangesRequest::new(self.clone())
    }

    /// Fetches a product with the URLs of its texts.
    ///
    /// # Errors
    ///
    /// See [`Error`]. If the product doesn't exist, [`Error::is_not_found`] is true.
    pub async fn product(&self, code: &str) -> Result<Product> {
        self.product_as(code, Content::Url).await
    }

    /// Fetches a product with its texts as Markdown.
    ///
    /// # Errors
    ///
    /// As [`product`](Self::product).
    pub async fn product_markdown(&self, code: &str) -> Result<Product<ContentMarkdown>> {
        self.product_as(code, Content::Md).await
    }

    /// Fetches a product with its texts as HTML that the server has sanitised.
    ///
    /// # Errors
    ///
    /// As [`product`](Self::product).
    pub async fn product_html(&self, code: &str) -> Result<Product<ContentHtml>> {
        self.product_as(code, Content::Html).await
    }

    /// Fetches a product as any type; [`Json`](crate::Json) is the JSON that the server sent, byte for byte.
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
            .get_json(&format!("/product/{}{parameter}", encode(code)))
            .await
    }

    /// Fetches the categories of the catalog, sorted: the values of the filter.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn categories(&self) -> Result<Vec<Category>> {
        let CategoryList { categories } = self.0.get_json("/product/categories").await?;
        Ok(categories)
    }

    /// Fetches the countries of the catalog, sorted: ISO 3166-1 alpha-2 codes, the values of the filter.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn countries(&self) -> Result<Vec<String>> {
        let CountryList { countries } = self.0.get_json("/product/countries").await?;
        Ok(countries)
    }

    /// Checks that the server responds and accepts the key.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn ping(&self) -> Result<()> {
        let Pong { .. } = self.0.get_json("/ping").await?;
        Ok(())
    }

    /// Fetches the Markdown at a URL of a product's `content_resources`, without sending the key.
    ///
    /// The catalog can contain any URL. Programs with access to a private network should check its host first, or get the
    /// texts from [`product_markdown`](Self::product_markdown).
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn text(&self, url: &str) -> Result<String> {
        self.0.get_text(url).await
    }
}
