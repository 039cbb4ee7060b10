//! Columns of CSV files: the field of each, and its type (docs/operate/load.md has these fields). Loads and exports
//! use this table.
//!
//! A column is named by the path to its field, joined by `_`; texts are named by their own names.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::load::json::Node;

/// A column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Path to the field, from the product or from the detail object.
    pub(crate) path: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) of: Of,
}

/// Type of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    Number,
    /// A list that can't be null: an empty cell is an empty list.
    Texts,
    /// A list that can be null: an empty cell is null.
    Amounts,
    /// JSON: an empty cell is null.
    Json,
}

/// Owner of a column's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The product itself.
    Product,
    /// The detail objects of these payout types.
    Types(&'static [&'static str]),
    /// The detail objects of all other payout types, whole.
    OtherTypes,
}

impl Of {
    /// Returns true if products of this payout type have the field.
    pub(crate) fn has(self, payout_type: &str) -> bool {
        match self {
            Self::Product => true,
            Self::Types(types) => types.contains(&payout_type),
            Self::OtherTypes => !KNOWN_TYPES.contains(&payout_type),
        }
    }
}

/// Payout types of the contract, and names of their detail objects, whose fields have columns.
pub(crate) const KNOWN_TYPES: &[&str] = &["gift_card", "subscription", "payment"];

const VOUCHERS: Of = Of::Types(&["gift_card", "subscription"]);
const SUBSCRIPTIONS: Of = Of::Types(&["subscription"]);
const GIFT_CARDS: Of = Of::Types(&["gift_card"]);
const AMOUNTS: Of = Of::Types(&["gift_card", "payment"]);
const KNOWN: Of = Of::Types(KNOWN_TYPES);

const fn column(name: &'static str, path: &'static [&'static str], kind: Kind, of: Of) -> Column {
    Column {
        name,
        path,
        kind,
        of,
    }
}

const fn text(path: &'static [&'static str; 2]) -> Column {
    column(path[1], path, Kind::Text, KNOWN)
}

/// Columns whose fields any record so far has, null or not: a bit for each.
#[derive(Debug, Default)]
pub(crate) struct Stated(AtomicU64);

impl Stated {
    /// Adds the fields of a record.
    pub(crate) fn add(&self, product: &Node<'_>) {
        let before = self.0.load(Ordering::Relaxed);
        let detail = product.member("payout_type").and_then(Node::text);
        let detail = detail.and_then(|name| product.member(name.trim()));
        let mut found = before;
        for (index, column) in COLUMNS.iter().enumerate() {
            let start = match column.of {
                Of::Product => Some(product),
                _ => detail,
            };
            let bit = 1 << index;
            if before & bit == 0 {
                let mut path = column.path.iter();
                let node =
                    start.and_then(|start| path.try_fold(start, |node, key| node.member(key)));
                found |= node.map_or(0, |_| bit);
            }
        }
        if found != before {
            self.0.fetch_or(found, Ordering::Relaxed);
        }
    }

    /// Returns the column of a field that no record has, by the field's path, joined by points. Texts are left out: without
    /// a column they stay.
    pub(crate) fn missing(&self, field: &str) -> Option<&'static Column> {
        let stated = self.0.load(Ordering::Relaxed);
        let mut columns = COLUMNS.iter().enumerate();
        let (_, column) = columns
            .find(|(index, column)| stated & (1 << index) == 0 && column.path.join(".") == field)?;
        Some(column)
    }
}

/// All columns, in the template's order.
pub(crate) static COLUMNS: [Column; 44] = {
    use Kind::{Amounts, Flag, Json, Number, Text, Texts};
    use Of::Product;
    [
        column("name", &["name"], Text, Product),
        column("code", &["code"], Text, Product),
        column("currency", &["currency"], Text, Product),
        column("state", &["state"], Text, Product),
        column("is_orderable", &["is_orderable"], Flag, Product),
        column("payout_type", &["payout_type"], Text, Product),
        column("categories", &["categories"], Texts, Product),
        column(
            "countries_redeemable_in",
            &["countries_redeemable_in"],
            Texts,
            Product,
        ),
        column(
            "customer_service_phone_number",
            &["customer_service", "phone_number"],
            Text,
            Product,
        ),
        column(
            "customer_service_website_url",
            &["customer_service", "website_url"],
            Text,
            Product,
        ),
        column(
            "discount_multiplier",
            &["discount_multiplier"],
            Text,
            Product,
        ),
        column("availability", &["availability"], Text, Product),
        column(
            "assets_card_image_url",
            &["assets", "card_image_url"],
            Text,
            VOUCHERS,
        ),
        column(
            "assets_icon_image_url",
            &["assets", "icon_image_url"],
            Text,
            KNOWN,
        ),
        column(
            "assets_primary_color",
            &["assets", "primary_color"],
            Text,
            KNOWN,
        ),
        column("balance_check_url", &["balance_check_url"], Text, VOUCHERS),
        column(
            "expiry_date_policy",
            &["expiry", "date_policy"],
            Text,
            VOUCHERS,
        ),
        column(
            "expiry_in_months",
            &["expiry", "in_months"],
            Number,
            VOUCHERS,
        ),
        column("expiry_type", &["expiry", "type"], Text, VOUCHERS),
        column("redeemable_at", &["redeemable_at"], Text, VOUCHERS),
        column("website_url", &["website_url"], Text, VOUCHERS),
        column("barcode_format", &["barcode_format"], Text, VOUCHERS),
        column("e_code_usage_type", &["e_code_usage_type"], Text, VOUCHERS),
        column(
            "denominations_type",
            &["denominations", "type"],
            Text,
            GIFT_CARDS,
        ),
        column(
            "denominations_minimum_value",
            &["denominations", "minimum_value"],
            Text,
            AMOUNTS,
        ),
        column(
            "denominations_maximum_value",
            &["denominations", "maximum_value"],
            Text,
            AMOUNTS,
        ),
        column(
            "denominations_available_list",
            &["denominations", "available_list"],
            Amounts,
            GIFT_CARDS,
        ),
        column(
            "subscription_plans",
            &["subscription_plans"],
            Json,
            SUBSCRIPTIONS,
        ),
        text(&["content_resources", "description_md"]),
        text(&["content_resources", "description_markdown_url"]),
        text(&["content_resources", "disclaimer_md"]),
        text(&["content_resources", "disclaimer_markdown_url"]),
        text(&["content_resources", "refund_policy_md"]),
        text(&["content_resources", "refund_policy_markdown_url"]),
        text(&["content_resources", "reissuance_policy_md"]),
        text(&["content_resources", "reissuance_policy_markdown_url"]),
        text(&["content_resources", "terms_buyer_md"]),
        text(&["content_resources", "terms_buyer_markdown_url"]),
        text(&["content_resources", "terms_consumer_md"]),
        text(&["content_resources", "terms_consumer_markdown_url"]),
        text(&["content_resources", "redemption_instructions_md"]),
        text(&["content_resources", "redemption_instructions_markdown_url"]),
        text(&["content_resources", "locale"]),
        column("detail", &[], Json, Of::OtherTypes),
    ]
};

/// Returns the column of a name, case-insensitively.
pub(super) fn find(name: &str) -> Option<&'static Column> {
    COLUMNS
        .iter()
        .find(|column| column.name.eq_ignore_ascii_case(name))
}

/// Returns the known column name that is most like an unknown one.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace([' ', '-', '.'], "_");
    let likeness = |column: &Column| strsim::jaro_winkler(&name, column.name);
    let nearest = COLUMNS
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) > 0.85).then_some(nearest.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vitrine_model::content::TextName;

    #[test]
    fn each_text_has_its_columns() {
        for name in TextName::ALL {
            for suffix in ["_md", "_markdown_url"] {
                let name = format!("{}{suffix}", name.as_str());
                let column = find(&name).expect("a column");
                assert_eq!(column.path, ["content_resources", &name]);
            }
        }
    }

    #[test]
    fn template_has_all_columns() {
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        let header = super::super::CSV_TEMPLATE.lines().next();
        assert_eq!(header, Some(names.join(",").as_str()));
    }

    #[test]
    fn document_has_the_field_of_each_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/load.md");
        let document = std::fs::read_to_string(path).expect("the document");
        let rows: Vec<Vec<&str>> = document
            .lines()
            .map(|line| line.split(" | ").collect())
            .collect();
        let fields = COLUMNS.iter().filter(|column| column.of != Of::OtherTypes);
        for column in fields {
            let is_text = column.path[0] == "content_resources";
            let name = match is_text {
                true => column.path[1].to_owned(),
                false => column.path.join("_"),
            };
            assert_eq!(column.name, name, "the document says how columns are named");
            // All texts share a row.
            let field = match TextName::ALL
                .iter()
                .find_map(|text| column.name.strip_prefix(text.as_str()))
            {
                Some(form) => format!("`content_resources.NAME{form}`"),
                None => format!("`{}`", column.path.join(".")),
            };
            let kinds: &[&str] = match column.kind {
                Kind::Text => &["string", "decimal"],
                Kind::Flag => &["boolean"],
                Kind::Number => &["whole number"],
                Kind::Texts => &["list of strings"],
                Kind::Amounts => &["list of decimals"],
                Kind::Json => &["list of objects"],
            };
            let of = match column.of {
                Of::Product => "the product".to_owned(),
                _ if is_text => "any payout type".to_owned(),
                Of::OtherTypes => String::new(),
                Of::Types(types) => format!("`{}`", types.join("`, `")),
            };
            let is_documented = rows.iter().any(|row| match &row[..] {
                [named, kind, _, part_of, _] => {
                    named.contains(&field) && kinds.contains(kind) && *part_of == of
                }
                _ => false,
            });
            assert!(
                is_documented,
                "docs/operate/load.md lacks {field}, {kinds:?}, of {of}"
            );
        }
    }
}
