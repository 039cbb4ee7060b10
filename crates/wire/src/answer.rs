//! The bodies of the operations other than the product's own.

use std::borrow::Cow;

use serde::Serialize;

use crate::product::Product;

/// One page of the catalog.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProductList<'a> {
    /// The products, ordered by code, byte-wise ascending. Their texts are in URL form.
    pub catalog: Vec<Product<'a>>,
    /// Where the page lies.
    pub pagination: Pagination<'a>,
}

/// Where a page lies.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pagination<'a> {
    /// The page's edges.
    pub cursors: Cursors<'a>,
    /// The page's size.
    pub page: PageSize,
}

/// The page's edges. Both stand on every page that has products, the last one included; on an empty page both are null.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cursors<'a> {
    /// Pass it as `before` to get the products ahead of this page.
    pub before: Option<Cow<'a, str>>,
    /// Pass it as `after` to get the products that follow this page.
    pub after: Option<Cow<'a, str>>,
}

/// The page's size.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageSize {
    /// The greatest number of products on the page.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 500)))]
    pub limit: u16,
}

/// The categories of the live catalog.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CategoryList<'a> {
    /// The categories that some product names, sorted by code.
    pub categories: Vec<Category<'a>>,
}

/// A category.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Category<'a> {
    /// The category's name, as the `categories` filter takes it.
    pub code: Cow<'a, str>,
}

/// The countries of the live catalog.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountryList<'a> {
    /// ISO 3166-1 alpha-2 codes of the countries that some product can be redeemed in, sorted.
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = "^[A-Z]{2}$"))))]
    pub countries: Vec<Cow<'a, str>>,
}

/// The answer to a ping.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pong {
    /// Always `pong`.
    pub message: &'static str,
}
