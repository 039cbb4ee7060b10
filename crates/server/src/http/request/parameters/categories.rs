//! Values of `categories` that a client can't have meant: several categories in one value, values encoded twice, and what
//! programs write where a variable is empty. Taken literally they match nothing, and an empty page says nothing about that.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use vitrine_model::code::ProductCode;
use vitrine_model::selector::Selector;
use vitrine_wire::error::FaultType;

use super::faults::{Faults, shortened};
use super::rows;
use crate::http::error::ApiError;
use crate::http::request::query::encoded;

/// Checks the categories of a request that begins a walk. `visible` returns the categories that the request's key sees.
///
/// A request that continues a walk isn't checked: its categories may have lost their last product since.
///
/// # Errors
///
/// If one is a comma list of visible categories, one percent-encoded twice, or what programs write where a variable is empty,
/// with all of them.
pub(crate) fn check_categories<'v, V: Iterator<Item = &'v str>>(
    filter: &Selector,
    visible: impl FnOnce() -> V,
) -> Result<(), ApiError> {
    let is_empty = |value: &str| ProductCode::EMPTY_VARIABLES.contains(&value);
    let is_suspicious = |value: &&String| value.contains([',', '%']) || is_empty(value);
    let given = filter.categories.iter().flatten();
    let mut suspicious = given.filter(is_suspicious).peekable();
    if suspicious.peek().is_none() {
        return Ok(());
    }
    let visible: HashSet<&str> = visible().collect();
    let name = rows::CATEGORIES.name;
    let mut faults = Faults::default();
    for value in suspicious {
        if is_empty(value) && !visible.contains(value.as_str()) {
            let message = format!("`{name}` is {value:?}, which is no category");
            faults.add(FaultType::InvalidValue, name, message);
            faults.help_if_empty(value);
            continue;
        }
        let Some((mistake, meant)) = meant(value, &visible) else {
            continue;
        };
        let message = format!("`{name}` is {:?}, {mistake}", shortened(value));
        faults.add(FaultType::InvalidValue, name, message);
        let pairs: Vec<String> = meant
            .iter()
            .map(|category| format!("{name}={}", encoded(category)))
            .collect();
        faults.help(format!("did you mean `{}`?", pairs.join("&")));
    }
    faults.into_result()
}

/// Returns the mistake in a value that is no visible category, and the visible categories that are meant.
fn meant<'v>(value: &str, visible: &HashSet<&'v str>) -> Option<(&'static str, Vec<&'v str>)> {
    let known = |text: &str| visible.get(text).copied();
    let listed = |text: &str| -> Option<Vec<&'v str>> {
        let parts = text.split(',').map(|part| known(part.trim()));
        text.contains(',').then(|| parts.collect())?
    };
    if known(value).is_some() {
        return None;
    }
    if let Some(categories) = listed(value) {
        return Some(("a list of categories", categories));
    }
    let decoded = percent_decode_str(value).decode_utf8().ok()?;
    let single = known(&decoded).map(|category| vec![category]);
    let categories = single.or_else(|| listed(&decoded))?;
    Some(("which is percent-encoded twice", categories))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_twice_encoded_categories_are_recognised() {
        let visible = HashSet::from(["fashion", "food & drink", "home", "a,b", "100%25"]);
        for (value, expected) in [
            ("fashion,home", &["fashion", "home"] as &[_]),
            ("fashion, home", &["fashion", "home"]),
            ("food%20%26%20drink", &["food & drink"]),
            ("fashion%2Chome", &["fashion", "home"]),
            ("a%2Cb", &["a,b"]),
        ] {
            let found = meant(value, &visible).map(|(_, categories)| categories);
            assert_eq!(found.as_deref(), Some(expected), "{value}");
        }
        for value in [
            "a,b",
            "100%25",
            "fashion,none",
            "fashion,",
            ",",
            "%",
            "%FF",
            "none%20",
        ] {
            assert_eq!(meant(value, &visible), None, "{value}");
        }
    }
}
