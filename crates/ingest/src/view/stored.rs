//! Facts and discount of a stored product, found in its canonical document without parsing.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use vitrine_model::facts::Facts;
use vitrine_model::geo::Country;
use vitrine_model::money::{Currency, Discount};
use vitrine_model::snapshot::PlacedDiscount;

// Keys in a document, up to their value. The quotes of a string's content are escaped, so only an object's key can read so,
// and objects in front of it have no such key. Searched for in each product of a catalog, so prepared once.
static CURRENCY_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(",\"currency\":\""));
static PAYOUT_TYPE_KEY: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(",\"payout_type\":\""));
static DISCOUNT_KEY: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(",\"discount_multiplier\":\""));

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
