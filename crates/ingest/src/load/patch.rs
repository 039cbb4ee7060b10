//! Patches: records that hold only what changes of a live product (docs/operate/load.md#patches). A patch is merged into what
//! loads brought, and the result is checked as a whole product.

use std::borrow::Cow;
use std::collections::HashMap;

use vitrine_model::code::ProductCode;
use vitrine_store::record::StoredProduct;
use vitrine_store::{Publication, StoreError};

use super::json::Node;
use super::stored_texts::record_with;
use crate::assortments::suggest;

/// Maximum number of codes that aren't live for which the nearest live one is looked for.
const MAX_SUGGESTIONS: usize = 10;

/// Live product below a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// Nothing: it is a whole product.
    None,
    /// It is a patch of this product.
    Live(Live),
    /// It is a patch, but its code isn't live, or can't be read; with the live code that is most like it.
    NotLive(Option<ProductCode>),
}

impl Base {
    /// Returns the payout type of the live product.
    pub(super) fn payout_type(&self) -> Option<&str> {
        match self {
            Self::Live(live) => Some(&live.payout_type),
            Self::None | Self::NotLive(_) => None,
        }
    }
}

/// A live product as loads brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Live {
    /// Record of the product without its texts, which a record leaves as they are unless it names them.
    pub(crate) json: String,
    pub(crate) payout_type: String,
}

impl Live {
    fn new(product: &StoredProduct) -> anyhow::Result<Self> {
        let record = record_with(product, |content| {
            Ok(match content {
                Node::Object(_) => Node::Object(Vec::new()),
                other => other,
            })
        })?;
        let payout_type = record.member("payout_type").and_then(Node::text);
        let payout_type = payout_type.unwrap_or_default().to_owned();
        Ok(Self {
            json: record.to_json(),
            payout_type,
        })
    }

    /// Returns the product with a patch merged into it. Its payout type stays.
    pub(super) fn merged_with<'a>(&'a self, patch: &Node<'a>) -> Node<'a> {
        let mut merged = merge(Node::parse(&self.json).0, patch);
        if let Some(payout_type) = merged.member_mut("payout_type") {
            *payout_type = Node::Text(Cow::Borrowed(&self.payout_type));
        }
        merged
    }
}

/// Finds what patches stand on, in the revision that a publish replaces.
#[derive(Default)]
pub(super) struct Bases {
    /// Live codes, once one is looked for that isn't live.
    live: Option<Vec<ProductCode>>,
    suggestions: usize,
}

impl Bases {
    /// Returns what patches with these codes stand on.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or is damaged.
    pub(super) fn of(
        &mut self,
        codes: &[Option<ProductCode>],
        publication: &mut dyn Publication,
    ) -> anyhow::Result<Vec<Base>> {
        publication.prefetch(&codes.iter().flatten().collect::<Vec<_>>())?;
        let mut bases = Vec::with_capacity(codes.len());
        for code in codes {
            let Some(code) = code else {
                bases.push(Base::NotLive(None));
                continue;
            };
            bases.push(match publication.live(code)? {
                Some(live) => Base::Live(Live::new(&live)?),
                None => Base::NotLive(self.nearest(code, publication)?),
            });
        }
        Ok(bases)
    }

    fn nearest(
        &mut self,
        code: &ProductCode,
        publication: &mut dyn Publication,
    ) -> Result<Option<ProductCode>, StoreError> {
        self.suggestions += 1;
        if self.suggestions > MAX_SUGGESTIONS {
            return Ok(None);
        }
        let live = match &mut self.live {
            Some(live) => live,
            unread => unread.insert(publication.live_codes()?),
        };
        let nearest = suggest::nearest(code.as_str(), live.iter().map(ProductCode::as_str));
        Ok(nearest.and_then(|nearest| nearest.parse().ok()))
    }
}

/// Merges a patch into a product like RFC 7396, but for `null`, which stays as a value: an absent member stays, an object merges,
/// all else replaces.
fn merge<'a>(base: Node<'a>, patch: &Node<'a>) -> Node<'a> {
    let (mut members, changes) = match (base, patch) {
        (Node::Object(members), Node::Object(changes)) => (members, changes),
        (_, patch) => return patch.clone(),
    };
    let places = members.iter().map(|(key, _)| key.clone()).zip(0..);
    let places: HashMap<Cow<'_, str>, usize> = places.collect();
    for (key, change) in changes {
        match places.get(key).and_then(|place| members.get_mut(*place)) {
            Some((_, value)) => *value = merge(std::mem::replace(value, Node::Null), change),
            None => members.push((key.clone(), change.clone())),
        }
    }
    Node::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_members_stay_and_all_else_replaces() {
        let base = r#"{"a":1,"b":{"c":[1,2],"d":{"e":"x"},"f":null},"g":"y"}"#;
        for (patch, expected) in [
            ("{}", base),
            (
                r#"{"a":null,"b":{"c":[3]}}"#,
                r#"{"a":null,"b":{"c":[3],"d":{"e":"x"},"f":null},"g":"y"}"#,
            ),
            (
                r#"{"b":{"d":{"h":1},"f":{"i":2}}}"#,
                r#"{"a":1,"b":{"c":[1,2],"d":{"e":"x","h":1},"f":{"i":2}},"g":"y"}"#,
            ),
            (
                r#"{"b":null,"j":{"k":null}}"#,
                r#"{"a":1,"b":null,"g":"y","j":{"k":null}}"#,
            ),
        ] {
            let merged = merge(Node::parse(base).0, &Node::parse(patch).0);
            assert_eq!(merged.to_json(), expected, "{patch}");
        }
    }
}
