//! Reports of loads as people read them.

use serde_json::json;

use crate::harness::{Store, gift_card, text};

#[test]
fn explanation_is_printed_once_a_group() {
    let store = Store::new();
    let mut products: Vec<_> = (0..5)
        .map(|number| gift_card(&format!("P{number}")))
        .collect();
    for product in &mut products {
        product["currency"] = json!("EURO");
    }
    products[0]["discount_multiplier"] = json!("0.0130");
    products[1]["discount_multiplier"] = json!("0.0250");
    let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
    let file = store
        .write("feed.ndjson", lines.join("\n"))
        .display()
        .to_string();
    let refused = store.run(&["load", &file]);
    let said = text(&refused.stderr);
    assert_eq!(
        said.matches("the ISO 4217 code of a currency").count(),
        1,
        "{said}"
    );
    assert_eq!(said.matches("\"EURO\"").count(), 5, "{said}");
    // Warnings are one line, with the first explanation.
    let warning = "warning: 2 products: discount cut discount_multiplier (shown as 0.01: ";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
}
