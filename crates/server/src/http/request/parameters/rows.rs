//! Rows of the query parameters.

use vitrine_model::query::Filter;

use super::{Example, Multiplicity, Parameter, Values};

/// Filter of products that can be ordered.
pub(super) const IS_ORDERABLE: Parameter = Parameter {
    name: "is_orderable",
    multiplicity: Multiplicity::One,
    values: Values::Boolean,
    description: "`true` gives only products that can be ordered; `false`, like its absence, gives all.",
    examples: &[(
        "orderable",
        "What can be ordered now",
        Example::Boolean(true),
    )],
};

/// Filter by countries.
pub(super) const COUNTRIES: Parameter = Parameter {
    name: "countries_redeemable_in",
    multiplicity: Multiplicity::Many,
    values: Values::Country,
    description: "Only products that can be redeemed in any of these countries (ISO 3166-1 alpha-2). Repeat the parameter once per country. `GET /product/countries` lists the countries of the catalog.",
    examples: &[
        ("one", "The United Kingdom", Example::List(&["GB"])),
        ("several", "Sweden or Denmark", Example::List(&["SE", "DK"])),
    ],
};

/// Filter by categories.
pub(super) const CATEGORIES: Parameter = Parameter {
    name: "categories",
    multiplicity: Multiplicity::Many,
    values: Values::Category,
    description: "Only products in any of these categories. Repeat the parameter once per category: a comma list of categories is refused. `GET /product/categories` lists the categories of the catalog.",
    examples: &[
        ("one", "One category", Example::List(&["food-and-drink"])),
        (
            "several",
            "Either category",
            Example::List(&["food-and-drink", "sports-and-outdoors"]),
        ),
    ],
};

/// Filter by currencies.
pub(super) const CURRENCIES: Parameter = Parameter {
    name: "currencies",
    multiplicity: Multiplicity::Many,
    values: Values::Currency,
    description: "Only products in any of these currencies (ISO 4217). Repeat the parameter once per currency.",
    examples: &[
        ("one", "Pounds", Example::List(&["GBP"])),
        (
            "several",
            "Kronor or kroner",
            Example::List(&["SEK", "DKK"]),
        ),
    ],
};

/// Filter by payout types.
pub(super) const PAYOUT_TYPES: Parameter = Parameter {
    name: "payout_types",
    multiplicity: Multiplicity::Many,
    values: Values::PayoutType,
    description: "Only products of any of these payout types. Repeat the parameter once per payout type.",
    examples: &[
        ("one", "Gift cards", Example::List(&["gift_card"])),
        (
            "several",
            "What isn't a gift card",
            Example::List(&["subscription", "payment"]),
        ),
    ],
};

/// Filter by codes.
pub(super) const CODES: Parameter = Parameter {
    name: "codes",
    multiplicity: Multiplicity::UpTo(Filter::MAX_CODES),
    values: Values::Code,
    description: "Only the products with these codes, 100 at most: a cart is checked with one request. Repeat the parameter once per code. Codes that no product has are left out of the answer.",
    examples: &[(
        "cart",
        "The products of a cart",
        Example::List(&["HALLOWMERE-GB", "TONVIK-SE"]),
    )],
};

/// Cursor of the previous page.
pub(super) const BEFORE: Parameter = Parameter {
    name: "before",
    multiplicity: Multiplicity::One,
    values: Values::Cursor,
    description: "The cursor for the previous page: `pagination.cursors.before` of a response. Not together with `after`.",
    examples: &[],
};

/// Cursor of the next page.
pub(super) const AFTER: Parameter = Parameter {
    name: "after",
    multiplicity: Multiplicity::One,
    values: Values::Cursor,
    description: "The cursor for the next page: `pagination.cursors.after` of a response. Not together with `before`.",
    examples: &[(
        "cursor",
        "A cursor of an earlier page",
        Example::Text("HALLOWMERE-GB"),
    )],
};

/// Size of a page of products.
pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    multiplicity: Multiplicity::One,
    values: Values::Limit,
    description: "The greatest number of products on the page.",
    examples: &[("page", "A page for a picker", Example::Number(50))],
};

/// Form of texts.
pub(super) const CONTENT: Parameter = Parameter {
    name: "content",
    multiplicity: Multiplicity::One,
    values: Values::ContentForm,
    description: "The form of the product's texts: `url` gives addresses of Markdown, `md` the Markdown itself, `html` sanitised HTML.",
    examples: &[
        ("url", "Addresses of Markdown", Example::Text("url")),
        ("md", "Markdown in the answer", Example::Text("md")),
        (
            "html",
            "Sanitised HTML in the answer",
            Example::Text("html"),
        ),
    ],
};

/// Token of a walk of changes.
pub(super) const SINCE: Parameter = Parameter {
    name: "since",
    multiplicity: Multiplicity::One,
    values: Values::Token,
    description: "The token `next` of the answer before, with the same filters. Leave it out to begin a copy: everything visible comes.",
    examples: &[],
};

/// Size of a page of changes.
pub(super) const CHANGES_LIMIT: Parameter = Parameter {
    name: "limit",
    multiplicity: Multiplicity::One,
    values: Values::Limit,
    description: "The greatest number of changes in the answer.",
    examples: &[("few", "A few at a time", Example::Number(2))],
};

/// Time to wait for a change.
pub(super) const WAIT: Parameter = Parameter {
    name: "wait",
    multiplicity: Multiplicity::One,
    values: Values::Wait,
    description: "How many seconds the answer may be held until something visible to this request changes. Only with `since`.",
    examples: &[],
};

/// Version of the OpenAPI document.
pub(super) const VERSION: Parameter = Parameter {
    name: "version",
    multiplicity: Multiplicity::One,
    values: Values::Version,
    description: "The date of the API version that the document describes; without it, the default version.",
    examples: &[("newest", "The newest version", Example::Text("2026-12-01"))],
};

/// Words of a search of the documentation.
pub(super) const SEARCH: Parameter = Parameter {
    name: "q",
    multiplicity: Multiplicity::One,
    values: Values::Search,
    description: "The words to look for.",
    examples: &[],
};
