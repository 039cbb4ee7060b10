//! A naive model: each product is evaluated by itself, at each moment, on its JSON.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

use jiff::Timestamp;
use serde_json::{Value, json};
use vitrine_model::selector::{Codes, Selector};
use vitrine_store::overrides::OverrideStatus;

/// An override of the model.
#[derive(Clone)]
pub struct Model {
    pub number: u64,
    pub selection: Selector,
    pub frozen: Option<Vec<String>>,
    pub values: Vec<String>,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    pub status: OverrideStatus,
}

/// Returns true if a document is selected, by a reading of its own.
pub fn selects(one: &Model, document: &Value) -> bool {
    let code = document["code"].as_str().unwrap();
    if let Some(frozen) = &one.frozen {
        return frozen.iter().any(|frozen| frozen == code);
    }
    let has = |list: &Value, wanted: &str| list.as_array().unwrap().iter().any(|own| own == wanted);
    let selection = &one.selection;
    let mut codes = selection.codes.iter().flat_map(Codes::texts);
    let by_code = codes.all(|pattern| match pattern.strip_suffix('*') {
        Some(start) => code.starts_with(start),
        None => code == pattern,
    });
    by_code
        && (selection.categories.iter().flatten())
            .all(|wanted| has(&document["categories"], wanted))
        && (selection.countries.iter().flatten())
            .all(|wanted| has(&document["countries_redeemable_in"], wanted.as_str()))
        && selection
            .payout_types
            .iter()
            .flatten()
            .all(|wanted| document["payout_type"] == wanted.as_str())
        && selection
            .states
            .iter()
            .flatten()
            .all(|wanted| document["state"] == wanted.as_str())
        && selection
            .is_orderable
            .is_none_or(|wanted| document["is_orderable"] == wanted)
}

pub fn cents(value: &Value) -> u64 {
    value.as_str().unwrap().replace('.', "").parse().unwrap()
}

pub fn money(cents: u64) -> Value {
    json!(format!("{}.{:02}", cents / 100, cents % 100))
}

/// Returns what clients see of a base; none if it is hidden.
pub fn evaluate(base: &Value, overrides: &[Model]) -> Option<Value> {
    let mut seen = base.clone();
    let active = overrides
        .iter()
        .filter(|one| one.status == OverrideStatus::Active);
    let assigned = active
        .filter(|one| selects(one, base))
        .flat_map(|one| &one.values);
    let (mut least, mut greatest, mut lists) = (0, u64::MAX, Vec::new());
    for value in assigned {
        let (name, value) = value.split_once('=').unwrap();
        let list = |name: &str, seen: &mut Value, is_added: bool| {
            let list = seen[name].as_array_mut().unwrap();
            let has = list.iter().any(|own| own == value);
            match is_added {
                true if !has => list.push(json!(value)),
                true => {}
                false => list.retain(|own| own != value),
            }
        };
        match name {
            "visible" => return None,
            "state" | "availability" => seen[name] = json!(value),
            "is_orderable" => seen[name] = json!(value == "true"),
            "discount_multiplier" => seen[name] = json!(&value[..4]),
            "minimum_value" => least = least.max(100 * value.parse::<u64>().unwrap()),
            "maximum_value" => greatest = greatest.min(100 * value.parse::<u64>().unwrap()),
            "available_list" => lists.push(
                value
                    .split(',')
                    .map(|amount| 100 * amount.parse::<u64>().unwrap())
                    .collect::<Vec<u64>>(),
            ),
            name if name.ends_with('+') => list(&name[..name.len() - 1], &mut seen, true),
            name => list(&name[..name.len() - 1], &mut seen, false),
        }
    }
    if (least, greatest, lists.len()) != (0, u64::MAX, 0)
        && !narrow(&mut seen, least, greatest, &lists)
    {
        seen["is_orderable"] = json!(false);
    }
    Some(seen)
}

/// Leaves these amounts. Returns false if none is left.
pub fn narrow(seen: &mut Value, least: u64, greatest: u64, lists: &[Vec<u64>]) -> bool {
    let payout_type = seen["payout_type"].as_str().unwrap().to_owned();
    if payout_type != "gift_card" && payout_type != "payment" {
        return true;
    }
    let denominations = &mut seen[payout_type.as_str()]["denominations"];
    let least = least.max(cents(&denominations["minimum_value"]));
    let greatest = greatest.min(cents(&denominations["maximum_value"]));
    let is_left = |amount: &u64| {
        (least..=greatest).contains(amount) && lists.iter().all(|list| list.contains(amount))
    };
    let listed: Option<Vec<u64>> =
        (denominations["available_list"].as_array()).map(|list| list.iter().map(cents).collect());
    let is_fixed = denominations["type"] == "fixed";
    let left: Option<Vec<u64>> = match lists.first() {
        _ if is_fixed => Some(
            listed
                .clone()
                .unwrap()
                .into_iter()
                .filter(is_left)
                .collect(),
        ),
        Some(_) if payout_type == "payment" => return false,
        Some(first) => Some(first.iter().copied().filter(is_left).collect()),
        None => None,
    };
    match left {
        Some(left) if left.is_empty() => return false,
        Some(left) if is_fixed && Some(&left) == listed.as_ref() => {}
        Some(left) => {
            *denominations = json!({
                "type": "fixed",
                "minimum_value": money(*left.iter().min().unwrap()),
                "maximum_value": money(*left.iter().max().unwrap()),
                "available_list": left.into_iter().map(money).collect::<Vec<_>>(),
            });
        }
        None if least > greatest => return false,
        None => {
            denominations["minimum_value"] = money(least);
            denominations["maximum_value"] = money(greatest);
            if let Some(listed) = listed {
                let left: Vec<Value> = listed.into_iter().filter(is_left).map(money).collect();
                denominations["available_list"] = match left.is_empty() {
                    true => Value::Null,
                    false => json!(left),
                };
            }
        }
    }
    true
}
