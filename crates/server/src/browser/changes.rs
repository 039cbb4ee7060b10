//! Differences between two versions of a product, for people.

use vitrine_ingest::load::difference::FieldChange;
use vitrine_ingest::load::json::Node;
use vitrine_model::money::Discount;

use super::fields::{label, plain};
use super::table::percent;

/// A field that differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangeView {
    /// Name of the field for people.
    pub(super) place: String,
    /// JSON pointer of the field.
    pub(super) pointer: String,
    /// True if only part of a list is shown.
    pub(super) is_part: bool,
    /// Old value; for lists, only the removed entries.
    pub(super) old: Option<String>,
    /// New value; for lists, only the added entries.
    pub(super) new: Option<String>,
}

/// Returns the view of a change.
pub(super) fn view(change: &FieldChange) -> ChangeView {
    let words = change.pointer.split('/').skip(1).map(label);
    let (old, new) = match (&change.old, &change.new) {
        (Some(old), Some(new)) => pair(old, new),
        (old, new) => (
            old.as_deref().map(format_value),
            new.as_deref().map(format_value),
        ),
    };
    let is_discount = change.pointer == "/discount_multiplier";
    let [old, new] = [old, new].map(|value| match is_discount {
        true => value.map(discount),
        false => value,
    });
    let is_part = change.old.is_some() && change.new.is_some() && (old.is_none() || new.is_none());
    ChangeView {
        place: words.collect::<Vec<_>>().join(" › "),
        pointer: change.pointer.clone(),
        is_part,
        old,
        new,
    }
}

/// Formats a discount, also as a percentage.
fn discount(exact: String) -> String {
    match Discount::exact(&exact) {
        Ok(discount) => format!("{} ({exact})", percent(discount)),
        Err(_) => exact,
    }
}

fn format_value(json: &str) -> String {
    plain(&Node::parse(json).0)
}

fn pair(old: &str, new: &str) -> (Option<String>, Option<String>) {
    let (before, after) = (Node::parse(old).0, Node::parse(new).0);
    let (Node::List(gone), Node::List(came)) = (&before, &after) else {
        return (Some(plain(&before)), Some(plain(&after)));
    };
    let missing = |of: &[Node<'_>], others: &[Node<'_>]| {
        let missing = of.iter().filter(|item| !others.contains(item));
        let words: Vec<String> = missing.map(plain).collect();
        (!words.is_empty()).then(|| words.join(", "))
    };
    match (missing(gone, came), missing(came, gone)) {
        // The same entries in another order.
        (None, None) => (Some(plain(&before)), Some(plain(&after))),
        differing => differing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_show_removed_and_added_entries() {
        let change = |old: Option<&str>, new: Option<&str>| {
            let view = view(&FieldChange {
                pointer: "/gift_card/website_url".to_owned(),
                old: old.map(str::to_owned),
                new: new.map(str::to_owned),
            });
            assert_eq!(view.place, "Gift card › Website address");
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            [text(&view.old), text(&view.new)]
        };
        assert_eq!(
            change(Some(r#"["SE","NO"]"#), Some(r#"["NO","FI"]"#)),
            ["SE", "FI"]
        );
        assert_eq!(
            change(Some(r#"["SE"]"#), Some(r#"["SE","FI"]"#)),
            ["", "FI"]
        );
        assert_eq!(
            change(Some(r#"["a","b"]"#), Some(r#"["b","a"]"#)),
            ["a, b", "b, a"]
        );
        assert_eq!(change(Some("true"), Some("false")), ["yes", "no"]);
        assert_eq!(change(None, Some("\"x\"")), ["", "x"]);
        assert_eq!(change(Some("null"), Some("\"x\"")), ["none", "x"]);
    }
}
