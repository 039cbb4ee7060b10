//! Overrides that are named as those that make a value: they alone make it, and those are among them whose end would change it.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

use std::collections::BTreeSet;

use serde_json::Value;
use vitrine_ingest::overrides::overrides_of;
use vitrine_store::record::Moment;

use super::World;
use super::naive::{Model, evaluate};
use super::samples::CODES;

const FIELDS: [&str; 6] = [
    "state",
    "is_orderable",
    "availability",
    "categories",
    "countries_redeemable_in",
    "denominations",
];

/// Returns the value of a field; null if the product is hidden.
fn value(seen: Option<&Value>, field: &str) -> Value {
    let Some(seen) = seen else {
        return Value::Null;
    };
    let payout_type = seen["payout_type"].as_str().unwrap();
    match field {
        "denominations" => seen[payout_type][field].clone(),
        field => seen[field].clone(),
    }
}

impl World {
    /// Compares the overrides that are named for each field of each product with what the model makes without them.
    pub(super) fn check_attribution(&self) {
        for code in CODES {
            let Some(base) = self.base.get(code) else {
                continue;
            };
            let found = overrides_of(&self.store, &code.parse().unwrap(), Moment::Live).unwrap();
            let seen = evaluate(base, &self.overrides);
            for field in FIELDS.iter().filter(|_| seen.is_some()) {
                let named = found.iter().filter(|(_, fields)| fields.contains(field));
                let named: BTreeSet<u64> = named.map(|(one, _)| one.number).collect();
                let current = value(seen.as_ref(), field);
                let with = |is_wanted: &dyn Fn(u64) -> bool| {
                    let wanted = self.overrides.iter().filter(|one| is_wanted(one.number));
                    let wanted: Vec<Model> = wanted.cloned().collect();
                    value(evaluate(base, &wanted).as_ref(), field)
                };
                let what = || format!("{field} of {code}: {named:?}");
                assert_eq!(
                    with(&|number| named.contains(&number)),
                    current,
                    "{}",
                    what()
                );
                if current == value(Some(base), field) {
                    continue;
                }
                for one in &self.overrides {
                    let changes = with(&|number| number != one.number) != current;
                    assert!(!changes || named.contains(&one.number), "{}", what());
                }
            }
        }
    }
}
