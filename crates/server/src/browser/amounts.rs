//! Amounts of a product, in one line.

use vitrine_ingest::load::json::Node;

/// Maximum number of amounts of a list that are shown.
const MAX_SHOWN: usize = 4;

/// Returns the amounts with their currency: `EUR 5, 10, 25`, `SEK 50 – 5,000`, `USD 4.99 – 149 · 3 plans`.
pub(super) fn in_words(product: &Node<'_>) -> String {
    let detail = text(product, "payout_type").and_then(|name| product.member(name));
    let of_detail = |name: &str| detail?.member(name);
    let amounts = match (of_detail("denominations"), of_detail("subscription_plans")) {
        (Some(denominations), _) => describe_denominations(denominations),
        (None, Some(Node::List(plans))) => describe_plans(plans),
        _ => String::new(),
    };
    let currency = text(product, "currency").unwrap_or_default();
    format!("{currency} {amounts}").trim().to_owned()
}

fn text<'n>(node: &'n Node<'_>, name: &str) -> Option<&'n str> {
    node.member(name).and_then(Node::text)
}

fn describe_denominations(denominations: &Node<'_>) -> String {
    let list = match denominations.member("available_list") {
        Some(Node::List(list)) => list.iter().filter_map(Node::text).collect(),
        _ => Vec::new(),
    };
    if text(denominations, "type") != Some("fixed") || list.is_empty() {
        let end = |name: &str| text(denominations, name).map(readable);
        return range(end("minimum_value"), end("maximum_value"));
    }
    let shown: Vec<String> = list
        .iter()
        .take(MAX_SHOWN)
        .map(|one| readable(one))
        .collect();
    match list.len().saturating_sub(MAX_SHOWN) {
        0 => shown.join(", "),
        rest => format!("{} +{rest}", shown.join(", ")),
    }
}

fn describe_plans(plans: &[Node<'_>]) -> String {
    let mut prices: Vec<&str> = plans
        .iter()
        .filter_map(|plan| text(plan, "price"))
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
        let product = format!(r#"{{"currency":"EUR","payout_type":"any","any":{detail}}}"#);
        in_words(&Node::parse(&product).0)
    }

    fn of_denominations(denominations: &str) -> String {
        shown(&format!(r#"{{"denominations":{denominations}}}"#))
    }

    #[test]
    fn amounts_are_formatted_for_people() {
        let open = r#"{"type":"open","minimum_value":"50.00","maximum_value":"5000.00","available_list":["50.00"]}"#;
        assert_eq!(of_denominations(open), "EUR 50 – 5,000");
        let fixed = r#"{"type":"fixed","minimum_value":"5.00","maximum_value":"25.00","available_list":["5.00","10.50","25.00"]}"#;
        assert_eq!(of_denominations(fixed), "EUR 5, 10.50, 25");
        let many = r#"{"type":"fixed","available_list":["1.00","2.00","3.00","4.00","5.00","1000000.00"]}"#;
        assert_eq!(of_denominations(many), "EUR 1, 2, 3, 4 +2");
        assert_eq!(
            of_denominations(r#"{"minimum_value":"5.00","maximum_value":"5.00"}"#),
            "EUR 5"
        );
        assert_eq!(of_denominations(r#"{"type":"later"}"#), "EUR");
        let plans = r#"{"subscription_plans":[{"price":"149.00"},{"price":"4.99"}]}"#;
        assert_eq!(shown(plans), "EUR 4.99 – 149 · 2 plans");
        assert_eq!(shown("{}"), "EUR");
        assert_eq!(in_words(&Node::Null), "");
        assert_eq!(readable("odd"), "odd");
    }
}
