//! Rows of the table of products, its headings, and the menus of orders and columns.

use std::borrow::Cow;

use jiff::Timestamp;
use vitrine_model::changes::{Journal, LastChange};
use vitrine_model::money::Discount;

use super::assortments::{DiscountView, Seen};
use super::card::Card;
use super::column::{Column, Direction, Sort};
use super::fields::label;
use super::group::{Group, LIVE, YES};
use super::index::Index;
use super::query::Query;
use super::times::{compact, minute};
use crate::http::request::query::encoded;

/// Maximum number of categories that a row names.
const MAX_CATEGORIES: usize = 2;

/// A product of the table or of the cards.
pub(super) struct RowView<'a> {
    pub(super) card: &'a Card,
    /// URL of its page.
    pub(super) address: String,
    pub(super) is_live: bool,
    pub(super) state: Cow<'a, str>,
    pub(super) payout_type: Cow<'a, str>,
    pub(super) currency: &'a str,
    pub(super) is_orderable: bool,
    /// Discount as it is shown to whom the catalog is shown.
    pub(super) discount: Option<DiscountView>,
    pub(super) categories: String,
    pub(super) changed: Option<ChangedView>,
    /// True if the page was asked for by it.
    pub(super) is_target: bool,
}

/// Time of a product's last change.
pub(super) struct ChangedView {
    /// Short form, the exact time, and the time for machines.
    pub(super) short: String,
    pub(super) exact: String,
    pub(super) datetime: String,
    /// Number of the revision.
    pub(super) revision: u64,
    /// True if it changed then or before: the journal doesn't go back further.
    pub(super) is_upper_bound: bool,
}

/// Sources of rows.
pub(super) struct Rows<'a> {
    pub(super) index: &'a Index,
    pub(super) seen: Option<&'a Seen>,
    pub(super) journal: Option<&'a Journal>,
    pub(super) now: Timestamp,
}

impl<'a> Rows<'a> {
    /// Returns the row of a card.
    pub(super) fn row(&self, card: &'a Card, query: &Query) -> RowView<'a> {
        let value = |group: Group| {
            let mut values = card.values.iter().copied();
            values
                .find(|value| value.group() == group)
                .map_or("", |value| self.index.values.name(value))
        };
        let discount = match self.seen {
            Some(seen) => seen.discount(&card.code),
            None => card.discount.map(DiscountView::listed),
        };
        RowView {
            card,
            address: product_address(&card.code, query.assortment.as_deref()),
            is_live: value(Group::State) == LIVE,
            state: Group::State.shown(value(Group::State)),
            payout_type: Group::PayoutType.shown(value(Group::PayoutType)),
            currency: value(Group::Currency),
            is_orderable: value(Group::Orderable) == YES,
            discount,
            categories: self.categories(card),
            changed: self.journal.and_then(|journal| self.changed(journal, card)),
            is_target: false,
        }
    }

    fn categories(&self, card: &Card) -> String {
        let of_card = (card.values.iter().copied()).filter(|one| one.group() == Group::Category);
        let mut names: Vec<&str> = of_card.map(|value| self.index.values.name(value)).collect();
        names.sort_unstable();
        let rest = names.len().saturating_sub(MAX_CATEGORIES);
        names.truncate(MAX_CATEGORIES);
        match rest {
            0 => names.join(", "),
            rest => format!("{} +{rest}", names.join(", ")),
        }
    }

    fn changed(&self, journal: &Journal, card: &Card) -> Option<ChangedView> {
        let recorded = journal.last_changes().find(&card.code);
        let oldest = journal.oldest_revision();
        let LastChange { revision, at } = recorded.unwrap_or(oldest);
        // A catalog without a first revision has no products.
        (revision > 0).then(|| ChangedView {
            short: compact(at, self.now),
            exact: minute(&at),
            datetime: at.to_string(),
            revision,
            is_upper_bound: recorded.is_none() && revision > 1,
        })
    }
}

impl RowView<'_> {
    /// Returns the state in a word: all but the usual one are temporary.
    pub(super) fn short_state(&self) -> String {
        let short = self.state.strip_prefix("Temporarily ");
        label(short.unwrap_or(&self.state))
    }
}

/// Returns the URL of a product's page, as an assortment sees it.
pub(super) fn product_address(code: &str, assortment: Option<&str>) -> String {
    match assortment {
        Some(name) => format!("/catalog/{code}?as={}", encoded(name)),
        None => format!("/catalog/{code}"),
    }
}

/// Formats a discount as a percentage with two digits at least, so that a column of them lines up.
pub(super) fn percent(discount: Discount) -> String {
    format!("{}%", discount.value().percent())
}

/// Heading of a column.
pub(super) struct HeadView {
    pub(super) column: Column,
    /// URL of the order by it.
    pub(super) address: String,
    /// Value of `aria-sort`, and the arrow, if products are sorted by it.
    pub(super) sorted: Option<(&'static str, &'static str)>,
}

/// Returns the headings of the table.
pub(super) fn heads(query: &Query) -> Vec<HeadView> {
    let head = |column: Column| {
        let is_sorted = query.sort.column == column;
        let next = query.sort.by(column);
        HeadView {
            column,
            address: query.sorted(next).address(),
            sorted: is_sorted.then_some(match query.sort.direction {
                Direction::Ascending => ("ascending", "↑"),
                Direction::Descending => ("descending", "↓"),
            }),
        }
    };
    query.columns.shown().into_iter().map(head).collect()
}

/// An order in the menu.
pub(super) struct OrderLink {
    pub(super) label: String,
    pub(super) address: String,
    pub(super) is_current: bool,
}

/// Returns all orders, for views without headings.
pub(super) fn orders(query: &Query) -> Vec<OrderLink> {
    let directions = [(Direction::Ascending, "↑"), (Direction::Descending, "↓")];
    let both = |column: Column| {
        directions.map(|(direction, arrow)| {
            let sort = Sort { column, direction };
            OrderLink {
                label: format!("{} {arrow}", column.heading()),
                address: query.sorted(sort).address(),
                is_current: query.sort == sort,
            }
        })
    };
    Column::ALL.into_iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_two_digits_at_least() {
        let shown = |text: &str| percent(text.parse().unwrap());
        assert_eq!(shown("0"), "0.00%");
        assert_eq!(shown("0.0125"), "1.25%");
        assert_eq!(shown("0.1"), "10.00%");
        assert_eq!(shown("0.012345"), "1.2345%");
        assert_eq!(shown("0.012340"), "1.234%");
        assert_eq!(shown("1"), "100.00%");
    }
}
