//! List requests.

use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::Result;
use crate::address::encode;
use crate::answer::Page;
use crate::client::Client;
use crate::pages::{Items, Pages};
use crate::product::Product;

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
#[must_use = "a request does nothing until a page or a stream is taken of it"]
pub struct ProductsRequest<T = Product> {
    client: Client,
    countries: Vec<String>,
    categories: Vec<String>,
    is_orderable: Option<bool>,
    limit: Option<u16>,
    pub(crate) cursor: Cursor,
    product: PhantomData<fn() -> T>,
}

impl ProductsRequest {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            countries: Vec::new(),
            categories: Vec::new(),
            is_orderable: None,
            limit: None,
            cursor: Cursor::Start,
            product: PhantomData,
        }
    }
}

impl<T> ProductsRequest<T> {
    /// Adds a country, an ISO 3166-1 alpha-2 code: products must be redeemable in one of the added countries.
    pub fn country(mut self, country: &str) -> Self {
        self.countries.push(country.to_owned());
        self
    }

    /// Adds countries: products must be redeemable in one of the added countries.
    pub fn countries<C: AsRef<str>>(self, countries: impl IntoIterator<Item = C>) -> Self {
        countries
            .into_iter()
            .fold(self, |list, country| list.country(country.as_ref()))
    }

    /// Adds a category: products must be in one of the added categories.
    pub fn category(mut self, category: &str) -> Self {
        self.categories.push(category.to_owned());
        self
    }

    /// Adds categories: products must be in one of the added categories.
    pub fn categories<C: AsRef<str>>(self, categories: impl IntoIterator<Item = C>) -> Self {
        categories
            .into_iter()
            .fold(self, |list, category| list.category(category.as_ref()))
    }

    /// Selects only products that can be ordered: those to show to end users.
    pub fn orderable(self) -> Self {
        self.is_orderable(true)
    }

    /// Sets the parameter `is_orderable`; `false` filters nothing.
    pub fn is_orderable(mut self, is_orderable: bool) -> Self {
        self.is_orderable = Some(is_orderable);
        self
    }

    /// Sets the maximum number of products on a page, from 1 to 500. The server's default is 500.
    pub fn limit(mut self, limit: u16) -> Self {
        self.limit = Some(limit);
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
        let Self {
            client,
            countries,
            categories,
            is_orderable,
            limit,
            cursor,
            product: _,
        } = self;
        let product = PhantomData;
        ProductsRequest {
            client,
            countries,
            categories,
            is_orderable,
            limit,
            cursor,
            product,
        }
    }

    pub(crate) fn target(&self) -> String {
        let mut target = "/product".to_owned();
        let mut put = |name: &str, value: &str| {
            let sign = if target.contains('?') { '&' } else { '?' };
            // Writing to a string can't fail.
            let _ = write!(target, "{sign}{name}={}", encode(value));
        };
        self.countries
            .iter()
            .for_each(|country| put("countries_redeemable_in", country));
        self.categories
            .iter()
            .for_each(|category| put("categories", category));
        if let Some(is_orderable) = self.is_orderable {
            put("is_orderable", if is_orderable { "true" } else { "false" });
        }
        if let Some(limit) = self.limit {
            put("limit", &limit.to_string());
        }
        match &self.cursor {
            Cursor::Start => {}
            Cursor::After(cursor) => put("after", cursor),
            Cursor::Before(cursor) => put("before", cursor),
        }
        target
    }
}

impl<T: DeserializeOwned> ProductsRequest<T> {
    /// Fetches one page.
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error).
    pub async fn page(&self) -> Result<Page<T>> {
        self.client.0.get_json(&self.target()).await
    }
}

impl<T: DeserializeOwned + Send + 'static> ProductsRequest<T> {
    /// Returns a stream of all pages.
    pub fn pages(self) -> Pages<T> {
        Pages::new(self)
    }

    /// Returns a stream of all products.
    pub fn stream(self) -> Items<T> {
        Items::new(self.pages())
    }
}

impl<T> Clone for ProductsRequest<T> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            countries: self.countries.clone(),
            categories: self.categories.clone(),
            is_orderable: self.is_orderable,
            limit: self.limit,
            cursor: self.cursor.clone(),
            product: PhantomData,
        }
    }
}

impl<T> fmt::Debug for ProductsRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProductsRequest")
            .field(&self.target())
            .finish()
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
            .limit(5)
            .orderable();
        assert_eq!(
            list.clone().after("A~b+c").target(),
            "/product?countries_redeemable_in=SE&countries_redeemable_in=DE\
             &categories=caf%C3%A9%20%26%20bistro&is_orderable=true&limit=5&after=A~b%2Bc"
        );
        // The last cursor replaces the other one: they can't be combined.
        let back = list.after("A").before("B").target();
        assert!(
            back.ends_with("&before=B") && !back.contains("after="),
            "{back}"
        );
    }
}
