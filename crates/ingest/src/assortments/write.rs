//! Writing rules: as compact JSON, members in the order of the documentation, absent and empty lists left out where both
//! mean the same.

use serde::Serialize;
use vitrine_model::assortment::{DiscountChange, OwnDiscount, Rules};
use vitrine_model::selector::Selector;

use crate::selection::SelectorJson;

#[derive(Serialize)]
struct RulesJson<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<Selected<'r>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<Selected<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    discounts: Vec<DiscountJson<'r>>,
}

#[derive(Serialize)]
struct Selected<'r>(#[serde(with = "SelectorJson")] &'r Selector);

#[derive(Serialize)]
struct DiscountJson<'r> {
    #[serde(flatten, with = "SelectorJson")]
    selector: &'r Selector,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<String>,
}

/// Writes rules as JSON. Equal rules have the same text, which is read as rules equal to them.
#[must_use]
pub fn to_json(rules: &Rules) -> String {
    let Rules {
        allow,
        deny,
        discounts,
    } = rules;
    let rules = RulesJson {
        allow: (allow.as_ref()).map(|allow| allow.iter().map(Selected).collect()),
        deny: deny.iter().map(Selected).collect(),
        discounts: discounts.iter().map(discount).collect(),
    };
    // Texts and lists can't fail to become JSON.
    serde_json::to_string(&rules).unwrap_or_default()
}

fn discount(discount: &OwnDiscount) -> DiscountJson<'_> {
    let OwnDiscount { selector, change } = discount;
    let (set, share) = match change {
        DiscountChange::Set(own) => (Some(own.to_string()), None),
        DiscountChange::Share(share) => (None, Some(share.to_string())),
    };
    DiscountJson {
        selector,
        set,
        share,
    }
}
