//! Rows of the table of products, its headings, and the menu of orders.

use jiff::Timestamp;
use vitrine_ingest::load::json::Node;
use vitrine_model::changes::{Journal, LastChange};
use vitrine_model::money::Discount;
use vitrine_model::snapshot::ProductView;

use super::amounts;
use super::assortments::{DiscountView, Seen};
use super::fields::{label, plain};
use super::group::{Group, LIVE};
use super::query::{Direction, Query, Sort, SortKey};
use super::times::{compact, minute};
use crate::http::request::query::encoded;

/// Maximum number of countries that a row names.
const MAX_COUNTRIES: usize = 3;

/// A product of the table.
pub(super) struct RowView<'a> {
    pub(super) code: &'a str,
    pub(super) name: String,
    /// URL of its page.
    pub(super) address: String,
    pub(super) is_live: bool,
    pub(super) state: String,
    pub(super) is_orderable: bool,
    /// Amounts in one line, with their currency.
    pub(super) amounts: String,
    /// Discount as it is shown to whom the catalog is shown.
    pub(super) discount: Option<DiscountView>,
    /// First countries, and the number of others.
    pub(super) countries: String,
    pub(super) changed: Option<ChangedView>,
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
    pub(super) seen: Option<&'a Seen>,
    pub(super) journal: Option<&'a Journal>,
    pub(super) now: Timestamp,
}

impl Rows<'_> {
    /// Returns the row of a product.
    pub(super) fn row<'p>(&self, product: ProductView<'p>, query: &Query) -> RowView<'p> {
        let json = String::from_utf8_lossy(product.bytes());
        let (node, _) = Node::parse(&json);
        let text = |name: &str| node.member(name).and_then(Node::text).unwrap_or_default();
        let code = product.code();
        let discount = match self.seen {
            Some(seen) => seen.discount(code),
            None => {
                let listed = product.discount();
                listed.map(|placed| DiscountView::listed(placed.exact.shown()))
            }
        };
        RowView {
            code,
            name: text("name").to_owned(),
            address: product_address(code, query.assortment.as_deref()),
            is_live: text("state") == LIVE,
            state: Group::State.shown(text("state")).into_owned(),
            is_orderable: node.member("is_orderable") == Some(&Node::Bool(true)),
            amounts: amounts::in_words(&node),
            discount,
            countries: abbreviated(node.member("countries_redeemable_in")),
            changed: self.journal.and_then(|journal| self.changed(journal, code)),
        }
    }

    fn changed(&self, journal: &Journal, code: &str) -> Option<ChangedView> {
        let recorded = journal.last_changes().find(code);
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

/// Returns the first items of a list, and the number of others: `SE, NO, DK +4`.
fn abbreviated(list: Option<&Node<'_>>) -> String {
    let Some(Node::List(items)) = list else {
        return String::new();
    };
    let shown: Vec<String> = items.iter().take(MAX_COUNTRIES).map(plain).collect();
    match items.len().saturating_sub(MAX_COUNTRIES) {
        0 => shown.join(", "),
        rest => format!("{} +{rest}", shown.join(", ")),
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

/// Columns of the table: name for styles, heading, and what it sorts by.
const COLUMNS: [(&str, &str, Option<SortKey>); 8] = [
    ("name", "Name", Some(SortKey::Name)),
    ("code", "Code", Some(SortKey::Code)),
    ("state", "State", Some(SortKey::State)),
    ("orderable", "Orderable", None),
    ("amounts", "Amounts", None),
    ("discount", "Discount", None),
    ("countries", "Countries", None),
    ("changed", "Changed", Some(SortKey::Changed)),
];

/// Heading of a column.
pub(super) struct HeadView {
    pub(super) name: &'static str,
    pub(super) heading: &'static str,
    /// URL of the order by it.
    pub(super) address: Option<String>,
    /// Value of `aria-sort`, and the arrow, if products are sorted by it.
    pub(super) sorted: Option<(&'static str, &'static str)>,
}

/// Returns the headings of the table.
pub(super) fn heads(query: &Query) -> Vec<HeadView> {
    let sorted = match query.sort.direction {
        Direction::Ascending => ("ascending", "↑"),
        Direction::Descending => ("descending", "↓"),
    };
    let head = |(name, heading, key): (_, _, Option<SortKey>)| HeadView {
        name,
        heading,
        address: key.map(|key| query.sorted(query.sort.by(key)).address()),
        sorted: (key == Some(query.sort.key)).then_some(sorted),
    };
    COLUMNS.into_iter().map(head).collect()
}

/// An order in the menu.
pub(super) struct OrderLink {
    pub(super) label: String,
    pub(super) address: String,
    pub(super) is_current: bool,
}

/// Returns all orders, for phones, where the table has no headings.
pub(super) fn orders(query: &Query) -> Vec<OrderLink> {
    let directions = [(Direction::Ascending, "↑"), (Direction::Descending, "↓")];
    let keyed = COLUMNS
        .into_iter()
        .filter_map(|(_, heading, key)| Some((heading, key?)));
    let both = |(heading, key)| {
        directions.map(|(direction, arrow)| {
            let sort = Sort { key, direction };
            OrderLink {
                label: format!("{heading} {arrow}"),
                address: query.sorted(sort).address(),
                is_current: query.sort == sort,
            }
        })
    };
    keyed.flat_map(both).collect()
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
