//! Amounts that overrides leave of a product: those that all of them allow.

use std::collections::BTreeSet;

use serde::Serialize;
use vitrine_model::money::Amount;

use super::assignment::{Assignment, DENOMINATIONS};
use crate::members::Members;

/// Values that narrow the amounts of a product, each with its override, in the order of these.
#[derive(Default)]
pub(super) struct Narrowing<'v>(Vec<(u64, &'v Assignment)>);

/// Amounts after a narrowing.
pub(super) struct Narrowed {
    /// The denominations that are left, as JSON; `None` if no amount is.
    pub(super) left: Option<String>,
    /// The overrides that narrowed those that earlier ones left.
    pub(super) by: BTreeSet<u64>,
}

impl<'v> Narrowing<'v> {
    /// Adds a value, if it narrows amounts.
    pub(super) fn add(&mut self, number: u64, value: &'v Assignment) {
        if value.field() == DENOMINATIONS {
            self.0.push((number, value));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Narrows these denominations; `None` if they stay as they are.
    pub(super) fn narrow(&self, denominations: &str) -> serde_json::Result<Option<Narrowed>> {
        let mut limits = Limits::default();
        let (mut left, mut by) = (Some(denominations.to_owned()), BTreeSet::new());
        for (number, value) in &self.0 {
            limits.add(value);
            let narrowed = limits.apply(denominations)?;
            if narrowed != left {
                left = narrowed;
                by.insert(*number);
            }
        }
        Ok((!by.is_empty()).then_some(Narrowed { left, by }))
    }
}

/// Limits of amounts by some overrides together.
#[derive(Default)]
struct Limits {
    minimum: Option<Amount>,
    maximum: Option<Amount>,
    list: Option<Vec<Amount>>,
}

impl Limits {
    fn add(&mut self, value: &Assignment) {
        match value {
            Assignment::Minimum(amount) => self.minimum = self.minimum.max(Some(*amount)),
            Assignment::Maximum(amount) => {
                let least = self.maximum.map_or(*amount, |maximum| maximum.min(*amount));
                self.maximum = Some(least);
            }
            Assignment::Amounts(amounts) => {
                let mut amounts = amounts.clone();
                amounts.retain(|amount| {
                    (self.list.as_ref()).is_none_or(|before| before.contains(amount))
                });
                self.list = Some(amounts);
            }
            _ => {}
        }
    }

    /// Returns the denominations that are left of these; `None` if no amount is.
    fn apply(&self, denominations: &str) -> serde_json::Result<Option<String>> {
        let mut members = Members::parse(denominations)?;
        let amount = |text: &str| {
            let invalid = |_| serde::de::Error::custom(format!("`{text}` is no amount"));
            text.parse::<Amount>().map_err(invalid)
        };
        let minimum = Some(amount(&members.text("minimum_value")?)?).max(self.minimum);
        let maximum = amount(&members.text("maximum_value")?)?;
        let maximum = self.maximum.map_or(maximum, |other| other.min(maximum));
        let is_left = |amount: &Amount| Some(*amount) >= minimum && *amount <= maximum;
        let listed: Option<Vec<String>> = match members.get("available_list") {
            Some(list) => serde_json::from_str(list)?,
            None => None,
        };
        let listed: Option<Vec<Amount>> = match listed {
            Some(list) => Some(
                list.iter()
                    .map(|text| amount(text))
                    .collect::<Result<_, _>>()?,
            ),
            None => None,
        };
        let is_fixed = members.get("type") == Some("\"fixed\"");
        let allowed = match (is_fixed, &self.list) {
            (true, allowed) => {
                let mut amounts = listed.clone().unwrap_or_default();
                amounts.retain(|amount| {
                    is_left(amount)
                        && (allowed.as_ref()).is_none_or(|allowed| allowed.contains(amount))
                });
                Some(amounts)
            }
            // A payment has no list: no amount can be left.
            (false, Some(_)) if members.get("type").is_none() => Some(Vec::new()),
            (false, Some(allowed)) => Some(
                allowed
                    .iter()
                    .copied()
                    .filter(|amount| is_left(amount))
                    .collect(),
            ),
            (false, None) => None,
        };
        match allowed {
            Some(amounts) if is_fixed && Some(&amounts) == listed.as_ref() => {}
            Some(amounts) => {
                let (Some(least), Some(greatest)) = (amounts.iter().min(), amounts.iter().max())
                else {
                    return Ok(None);
                };
                members.set("type", "", json("fixed"));
                members.set("minimum_value", "", json(&least.to_string()));
                members.set("maximum_value", "", json(&greatest.to_string()));
                members.set("available_list", "", amounts_json(&amounts));
            }
            None if minimum > Some(maximum) => return Ok(None),
            None => {
                let minimum = minimum.unwrap_or(maximum);
                members.set("minimum_value", "", json(&minimum.to_string()));
                members.set("maximum_value", "", json(&maximum.to_string()));
                if let Some(suggestions) = listed {
                    let left: Vec<Amount> = suggestions.into_iter().filter(is_left).collect();
                    let left = match left.is_empty() {
                        true => "null".to_owned(),
                        false => amounts_json(&left),
                    };
                    members.set("available_list", "", left);
                }
            }
        }
        members.to_json().map(Some)
    }
}

fn amounts_json(amounts: &[Amount]) -> String {
    json(&amounts.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// Returns a value as JSON; none of these can fail.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
