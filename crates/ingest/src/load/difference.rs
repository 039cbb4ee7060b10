//! Difference between two versions of a product, field by field.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde::Serialize;
use vitrine_model::money::Discount;
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
    let [loaded, live] = [loaded, live].map(str::parse::<Discount>);
    loaded.is_ok_and(|loaded| live.is_ok_and(|live| loaded == live))
}

/// Returns the fields in which `new` differs from `old`, in the order of the product object. A list counts as one
/// field, the discount is compared exactly, and texts by the digests of their Markdown.
#[must_use]
pub fn difference(old: &StoredProduct, new: &StoredProduct) -> Vec<FieldChange> {
    Pair::of(old, new).difference()
}

/// Returns the members of two documents without those that are the same in both. The payout type names others, so it stays.
pub(crate) fn differing(old: &Members<'_>, new: &Members<'_>) -> serde_json::Result<[String; 2]> {
    Members::differing(old, new, "payout_type")
}

/// Two versions of a product.
#[derive(Debug)]
pub(crate) struct Pair<'p> {
    pub(crate) old: &'p StoredProduct,
    pub(crate) new: &'p StoredProduct,
    /// The documents without the fields that are the same in both, once they were asked for.
    documents: OnceCell<[Cow<'p, str>; 2]>,
}

impl<'p> Pair<'p> {
    pub(crate) fn of(old: &'p StoredProduct, new: &'p StoredProduct) -> Self {
        Self {
            old,
            new,
            documents: OnceCell::new(),
        }
    }

    /// Returns the pair with its documents without the fields that are the [same in both](differing), if they are known.
    pub(crate) fn with_differing(self, documents: Option<[String; 2]>) -> Self {
        Self {
            documents: documents.map_or_else(OnceCell::new, |both| both.map(Cow::Owned).into()),
            ..self
        }
    }

    /// Returns the documents without the fields that are the same in both.
    pub(crate) fn nodes(&self) -> [Node<'_>; 2] {
        let differing = || {
            let documents = [&self.old.document, &self.new.document];
            let members = documents.map(|document| Members::parse(document));
            match members {
                [Ok(old), Ok(new)] => differing(&old, &new).map(|both| both.map(Cow::Owned)),
                [Err(error), _] | [_, Err(error)] => Err(error),
            }
            // What is damaged is compared as far as it can be read.
            .unwrap_or_else(|_| documents.map(|document| Cow::Borrowed(document.as_str())))
        };
        let documents = self.documents.get_or_init(differing);
        (documents.each_ref()).map(|document| Node::parse(document).0)
    }

    /// See [`difference`].
    pub(crate) fn difference(&self) -> Vec<FieldChange> {
        let (mut changes, [before, after]) = (Vec::new(), self.nodes());
        let Self { old, new, .. } = self;
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
