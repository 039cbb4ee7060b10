//! One thing wrong, one fault: the cases' form, and how they are loaded and looked at.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Store, gift_card};
use crate::products::{assert_holds, with};

/// A record with one thing wrong, and what the one fault about it must say.
pub struct Case {
    pub line: String,
    pub rule: &'static str,
    pub pointer: String,
    pub code: Option<String>,
    /// `None` where the value isn't there.
    pub value: Option<String>,
}

/// The product with `raw` at `pointer`, which is to be the fault's place and value.
pub fn wrong(product: Value, pointer: &str, raw: &str, rule: &'static str) -> Case {
    let code = match pointer {
        "/code" => serde_json::from_str(raw).expect("JSON"),
        _ => product["code"].as_str().map(str::to_owned),
    };
    Case {
        line: with(product, pointer, raw),
        rule,
        pointer: pointer.to_owned(),
        code,
        value: Some(raw.to_owned()),
    }
}

/// Loads all cases in one file: each line must have its one fault.
pub fn assert_refused(cases: &[Case]) {
    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let lines: Vec<&str> = cases.iter().map(|case| case.line.as_str()).collect();
    let (exit, report) = store.try_load(lines.join("\n"));
    assert_eq!((exit, &report["applied"]), (3, &json!(false)));
    let mut by_line: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    // Cases share codes, and are right to be told so.
    let faults = report["faults"].as_array().expect("faults");
    for fault in faults
        .iter()
        .filter(|fault| fault["rule"] != "code_duplicate")
    {
        let line = fault["line"].as_u64().expect("a line");
        by_line.entry(line).or_default().push(fault);
    }
    for (number, case) in (1..).zip(cases) {
        let faults = by_line.remove(&number).unwrap_or_default();
        let [fault] = faults.as_slice() else {
            panic!("{}: {faults:#?}", case.line);
        };
        assert_eq!(fault["rule"], case.rule, "{fault}");
        assert_eq!(fault["pointer"], json!(case.pointer), "{fault}");
        assert_eq!(fault["code"], json!(case.code), "{fault}");
        assert_eq!(fault["value"], json!(case.value), "{fault}");
        let message = fault["message"].as_str().expect("a message");
        assert!(message.starts_with("expected "), "{fault}");
    }
    assert_eq!(by_line.len(), 0, "{by_line:?}");
    assert_holds(&store, &kept, "after faults");
}
