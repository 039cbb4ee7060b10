//! The bodies of the operations other than the product's own.

use serde::Deserialize;

use crate::object::object;
use crate::product::Product;

/// One page of the catalog. `T` is what each product is read as.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Page<T = Product> {
    /// The products, ordered by code, byte-wise ascending. Their texts are in URL form.
    pub catalog: Vec<T>,
    /// Where the page lies.
    pub pagination: Pagination,
}

object!(
    /// Where a page lies.
    Pagination {
        /// The page's edges.
        cursors: Cursors,
        /// The page's size.
        page [absent]: Option<PageSize>,
    }
);

object!(
    /// The page's edges. Both stand on every page that has products, the last one included; on an empty page both are `None`.
    Cursors {
        /// Pass it as `before` to get the products ahead of this page.
        before: Option<String>,
        /// Pass it as `after` to get the products that follow this page.
        after: Option<String>,
    }
);

object!(
    /// The page's size.
    PageSize {
        /// The greatest number of products on the page.
        limit: u16,
    }
);

object!(
    /// A category.
    Category {
        /// The category's name, as the `categories` filter takes it.
        code: String,
    }
);

/// The categories of the live catalog.
#[derive(Debug, Deserialize)]
pub(crate) struct CategoryList {
    pub(crate) categories: Vec<Category>,
}

/// The countries of the live catalog.
#[derive(Debug, Deserialize)]
pub(crate) struct CountryList {
    pub(crate) countries: Vec<String>,
}

/// The answer to a ping.
#[derive(Debug, Deserialize)]
pub(crate) struct Pong {
    #[serde(rename = "message")]
    pub(crate) _message: String,
}
