//! Response bodies of all operations but the product's own.

use serde::Deserialize;

use crate::object::object;
use crate::product::Product;

/// One page of the catalog. `T` is the type of each product.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Page<T = Product> {
    /// The products, ordered by code, byte-wise ascending. Their texts are in URL form.
    pub catalog: Vec<T>,
    /// Position and size of the page.
    pub pagination: Pagination,
    /// Entity tag of the page, for [`page_unless`](crate::ProductsRequest::page_unless).
    #[serde(skip)]
    pub etag: Option<String>,
}

object!(
    /// Position and size of a page.
    Pagination {
        /// Cursors of the adjacent pages.
        cursors: Cursors,
        /// Size of the page.
        page [absent]: Option<PageSize>,
    }
);

object!(
    /// Cursors of the adjacent pages. Pages with products have both, including the last page; on an empty page both are `None`.
    Cursors {
        /// Pass it as `before` to get the products before this page.
        before: Option<String>,
        /// Pass it as `after` to get the products after this page.
        after: Option<String>,
    }
);

object!(
    /// Size of a page.
    PageSize {
        /// Maximum number of products on the page.
        limit: u16,
    }
);

object!(
    /// A category.
    Category {
        /// Name of the category, a value for the `categories` filter.
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

/// Response to a ping.
#[derive(Debug, Deserialize)]
pub(crate) struct Pong {
    #[serde(rename = "message")]
    pub(crate) _message: String,
}
