//! Rules of assortments, and what they show, evaluated by hand.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use vitrine_model::assortment::{
    AssortmentState, AssortmentTable, DiscountChange, KnownAssortment, NewVersion, OwnDiscount,
    Rules,
};
use vitrine_model::changes::StateId;
use vitrine_model::code::ProductCode;
use vitrine_model::money::Discount;
use vitrine_model::selector::Selector;

use crate::naive::{Catalog, Made, category, code, country, currency, discount, payout_type};

pub use vitrine_model::assortment::Assortment;

fn selector() -> impl Strategy<Value = Selector> {
    let codes = prop::collection::vec(code(), 0..20);
    (
        prop::option::weighted(0.3, codes),
        prop::option::weighted(0.2, prop::collection::vec(category(), 0..3)),
        prop::option::weighted(0.4, prop::collection::vec(country(), 0..3)),
        prop::option::weighted(0.3, prop::collection::vec(currency(), 0..3)),
        prop::option::weighted(0.2, prop::collection::vec(payout_type(), 0..3)),
    )
        .prop_map(
            |(codes, categories, countries, currencies, payout_types)| Selector {
                codes: codes.map(FromIterator::from_iter),
                categories,
                countries,
                currencies,
                payout_types: payout_types.map(|names| {
                    let names = names.into_iter();
                    names
                        .map(|name| name.parse().expect("a payout type"))
                        .collect()
                }),
                ..Selector::default()
            },
        )
}

fn change() -> impl Strategy<Value = DiscountChange> {
    let share = prop::sample::select(vec!["0", "0.8", "0.333333", "1", "1.5", "3", "80"]);
    let share = share.prop_map(|text| text.parse().expect("a share"));
    prop_oneof![
        discount().prop_map(DiscountChange::Set),
        share.prop_map(DiscountChange::Share),
    ]
}

pub fn rules() -> impl Strategy<Value = Rules> {
    let discount =
        (selector(), change()).prop_map(|(selector, change)| OwnDiscount { selector, change });
    (
        prop::option::weighted(0.8, prop::collection::vec(selector(), 0..5)),
        prop::collection::vec(selector(), 0..3),
        prop::collection::vec(discount, 0..6),
    )
        .prop_map(|(allow, deny, discounts)| Rules {
            allow,
            deny,
            discounts,
        })
}

pub fn assortment(rules: &Rules) -> Assortment {
    Assortment::new("partner".to_owned(), StateId::default(), rules.clone())
}

/// Returns an assortment with these versions, the last of which is live. Their ids are those of [`version_id`].
pub fn known(versions: &[Rules]) -> Arc<KnownAssortment> {
    let mut table = AssortmentTable::default();
    for (number, rules) in (1..).zip(versions) {
        let version = NewVersion {
            assortment: Assortment::new("partner".to_owned(), version_id(number), rules.clone()),
            number,
            version_id: number.to_string(),
            since: Timestamp::from_second(number.into()).expect("a time"),
        };
        let kept = HashSet::from(["partner"]);
        table = table.updated(&kept, vec![version], AssortmentState::default());
    }
    Arc::clone(table.get("partner").expect("a version"))
}

/// Returns the id of the version with this number, counted from 1.
pub fn version_id(number: u32) -> StateId {
    StateId::of_assortment(&number.to_string())
}

fn selects(selector: &Selector, code: &ProductCode, made: &Made) -> bool {
    let Selector {
        codes,
        categories,
        countries,
        currencies,
        payout_types,
        ..
    } = selector;
    (codes.as_ref()).is_none_or(|codes| codes.texts().any(|one| one == code.as_str()))
        && (categories.as_ref()).is_none_or(|names| {
            names
                .iter()
                .any(|name| made.categories.iter().any(|own| **own == **name))
        })
        && (countries.as_ref())
            .is_none_or(|countries| countries.iter().any(|one| made.countries.contains(one)))
        && (currencies.as_ref()).is_none_or(|currencies| currencies.contains(&made.currency))
        && (payout_types.as_ref())
            .is_none_or(|names| names.iter().any(|name| name.as_str() == made.payout_type))
}

/// Returns true if the rules show a product.
pub fn shows(rules: &Rules, code: &ProductCode, made: &Made) -> bool {
    let any = |selectors: &[Selector]| selectors.iter().any(|one| selects(one, code, made));
    rules.allow.as_ref().is_none_or(|allow| any(allow)) && !any(&rules.deny)
}

/// Returns the index of the entry that counts for a product, and its own discount, unless that would be above 1.
pub fn own(rules: &Rules, code: &ProductCode, made: &Made) -> Option<(usize, Option<Discount>)> {
    let mut discounts = rules.discounts.iter().enumerate();
    let (entry, first) = discounts.find(|(_, own)| selects(&own.selector, code, made))?;
    Some((entry, first.change.of(made.discount?)))
}

/// Returns the discount that a client sees.
pub fn shown_discount(rules: &Rules, code: &ProductCode, made: &Made) -> Option<Discount> {
    let own = own(rules, code, made).and_then(|(_, own)| own);
    own.or(made.discount.map(Discount::shown))
}

/// Returns the products that the rules show.
pub fn visible(catalog: &Catalog, rules: &Rules) -> Catalog {
    let products = catalog.iter();
    let visible = products.filter(|(code, made)| shows(rules, code, made));
    visible
        .map(|(code, made)| (code.clone(), made.clone()))
        .collect()
}
