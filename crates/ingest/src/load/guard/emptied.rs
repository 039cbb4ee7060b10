//! Fields that lose their values, by name: `availability`, `expiry.date_policy`, or `description` for a text.

use std::collections::BTreeMap;

use super::Percent;
use crate::load::json::Node;

/// Minimum number of live products with a value in a field for it to be guarded.
pub(super) const MIN_PRODUCTS: u64 = 10;

/// Fields that have a rule of their own.
const OTHERS: [&str; 2] = ["countries_redeemable_in", "categories"];

/// Returns the fields that have a value in `old` and none in `new`.
pub(super) fn emptied(old: &Node<'_>, new: Option<&Node<'_>>) -> Vec<String> {
    let mut found = Vec::new();
    let Node::Object(members) = old else {
        return found;
    };
    let detail = |product: &Node<'_>| {
        product
            .member("payout_type")
            .and_then(Node::text)
            .map(str::to_owned)
    };
    let (old_detail, new_detail) = (detail(old), new.and_then(detail));
    for (key, node) in members {
        if old_detail.as_deref() == Some(key) {
            let new = new_detail.as_deref().and_then(|key| new?.member(key));
            compare(node, new, &mut Vec::new(), &mut found);
        } else if !OTHERS.contains(&key.as_ref()) {
            compare(
                node,
                new.and_then(|new| new.member(key)),
                &mut vec![key],
                &mut found,
            );
        }
    }
    found
}

fn compare<'n>(
    old: &'n Node<'_>,
    new: Option<&Node<'_>>,
    path: &mut Vec<&'n str>,
    found: &mut Vec<String>,
) {
    match old {
        Node::Object(members) => {
            for (key, node) in members {
                path.push(key);
                compare(node, new.and_then(|new| new.member(key)), path, found);
                path.pop();
            }
        }
        _ if has_value(old) && !new.is_some_and(has_value) => found.push(name(path)),
        _ => {}
    }
}

fn has_value(node: &Node<'_>) -> bool {
    match node {
        Node::Null => false,
        Node::Text(text) => !text.is_empty(),
        Node::List(items) => !items.is_empty(),
        _ => true,
    }
}

fn name(path: &[&str]) -> String {
    match path {
        ["content_resources", key] => key.strip_suffix("_markdown_url").unwrap_or(key).to_owned(),
        _ => path.join("."),
    }
}

/// Numbers of live products with a value, for fields that a publish empties in some.
pub(super) struct Values<'f> {
    fields: BTreeMap<&'f str, (u64, u64)>,
    limit: Percent,
}

impl<'f> Values<'f> {
    /// Takes the fields with the numbers of products that lose their value, as far as these may exceed the limit.
    pub(super) fn of(emptied: impl Iterator<Item = (&'f str, u64)>, limit: Percent) -> Self {
        let fields = emptied.map(|(field, lost)| (field, (lost, 0)));
        let may_exceed = |(_, (lost, _)): &(&str, (u64, u64))| {
            limit.is_exceeded(*lost, (*lost).max(MIN_PRODUCTS))
        };
        Self {
            fields: fields.filter(may_exceed).collect(),
            limit,
        }
    }

    /// Returns true if more products may still change what is exceeded.
    pub(super) fn are_open(&self) -> bool {
        let mut fields = self.fields.values();
        fields.any(|(lost, live)| *live < MIN_PRODUCTS || self.limit.is_exceeded(*lost, *live))
    }

    /// Counts a live product.
    pub(super) fn count(&mut self, product: &Node<'_>) {
        for field in emptied(product, None) {
            if let Some((_, live)) = self.fields.get_mut(field.as_str()) {
                *live += 1;
            }
        }
    }

    /// Returns the fields beyond the limit, the greatest share first: name, products that lose their value, live ones
    /// with a value.
    pub(super) fn exceeded(self) -> Vec<(String, u64, u64)> {
        let fields = self.fields.into_iter();
        let mut exceeded: Vec<_> = fields
            .filter(|(_, (lost, live))| {
                *live >= MIN_PRODUCTS && self.limit.is_exceeded(*lost, *live)
            })
            .map(|(field, (lost, live))| (field.to_owned(), lost, live))
            .collect();
        exceeded
            .sort_by_key(|(_, lost, live)| std::cmp::Reverse((Percent::of(*lost, *live), *lost)));
        exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emptied_fields_are_named_without_their_payout_type() {
        let old = r#"{"payout_type":"gift_card","name":"a","availability":"stocked","categories":["x"],"gift_card":{
            "website_url":"u","expiry":{"date_policy":"p","in_months":0},"content_resources":{"locale":"en_GB",
            "description_markdown_url":"d"},"available_list":["1"]}}"#;
        let emptied = |new: &str| emptied(&Node::parse(old).0, Some(&Node::parse(new).0));
        assert_eq!(emptied(old), Vec::<String>::new());
        let moved = old.replace("gift_card", "subscription");
        assert_eq!(emptied(&moved), Vec::<String>::new());
        let less = r#"{"payout_type":"gift_card","name":"","availability":null,"gift_card":{"expiry":{"in_months":0,
            "date_policy":null},"available_list":[],"content_resources":null}}"#;
        let expected = [
            "name",
            "availability",
            "website_url",
            "expiry.date_policy",
            "locale",
            "description",
            "available_list",
        ];
        assert_eq!(emptied(less), expected);
    }
}
