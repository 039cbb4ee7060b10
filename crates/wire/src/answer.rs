//! Response bodies that aren't made of products.

use std::borrow::Cow;

use serde::Serialize;

/// Position and size of a page.
#[derive(Debug, Serialize)]
pub struct Pagination<'a> {
    /// Cursors of the adjacent pages.
    pub cursors: Cursors<'a>,
    /// Size of the page.
    pub page: PageSize,
}

/// Cursors of the adjacent pages. Pages with products have both, including the last page; on an empty page both are null.
#[derive(Debug, Serialize)]
pub struct Cursors<'a> {
    /// Pass it as `before` to get the products before this page.
    pub before: Option<Cow<'a, str>>,
    /// Pass it as `after` to get the products after this page.
    pub after: Option<Cow<'a, str>>,
}

/// Size of a page.
#[derive(Debug, Serialize)]
pub struct PageSize {
    /// Maximum number of products on the page.
    pub limit: u16,
}

/// The categories of the live catalog.
#[derive(Debug, Serialize)]
pub struct CategoryList<'a> {
    /// Categories with products, sorted by code.
    pub categories: Vec<Category<'a>>,
}

/// A category.
#[derive(Debug, Serialize)]
pub struct Category<'a> {
    /// Name of the category, a value for the `categories` filter.
    pub code: Cow<'a, str>,
}

/// The countries of the live catalog.
#[derive(Debug, Serialize)]
pub struct CountryList<'a> {
    /// ISO 3166-1 alpha-2 codes of the countries in which products can be redeemed, sorted.
    pub countries: Vec<Cow<'a, str>>,
}

/// Response to a ping.
#[derive(Debug, Serialize)]
pub struct Pong {
    /// Always `pong`.
    pub message: &'static str,
}
