//! Response bodies of all operations but the product's own.

use std::borrow::Cow;

use serde::Serialize;

use crate::product::Product;

/// One page of the catalog.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProductList<'a> {
    /// The products, ordered by code, byte-wise ascending. Their texts are in URL form.
    pub catalog: Vec<Product<'a>>,
    /// Position and size of the page.
    pub pagination: Pagination<'a>,
}

/// Position and size of a page.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pagination<'a> {
    /// Cursors of the adjacent pages.
    pub cursors: Cursors<'a>,
    /// Size of the page.
    pub page: PageSize,
}

/// Cursors of the adjacent pages. Pages with products have both, including the last page; on an empty page both are null.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cursors<'a> {
    /// Pass it as `before` to get the products before this page.
    pub before: Option<Cow<'a, str>>,
    /// Pass it as `after` to get the products after this page.
    pub after: Option<Cow<'a, str>>,
}

/// Size of a page.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageSize {
    /// Maximum number of products on the page.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 500)))]
    pub limit: u16,
}

/// Changes since a token, or everything visible at the beginning of a copy.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes<'a> {
    /// The changes, ordered by code, byte-wise ascending. A code is there only once.
    pub changes: Vec<Change<'a>>,
    /// Token for the next request, as `since`. Store it together with the changes, in one transaction.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[A-Za-z0-9_-]{1,400}$"))
    )]
    pub next: Cow<'a, str>,
    /// True if more changes are there already: ask again at once.
    pub has_more: bool,
}

/// A change of a product.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change<'a> {
    /// Product code.
    pub code: Cow<'a, str>,
    /// The product as it is now, as in the list; null if it isn't visible any more with this key and these filters.
    pub product: Option<Product<'a>>,
}

/// The categories of the live catalog.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CategoryList<'a> {
    /// Categories with products, sorted by code.
    pub categories: Vec<Category<'a>>,
}

/// A category.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Category<'a> {
    /// Name of the category, a value for the `categories` filter.
    pub code: Cow<'a, str>,
}

/// The countries of the live catalog.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountryList<'a> {
    /// ISO 3166-1 alpha-2 codes of the countries in which products can be redeemed, sorted.
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = "^[A-Z]{2}$"))))]
    pub countries: Vec<Cow<'a, str>>,
}

/// Response to a ping.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pong {
    /// Always `pong`.
    pub message: &'static str,
}
