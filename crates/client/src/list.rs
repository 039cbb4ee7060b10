//! List requests.

use std::marker::PhantomData;

use reqwest::header::ETAG;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::answer::Page;
use crate::client::Client;
use crate::filters::{Filters, Target, filter_methods};
use crate::pages;
use crate::product::Product;
use crate::stream::Results;
use crate::transport::Answer;

/// Start and direction of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Cursor {
    #[default]
    Start,
    After(String),
    Before(String),
}

/// Request for a list of products. Values of one filter are alternatives; filters narrow each other.
///
/// `T` is the type of each product; [`read_as`](Self::read_as) changes it.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until a page or a stream is taken of it"]
pub struct ProductsRequest<T = Product> {
    client: Client,
    filters: Filters,
    search: Option<String>,
    pub(crate) cursor: Cursor,
    product: PhantomData<fn() -> T>,
}

impl ProductsRequest {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            filters: Filters::default(),
            search: None,
            cursor: Cursor::Start,
            product: PhantomData,
        }
    }
}

impl<T> ProductsRequest<T> {
    filter_methods!();

    /// Sets the words that a person typed: a word of the name, or a part of the code, must begin with each. At most 100
    /// characters and 8 words.
    pub fn search(mut self, words: impl Into<String>) -> Self {
        self.search = Some(words.into());
        self
    }

    /// Starts after this cursor: `pagination.cursors.after` of a page, or the code of a product.
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Cursor::After(cursor.into());
        self
    }

    /// Ends before this cursor, `pagination.cursors.before` of a page; replaces [`after`](Self::after).
    /// [`pages`](Self::pages) then walks backwards; each page is in ascending order all the same.
    pub fn before(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Cursor::Before(cursor.into());
        self
    }

    /// Reads each product as another type; [`Json`](crate::Json) is the JSON that the server sent, byte for byte.
    pub fn read_as<U: DeserializeOwned>(self) -> ProductsRequest<U> {
        ProductsRequest {
            client: self.client,
            filters: self.filters,
            search: self.search,
            cursor: self.cursor,
            product: PhantomData,
        }
    }

    pub(crate) fn target(&self) -> String {
        let mut target = Target::new("/product");
        self.filters.put(&mut target);
        if let Some(search) = &self.search {
            target.put("q", search);
        }
        match &self.cursor {
            Cursor::Start => {}
            Cursor::After(cursor) => target.put("after", cursor),
            Cursor::Before(cursor) => target.put("before", cursor),
        }
        target.into_string()
    }
}

impl<T: DeserializeOwned> ProductsRequest<T> {
    /// Fetches one page.
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub async fn page(&self) -> Result<Page<T>> {
        let answer = self.client.0.get(&self.target()).await?;
        self.read(&answer)
    }

    /// Fetches one page, unless it still has this entity tag: [`Page::etag`] of an earlier answer to the same request.
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub async fn page_unless(&self, etag: &str) -> Result<Option<Page<T>>> {
        let answer = self.client.0.get_unless(&self.target(), etag).await?;
        answer.map(|answer| self.read(&answer)).transpose()
    }

    fn read(&self, answer: &Answer) -> Result<Page<T>> {
        let etag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        Ok(Page {
            etag: etag.map(str::to_owned),
            ..self.client.0.decode(&answer.body)?
        })
    }
}

impl<T: DeserializeOwned + Send + 'static> ProductsRequest<T> {
    /// Returns a stream of all pages with products. To resume it later, pass the last page's cursor to
    /// [`after`](Self::after), or to [`before`](Self::before) on a walk backwards.
    pub fn pages(self) -> Results<Page<T>> {
        pages::pages(self)
    }

    /// Returns a stream of all products. To resume it later, pass the code of the last product to
    /// [`after`](Self::after).
    pub fn stream(self) -> Results<T> {
        pages::products(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Client, Key};

    #[test]
    fn query_values_are_encoded_in_the_contracts_order() {
        let client = Client::new("http://127.0.0.1", Key::new("a.b").unwrap()).unwrap();
        let list = client.products();
        assert_eq!(list.target(), "/product");
        let list = list
            .category("café & bistro")
            .countries(["SE", "DE"])
            .codes(["A", "B"])
            .payout_types(["gift_card"])
            .currencies(["SEK", "EUR"])
            .limit(5)
            .orderable();
        assert_eq!(
            list.clone().after("A~b+c").target(),
            "/product?countries_redeemable_in=SE&countries_redeemable_in=DE\
             &categories=caf%C3%A9%20%26%20bistro&currencies=SEK&currencies=EUR&payout_types=gift_card\
             &codes=A&codes=B&is_orderable=true&limit=5&after=A~b%2Bc"
        );
        // The last cursor replaces the other one: they can't be combined.
        let back = list.after("A").before("B").target();
        assert!(
            back.ends_with("&before=B") && !back.contains("after="),
            "{back}"
        );
    }
}
