//! The naive model of assortments: rules, and the catalog that a client sees by them. Each product is looked at by itself.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::catalog::{CATEGORIES, CODES, CURRENCIES, Catalog, Product};

/// Names of assortments.
pub const NAMES: [&str; 2] = ["north", "south"];

/// Number of millionths in one.
const ONE: u64 = 1_000_000;

/// Selector of products: each list that has values holds if the product has one of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    codes: Vec<&'static str>,
    categories: Vec<&'static str>,
    countries: Vec<&'static str>,
    currencies: Vec<&'static str>,
    payout_types: Vec<&'static str>,
}

/// Discount of a client's own, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnDiscount {
    Set(u32),
    Share(u32),
}

/// Rules of an assortment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    allow: Option<Vec<Selector>>,
    deny: Vec<Selector>,
    discounts: Vec<(Selector, OwnDiscount)>,
}

impl Selector {
    fn selects(&self, code: &str, product: &Product) -> bool {
        let any_of = |own: &[&str], wanted: &[&str]| {
            wanted.is_empty() || wanted.iter().any(|wanted| own.contains(wanted))
        };
        let facts = &product.facts;
        any_of(&[code], &self.codes)
            && any_of(&facts.categories, &self.categories)
            && any_of(&facts.countries, &self.countries)
            && any_of(&[facts.currency], &self.currencies)
            && any_of(&[facts.payout.name()], &self.payout_types)
    }

    fn json(&self) -> Map<String, Value> {
        let members = [
            ("codes", &self.codes),
            ("categories", &self.categories),
            ("countries", &self.countries),
            ("currencies", &self.currencies),
            ("payout_types", &self.payout_types),
        ];
        let members = members.into_iter().filter(|(_, values)| !values.is_empty());
        members
            .map(|(name, values)| (name.to_owned(), json!(values)))
            .collect()
    }
}

impl OwnDiscount {
    /// Returns the discount in place of the product's; `None` if it is above 1.
    fn of(self, listed: u32) -> Option<u32> {
        let own = match self {
            Self::Set(own) => u64::from(own),
            Self::Share(share) => u64::from(listed) * u64::from(share) / ONE,
        };
        // Above 1 by what is cut off, too.
        let is_above = match self {
            Self::Set(_) => own > ONE,
            Self::Share(share) => u64::from(listed) * u64::from(share) > ONE * ONE,
        };
        u32::try_from(own).ok().filter(|_| !is_above)
    }
}

impl Rules {
    /// The text of the rules.
    pub fn json(&self) -> Value {
        let selectors = |list: &[Selector]| list.iter().map(Selector::json).collect::<Vec<_>>();
        let discounts = self.discounts.iter().map(|(selector, own)| {
            let (name, millionths) = match own {
                OwnDiscount::Set(millionths) => ("set", millionths),
                OwnDiscount::Share(millionths) => ("share", millionths),
            };
            let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
            let mut members = selector.json();
            members.insert(name.to_owned(), format!("{whole}.{rest:06}").into());
            members
        });
        let mut rules = json!({
            "deny": selectors(&self.deny),
            "discounts": discounts.collect::<Vec<_>>(),
        });
        if let Some(allow) = &self.allow {
            rules["allow"] = json!(selectors(allow));
        }
        rules
    }

    fn shows(&self, code: &str, product: &Product) -> bool {
        let any = |list: &[Selector]| list.iter().any(|one| one.selects(code, product));
        self.allow.as_ref().is_none_or(|allow| any(allow)) && !any(&self.deny)
    }

    fn own_discount(&self, code: &str, product: &Product) -> Option<OwnDiscount> {
        let mut entries = self.discounts.iter();
        let entry = entries.find(|(selector, _)| selector.selects(code, product));
        entry.map(|(_, own)| *own)
    }

    /// The product as it is seen; `None` if it isn't visible.
    pub fn seen(&self, code: &str, product: &Product) -> Option<Product> {
        let mut seen = self.shows(code, product).then(|| product.clone())?;
        let discount = &mut seen.facts.discount_millionths;
        if let Some(own) = self.own_discount(code, product) {
            *discount = own.of(*discount).unwrap_or(*discount);
        }
        Some(seen)
    }

    /// True if a visible product's discount would be above 1.
    pub fn is_excessive(&self, catalog: &Catalog) -> bool {
        catalog.0.iter().any(|(code, product)| {
            let own = self.own_discount(code, product);
            let is_above =
                own.is_some_and(|own| own.of(product.facts.discount_millionths).is_none());
            is_above && self.shows(code, product)
        })
    }
}

impl Catalog {
    /// The catalog as it is seen by rules; without them, all of it.
    pub fn seen_by(&self, rules: Option<&Rules>) -> Self {
        let Some(rules) = rules else {
            return self.clone();
        };
        let products = self.0.iter();
        Self(
            products
                .filter_map(|(code, product)| Some((*code, rules.seen(code, product)?)))
                .collect(),
        )
    }
}

/// Draws rules.
pub fn rules() -> impl Strategy<Value = Rules> {
    let selectors = |count| prop::collection::vec(selector(), 0..count);
    let own = prop_oneof![
        prop::sample::select(&[0, 12_500, 125_000, 1_000_000][..]).prop_map(OwnDiscount::Set),
        // The last one makes more than 1 of some discounts.
        prop::sample::select(&[0, 333_333, 800_000, 8_000_000][..]).prop_map(OwnDiscount::Share),
    ];
    (
        prop::option::of(selectors(3)),
        selectors(2),
        prop::collection::vec((selector(), own), 0..3),
    )
        .prop_map(|(allow, deny, discounts)| Rules {
            allow,
            deny,
            discounts,
        })
}

fn selector() -> impl Strategy<Value = Selector> {
    let no = || Just(Vec::new());
    let values = |of: &'static [&'static str], most| prop_oneof![3 => no(), 1 => prop::sample::subsequence(of, 1..=most)];
    let codes = prop_oneof![1 => no(), 1 => prop::sample::subsequence(&CODES[..], 1..7)];
    (
        codes,
        values(&CATEGORIES, 2),
        // Also one that no product has.
        values(&["AQ", "DE", "FR", "GB"], 3),
        values(&CURRENCIES, 1),
        values(&["gift_card", "payment", "voucher"], 2),
    )
        .prop_map(
            |(codes, categories, countries, currencies, payout_types)| Selector {
                codes,
                categories,
                countries,
                currencies,
                payout_types,
            },
        )
}
