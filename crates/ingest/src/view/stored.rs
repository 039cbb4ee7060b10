//! Facts, name, state and discount of a stored product, found in its canonical document without parsing.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use vitrine_model::facts::Facts;
use vitrine_model::geo::Country;
use vitrine_model::money::{Currency, Discount};
use vitrine_model::snapshot::PlacedDiscount;

// Keys in a document, up to their value. The quotes of a string's content are escaped, so only an object's key can read so,
// and objects in front of it have no such key. Searched for in each product of a catalog, so prepared once.
static CURRENCY_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(",\"currency\":\""));
static STATE_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(",\"state\":\""));
static PAYOUT_TYPE_KEY: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(",\"payout_type\":\""));
static DISCOUNT_KEY: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(",\"discount_multiplier\":\""));

/// Start of a document, up to the value of the name.
const NAME_KEY: &[u8] = b"{\"name\":";

/// A name, borrowed from the document unless it has escapes.
#[derive(Deserialize)]
struct Name<'d>(#[serde(borrow)] Cow<'d, str>);

/// Returns what follows a key in a document.
fn behind<'d>(document: &'d str, key: &Finder<'_>) -> Option<&'d str> {
    let at = key.find(document.as_bytes())?;
    document.get(at + key.needle().len()..)
}

/// Returns what selectors look at in a stored product: those beside its canonical document, and currency
/// and payout type, which are in it; `None` if the document is damaged.
#[must_use]
pub fn facts<'a>(
    document: &'a str,
    is_orderable: bool,
    countries: &'a [Country],
    categories: &'a [Box<str>],
) -> Option<Facts<'a>> {
    // Without parsing the rest: only name and code are in front of them, and quotes in these are escaped.
    let (currency, rest) = behind(document, &CURRENCY_KEY)?.split_once('"')?;
    let (payout_type, _) = behind(rest, &PAYOUT_TYPE_KEY)?.split_once('"')?;
    Some(Facts {
        is_orderable,
        currency: Currency::well_formed(currency)?,
        payout_type,
        countries,
        categories,
    })
}

/// Returns the state of a stored product; `None` if the document is damaged.
#[must_use]
pub fn state(document: &str) -> Option<&str> {
    let (state, _) = behind(document, &STATE_KEY)?.split_once('"')?;
    Some(state)
}

/// Returns the name of a stored product; empty if the document is damaged.
#[must_use]
pub fn name(document: &[u8]) -> Cow<'_, str> {
    let value = document.strip_prefix(NAME_KEY).unwrap_or_default();
    let mut values = serde_json::Deserializer::from_slice(value);
    let name = Name::deserialize(&mut values);
    name.map_or(Cow::Borrowed(""), |Name(name)| name)
}

/// Returns the discount of a stored product with the place of its text in the canonical document; `None` if one of the two
/// is damaged. `exact` is the discount as loaded.
#[must_use]
pub fn discount(document: &str, exact: &str) -> Option<PlacedDiscount> {
    let exact: Discount = exact.parse().ok()?;
    let rest = behind(document, &DISCOUNT_KEY)?;
    let start = document.len() - rest.len();
    let value = rest.strip_prefix(exact.cut().text().as_str())?;
    let found = PlacedDiscount { exact, start };
    value.starts_with('"').then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_state_are_those_of_the_document() {
        let document = r#"{"name":"Caf\u00e9 \"A\",\"state\":\"X","code":"A","currency":"EUR","state":"LIVE"}"#;
        assert_eq!(name(document.as_bytes()), "Café \"A\",\"state\":\"X");
        assert_eq!(state(document), Some("LIVE"));
        assert_eq!((name(b"{}"), state("{}")), (Cow::Borrowed(""), None));
    }
}
