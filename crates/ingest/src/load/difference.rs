//! Difference between two versions of a product, field by field.

use std::borrow::Cow;

use serde::Serialize;
use vitrine_model::money::DiscountMultiplier;
use vitrine_store::record::{OwnText, StoredProduct};

use super::json::Node;
use super::pointer::escaped;
use crate::members::Members;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FieldChange {
    /// Position: a JSON pointer into the product object.
    pub pointer: String,
    /// Old value, as JSON; `None` if there was none.
    pub old: Option<String>,
    /// New value, as JSON; `None` if there is none.
    pub new: Option<String>,
}

/// Returns true if a live discount is the loaded one, written differently: then it stays. Responses show `0.1` as `0.10`, and
/// loading a response back must not be a change.
pub(super) fn is_same_discount(loaded: &str, live: &str) -> bool {
    let [loaded, live] = [loaded, live].map(str::parse::<DiscountMultiplier>);
    loaded.is_ok_and(|loaded| live.is_ok_and(|live| loaded.is_same_number(&live)))
}

/// Returns the fields in which `new` differs from `old`, in the order of the product object. A list counts as one
/// field, the discount is compared exactly, and texts by the digests of their Markdown.
#[must_use]
pub fn difference(old: &StoredProduct, new: &StoredProduct) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let [before, after] = differing_members(old, new);
    let [before, after] = [&before, &after].map(|document| Node::parse(document).0);
    compare(&before, &after, "", &mut changes);
    let discount = "/discount_multiplier";
    changes.retain(|change| change.pointer != discount);
    if old.discount_multiplier != new.discount_multiplier {
        let quoted = |text: &str| Some(format!("\"{text}\""));
        changes.push(FieldChange {
            pointer: discount.to_owned(),
            old: quoted(&old.discount_multiplier),
            new: quoted(&new.discount_multiplier),
        });
    }
    sources(&old.own_texts, &new.own_texts, &mut changes);
    changes
}

/// Returns the documents without the fields that are the same in both.
pub(crate) fn differing_members<'d>(
    old: &'d StoredProduct,
    new: &'d StoredProduct,
) -> [Cow<'d, str>; 2] {
    match Members::differing(&old.document, &new.document, "payout_type") {
        Ok(members) => members.map(Cow::Owned),
        // What is damaged is compared as far as it can be read.
        Err(_) => [old, new].map(|product| Cow::Borrowed(product.document.as_str())),
    }
}

fn compare(old: &Node<'_>, new: &Node<'_>, pointer: &str, changes: &mut Vec<FieldChange>) {
    if old == new {
        return;
    }
    let (Node::Object(before), Node::Object(after)) = (old, new) else {
        changes.push(FieldChange {
            pointer: pointer.to_owned(),
            old: Some(old.to_json()),
            new: Some(new.to_json()),
        });
        return;
    };
    for (key, old) in before {
        let pointer = format!("{pointer}/{}", escaped(key));
        match after.iter().find(|(other, _)| other == key) {
            Some((_, new)) => compare(old, new, &pointer, changes),
            None => changes.push(FieldChange {
                pointer,
                old: Some(old.to_json()),
                new: None,
            }),
        }
    }
    for (key, new) in after {
        if !before.iter().any(|(other, _)| other == key) {
            changes.push(FieldChange {
                pointer: format!("{pointer}/{}", escaped(key)),
                old: None,
                new: Some(new.to_json()),
            });
        }
    }
}

/// Adds the texts with a new source and the same Markdown.
fn sources(old: &[OwnText], new: &[OwnText], changes: &mut Vec<FieldChange>) {
    for after in new {
        let same = |before: &&OwnText| (before.name, before.digest) == (after.name, after.digest);
        let Some(before) = old.iter().find(same) else {
            continue;
        };
        if before.source != after.source {
            let quoted = |source: &Option<String>| source.as_ref().map(|url| format!("\"{url}\""));
            changes.push(FieldChange {
                pointer: format!("/content_resources/{}_source", after.name.as_str()),
                old: quoted(&before.source),
                new: quoted(&after.source),
            });
        }
    }
}
