//! Suggestions for faulty and unknown values.

use vitrine_model::geo::Country;
use vitrine_model::money::Currency;

/// Maximum length of a text that is compared with others, in bytes.
const MAX_COMPARED_BYTES: usize = 200;

/// Minimum likeness of a suggestion, by Jaro and Winkler.
const MIN_LIKENESS: f64 = 0.75;

/// Payout types of the contract.
const PAYOUT_TYPES: [&str; 3] = ["gift_card", "payment", "subscription"];

/// Returns the name that is most like an unknown one, if one is near.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let lower = name.trim().to_lowercase().replace(['-', ' '], "_");
    let likeness = |known: &str| match known.len() > MAX_COMPARED_BYTES {
        true => 0.0,
        false => {
            let known = known.to_lowercase().replace(['-', ' '], "_");
            strsim::jaro_winkler(&lower, &known)
        }
    };
    let near = known.map(|known| (likeness(known), known));
    let near = near.filter(|(likeness, _)| *likeness > MIN_LIKENESS);
    let nearest = near.max_by(|left, right| left.0.total_cmp(&right.0));
    nearest.map(|(_, name)| name)
}

/// Returns a text without blanks around it, if that makes it one.
pub(crate) fn trimmed(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let is_short = trimmed.len() <= MAX_COMPARED_BYTES;
    (is_short && !trimmed.is_empty() && trimmed != text).then(|| trimmed.to_owned())
}

pub(crate) fn country(text: &str) -> Option<String> {
    Country::meant(text).map(|country| country.to_string())
}

pub(crate) fn currency(text: &str) -> Option<String> {
    let capitals = capitals(text)?;
    capitals.parse::<Currency>().is_ok().then_some(capitals)
}

pub(crate) fn payout_type(text: &str) -> Option<String> {
    nearest(text, PAYOUT_TYPES.into_iter()).map(str::to_owned)
}

fn capitals(text: &str) -> Option<String> {
    let is_short = text.len() <= MAX_COMPARED_BYTES;
    is_short.then(|| text.trim().to_ascii_uppercase())
}
