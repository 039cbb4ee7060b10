//! Rows of the query parameters.

use super::Multiplicity::{Many, One, UpTo};
use super::{Multiplicity, Parameter, Values};

/// Maximum number of codes in a request (docs/contract/listing.md#filters).
const MAX_CODES: usize = 100;

/// Filter of products that can be ordered.
pub(super) const IS_ORDERABLE: Parameter = row("is_orderable", One, Values::Boolean);

/// Filter by countries.
pub(super) const COUNTRIES: Parameter = row("countries_redeemable_in", Many, Values::Country);

/// Filter by categories.
pub(super) const CATEGORIES: Parameter = row("categories", Many, Values::Category);

/// Filter by currencies.
pub(super) const CURRENCIES: Parameter = row("currencies", Many, Values::Currency);

/// Filter by payout types.
pub(super) const PAYOUT_TYPES: Parameter = row("payout_types", Many, Values::PayoutType);

/// Filter by codes.
pub(super) const CODES: Parameter = row("codes", UpTo(MAX_CODES), Values::Code);

/// Words of names and codes.
pub(super) const WORDS: Parameter = row("q", One, Values::Words);

/// Cursor of the previous page.
pub(super) const BEFORE: Parameter = row("before", One, Values::Cursor);

/// Cursor of the next page.
pub(super) const AFTER: Parameter = row("after", One, Values::Cursor);

/// Maximum number of products or changes in a response.
pub(super) const LIMIT: Parameter = row("limit", One, Values::Limit);

/// Form of texts.
pub(super) const CONTENT: Parameter = row("content", One, Values::ContentForm);

/// Token of a walk of changes.
pub(super) const SINCE: Parameter = row("since", One, Values::Token);

/// Time to wait for a change.
pub(super) const WAIT: Parameter = row("wait", One, Values::Wait);

/// Version of the OpenAPI document.
pub(super) const VERSION: Parameter = row("version", One, Values::Version);

/// Words of a search of the documentation.
pub(super) const SEARCH: Parameter = row("q", One, Values::Search);

const fn row(name: &'static str, multiplicity: Multiplicity, values: Values) -> Parameter {
    Parameter {
        name,
        multiplicity,
        values,
    }
}
