//! Amounts of a product, in one line.

use serde::Deserialize;

use super::borrowed::Borrowed;

/// Maximum number of amounts of a list that are shown.
const MAX_SHOWN: usize = 4;

/// Amounts of a detail object, each of which may be missing.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Denominations<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Borrowed<'a>>,
    #[serde(borrow)]
    minimum_value: Option<Borrowed<'a>>,
    #[serde(borrow)]
    maximum_value: Option<Borrowed<'a>>,
    #[serde(borrow)]
    available_list: Option<Vec<Borrowed<'a>>>,
}

/// Price of a plan.
#[derive(Debug, Deserialize)]
pub(super) struct Plan<'a> {
    #[serde(borrow)]
    price: Option<Borrowed<'a>>,
}

/// Returns the amounts with their currency: `EUR 5, 10, 25`, `SEK 50 – 5,000`, `USD 4.99 – 149 · 3 plans`.
pub(super) fn in_words(
    currency: &str,
    denominations: Option<&Denominations<'_>>,
    plans: Option<&[Plan<'_>]>,
) -> String {
    let amounts = match (denominations, plans) {
        (Some(denominations), _) => describe_denominations(denominations),
        (None, Some(plans)) => describe_plans(plans),
        (None, None) => String::new(),
    };
    format!("{currency} {amounts}").trim().to_owned()
}

/// Returns the lowest amount, in hundredths; zero if there is none.
pub(super) fn lowest(denominations: Option<&Denominations<'_>>, plans: Option<&[Plan<'_>]>) -> u64 {
    let listed = denominations.and_then(|of| of.available_list.as_deref());
    let minimum = denominations.and_then(|of| of.minimum_value.as_deref());
    let is_fixed = denominations.is_some_and(|of| of.kind.as_deref() == Some("fixed"));
    let listed = listed.filter(|_| is_fixed).unwrap_or_default().iter();
    let listed = listed.filter_map(|amount| hundredths(amount)).min();
    let prices = plans.unwrap_or_default().iter();
    let prices = prices.filter_map(|plan| plan.price.as_deref());
    let others = || minimum.into_iter().chain(prices).filter_map(hundredths);
    listed.or_else(|| others().min()).unwrap_or_default()
}

/// Returns an amount in hundredths.
fn hundredths(amount: &str) -> Option<u64> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let mut digits = fraction.chars().chain(['0', '0']);
    let mut digit = || digits.next()?.to_digit(10).map(u64::from);
    let cents = digit()? * 10 + digit()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(100)?
        .checked_add(cents)
}

fn describe_denominations(denominations: &Denominations<'_>) -> String {
    let list = denominations.available_list.as_deref().unwrap_or_default();
    let is_open = denominations.kind.as_deref() != Some("fixed");
    if is_open || list.is_empty() {
        let end = |end: &Option<Borrowed<'_>>| end.as_deref().map(readable);
        return range(
            end(&denominations.minimum_value),
            end(&denominations.maximum_value),
        );
    }
    let shown: Vec<String> = list
        .iter()
        .take(MAX_SHOWN)
        .map(|one| readable(one))
        .collect();
    let rest = list.len().saturating_sub(MAX_SHOWN);
    match rest {
        0 => shown.join(", "),
        _ => format!("{} +{rest}", shown.join(", ")),
    }
}

fn describe_plans(plans: &[Plan<'_>]) -> String {
    let mut prices: Vec<&str> = plans
        .iter()
        .filter_map(|plan| plan.price.as_deref())
        .collect();
    // Sorted by value: amounts have two decimals, so the longer text is the greater amount.
    prices.sort_unstable_by_key(|price| (price.len(), *price));
    let range = range(
        prices.first().map(|price| readable(price)),
        prices.last().map(|price| readable(price)),
    );
    let noun = if plans.len() == 1 { "plan" } else { "plans" };
    format!("{range} · {} {noun}", plans.len())
}

fn range(minimum: Option<String>, maximum: Option<String>) -> String {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) if minimum != maximum => format!("{minimum} – {maximum}"),
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => String::new(),
    }
}

/// Formats an amount for people: `5000.00` is `5,000`.
pub(super) fn readable(amount: &str) -> String {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return amount.to_owned();
    }
    let grouped = grouped(whole);
    match fraction.trim_end_matches('0') {
        "" => grouped,
        _ => format!("{grouped}.{fraction}"),
    }
}

/// Groups digits by thousands, with commas.
pub(super) fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(detail: &str) -> String {
        let denominations: Denominations<'_> = serde_json::from_str(detail).unwrap();
        in_words("EUR", Some(&denominations), None)
    }

    #[test]
    fn amounts_are_formatted_for_people() {
        let open = r#"{"type":"open","minimum_value":"50.00","maximum_value":"5000.00","available_list":["50.00"]}"#;
        assert_eq!(shown(open), "EUR 50 – 5,000");
        let fixed = r#"{"type":"fixed","minimum_value":"5.00","maximum_value":"25.00","available_list":["5.00","10.50","25.00"]}"#;
        assert_eq!(shown(fixed), "EUR 5, 10.50, 25");
        let many = r#"{"type":"fixed","available_list":["1.00","2.00","3.00","4.00","5.00","1000000.00"]}"#;
        assert_eq!(shown(many), "EUR 1, 2, 3, 4 +2");
        assert_eq!(
            shown(r#"{"minimum_value":"5.00","maximum_value":"5.00"}"#),
            "EUR 5"
        );
        assert_eq!(shown(r#"{"type":"later"}"#), "EUR");
        let plans: Vec<Plan<'_>> =
            serde_json::from_str(r#"[{"price":"149.00"},{"price":"4.99"}]"#).unwrap();
        assert_eq!(
            in_words("USD", None, Some(&plans)),
            "USD 4.99 – 149 · 2 plans"
        );
        assert_eq!(readable("odd"), "odd");
        assert_eq!(lowest(None, Some(&plans)), 499);
        assert_eq!((hundredths("5"), hundredths("1.5")), (Some(500), Some(150)));
        assert_eq!((hundredths("x"), hundredths("")), (None, None));
    }
}
