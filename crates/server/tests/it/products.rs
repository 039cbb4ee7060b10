//! Products to load, beside the harness's gift card, and what a store holds of them.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text};

/// A valid subscription, to change at will.
pub fn subscription(code: &str) -> Value {
    let mut product = gift_card(code);
    let fields = product.as_object_mut().expect("an object");
    let mut detail = fields.remove("gift_card").expect("a detail object");
    let voucher = detail.as_object_mut().expect("an object");
    voucher.remove("denominations");
    let plan = json!({
        "length_unit": "MONTHS",
        "length": 3,
        "name": "Quarter",
        "price": "29.70",
        "subscription_plan_code": format!("{code}-3M"),
    });
    voucher.insert("subscription_plans".to_owned(), json!([plan]));
    fields.insert("payout_type".to_owned(), json!("subscription"));
    fields.insert("subscription".to_owned(), detail);
    product
}

/// A valid payment, to change at will.
pub fn payment(code: &str) -> Value {
    let mut product = gift_card(code);
    let fields = product.as_object_mut().expect("an object");
    fields.remove("gift_card");
    fields.insert("payout_type".to_owned(), json!("payment"));
    let detail = json!({
        "assets": {"icon_image_url": "https://a.example/i.png", "primary_color": "#1A2B3C"},
        "denominations": {"minimum_value": "1.00", "maximum_value": "500.00"},
        "content_resources": {"description_md": null, "locale": "en_GB"},
    });
    fields.insert("payment".to_owned(), detail);
    product
}

/// A valid product of a payout type added later; its detail object is `detail`, to the letter.
pub fn later(code: &str, payout_type: &str, detail: &str) -> String {
    let mut product = gift_card(code);
    let fields = product.as_object_mut().expect("an object");
    fields.remove("gift_card");
    fields.insert("payout_type".to_owned(), json!(payout_type));
    fields.insert(payout_type.to_owned(), json!("@detail@"));
    product.to_string().replace("\"@detail@\"", detail)
}

/// The JSON of `product` with the value at `pointer` written as `raw`, to the letter. The key may
/// be new, its object may not.
pub fn with(mut product: Value, pointer: &str, raw: &str) -> String {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match product.pointer_mut(parent).expect("a parent") {
        Value::Object(members) => {
            members.insert(key.to_owned(), json!("@raw@"));
        }
        Value::Array(items) => items[key.parse::<usize>().expect("an index")] = json!("@raw@"),
        other => panic!("{parent} is {other}"),
    }
    product.to_string().replace("\"@raw@\"", raw)
}

/// `product` without the key at `pointer`.
pub fn without(mut product: Value, pointer: &str) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = product.pointer_mut(parent).expect("a parent");
    let removed = parent.as_object_mut().expect("an object").remove(key);
    assert!(removed.is_some(), "{pointer} wasn't there");
    product
}

/// The JSON indented, as people keep it; numbers stay as they are.
pub fn pretty(json: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for c in json.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        let indent = |depth: usize| format!("\n{}", "  ".repeat(depth));
        match c {
            '{' | '[' => {
                depth += 1;
                out.push(c);
                out.push_str(&indent(depth));
            }
            '}' | ']' => {
                depth -= 1;
                out.push_str(&indent(depth));
                out.push(c);
            }
            ',' => {
                out.push(c);
                out.push_str(&indent(depth));
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// Asserts that the live catalog is the one that `file` loads: loading it again changes nothing.
pub fn assert_holds(store: &Store, file: &Path, when: &str) {
    let report = store.load(file);
    assert_eq!(report["revision"], Value::Null, "{when}: {report}");
    assert_eq!(
        report["counts"]["unchanged"], report["records"],
        "{when}: {report}"
    );
}

/// The body of the answer to a GET, from a server started for it; the server's own address, which
/// stands in the addresses of texts, is written `SERVER`.
pub fn served(store: &Store, target: &str) -> String {
    let key = store.key(&format!("reader of {target}"), &[]);
    let server = store.serve();
    let reply = server.get(&key, target);
    assert_eq!(reply.status, 200, "{}", text(&reply.body));
    store.ok(&["keys", "revoke", &key]);
    text(&reply.body).replace(&server.address.to_string(), "SERVER")
}
