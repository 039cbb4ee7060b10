//! Sample products in variants, overrides of all kinds, and random numbers to choose by.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vitrine_model::selector::{CodePattern, Selector};
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::record::{Moment, StoredProduct};

use crate::harness::{SAMPLE, Store};

/// Returns the author of an end.
pub fn by_model() -> AuditContext {
    AuditContext {
        by: "model".to_owned(),
        note: None,
        action: AuditAction::EndOverride,
        confirmation: None,
    }
}

/// Products of all kinds in the sample catalog.
pub const CODES: [&str; 8] = [
    "PANDANLANE-SG",
    "LIFTBELL-US",
    "AHLQVIST-SE",
    "HARBOURQUILL-US",
    "NORDHAV-FI",
    "OPENFARER-US",
    "BRIARWICK-GB",
    "BRIARWICK-IE",
];

pub const VARIANTS: usize = 3;

/// Random numbers (xorshift), the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    pub fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }

    pub fn is_one_of(&mut self, in_number: usize) -> bool {
        self.below(in_number) == 0
    }
}

/// A variant of a sample product.
pub fn variant(code: &str, number: usize) -> Value {
    let sample = std::fs::read_to_string(SAMPLE).unwrap();
    let records = sample
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut record = records
        .into_iter()
        .find(|record| record["code"] == code)
        .unwrap();
    match number {
        0 => {}
        1 => {
            record["discount_multiplier"] = json!("0.0375");
            record["is_orderable"] = json!(false);
            record["categories"] = json!(["travel"]);
        }
        _ => {
            record["state"] = json!("TEMPORARILY_DEGRADED");
            record["countries_redeemable_in"] = json!(["SE", "FI"]);
            let members = record.as_object_mut().unwrap();
            members.remove("availability");
            if record["payout_type"] == "payment" {
                record["payment"]["denominations"] =
                    json!({"minimum_value": "15.00", "maximum_value": "40.00"});
            }
        }
    }
    record
}

pub fn selections() -> Vec<Selector> {
    let code = |text: &str| Selector {
        codes: Some([text.parse::<CodePattern>().unwrap()].into_iter().collect()),
        ..Selector::default()
    };
    vec![
        code("BRIARWICK-*"),
        code("NORDHAV-FI"),
        code("PANDANLANE-SG"),
        code("*"),
        Selector {
            categories: Some(vec!["travel".to_owned()]),
            ..Selector::default()
        },
        Selector {
            countries: Some(vec!["SE".parse().unwrap()]),
            is_orderable: Some(true),
            ..Selector::default()
        },
        Selector {
            payout_types: Some(vec!["gift_card".parse().unwrap()]),
            states: Some(vec!["LIVE".parse().unwrap()]),
            ..Selector::default()
        },
    ]
}

pub const VALUES: [&[&str]; 12] = [
    &["state=TEMPORARILY_DISABLED", "is_orderable=false"],
    &["visible=false"],
    &["discount_multiplier=0.02"],
    &["discount_multiplier=0.0375"],
    &["minimum_value=10"],
    &["maximum_value=100"],
    &["available_list=20,50,400"],
    &["minimum_value=60", "availability=stocked"],
    &["categories+=sale", "countries_redeemable_in-=SE"],
    &["categories-=travel", "is_orderable=true"],
    &["countries_redeemable_in+=SE"],
    &["availability=realtime", "state=LIVE"],
];

pub fn documents() -> BTreeMap<(String, usize), Value> {
    let mut documents = BTreeMap::new();
    for number in 0..VARIANTS {
        let plain = Store::new();
        plain.load_products(&CODES.map(|code| variant(code, number)));
        let store = vitrine_store::open(&plain.url(), vitrine_store::IfMissing::Refuse).unwrap();
        store
            .read_products(Moment::Live, &mut |product| {
                let code = product.code.to_string();
                documents.insert((code, number), document(&product));
                Ok(())
            })
            .unwrap();
    }
    documents
}

pub fn document(product: &StoredProduct) -> Value {
    serde_json::from_str(&product.document).unwrap()
}
