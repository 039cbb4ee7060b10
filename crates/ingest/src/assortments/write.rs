//! Writing rules: as compact JSON, members in the order of the documentation, absent and empty lists left out where both
//! mean the same.

use vitrine_model::assortment::{DiscountChange, OwnDiscount, Rules, Selector};
use vitrine_model::geo::Country;
use vitrine_model::money::Currency;
use vitrine_model::product::PayoutTypeName;

use crate::load::json::write_text;

/// Writes rules as JSON. Equal rules have the same text, which is read as rules equal to them.
#[must_use]
pub fn to_json(rules: &Rules) -> String {
    let Rules {
        allow,
        deny,
        discounts,
    } = rules;
    let mut out = String::from("{");
    if let Some(allow) = allow {
        key("allow", &mut out);
        list(allow, &mut out, selector);
    }
    if !deny.is_empty() {
        key("deny", &mut out);
        list(deny, &mut out, selector);
    }
    if !discounts.is_empty() {
        key("discounts", &mut out);
        list(discounts, &mut out, discount);
    }
    out.push('}');
    out
}

fn selector(selector: &Selector, out: &mut String) {
    out.push('{');
    members(selector, out);
    out.push('}');
}

fn discount(discount: &OwnDiscount, out: &mut String) {
    let OwnDiscount { selector, change } = discount;
    out.push('{');
    members(selector, out);
    let (name, number) = match change {
        DiscountChange::Set(own) => ("set", own.to_string()),
        DiscountChange::Share(share) => ("share", share.to_string()),
    };
    key(name, out);
    write_text(&number, out);
    out.push('}');
}

fn members(selector: &Selector, out: &mut String) {
    let Selector {
        codes,
        categories,
        countries,
        currencies,
        payout_types,
    } = selector;
    if let Some(codes) = codes {
        key("codes", out);
        list(codes.iter(), out, write_text);
    }
    if let Some(categories) = categories {
        key("categories", out);
        list(categories.iter().map(String::as_str), out, write_text);
    }
    if let Some(countries) = countries {
        key("countries", out);
        list(countries.iter().map(Country::as_str), out, write_text);
    }
    if let Some(currencies) = currencies {
        key("currencies", out);
        list(currencies.iter().map(Currency::as_str), out, write_text);
    }
    if let Some(payout_types) = payout_types {
        key("payout_types", out);
        list(
            payout_types.iter().map(PayoutTypeName::as_str),
            out,
            write_text,
        );
    }
}

/// Appends the key of an object's next member.
fn key(name: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    write_text(name, out);
    out.push(':');
}

fn list<T>(items: impl IntoIterator<Item = T>, out: &mut String, write: impl Fn(T, &mut String)) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}
