//! CSV: what the cells with JSON and the texts' columns mean.

use serde_json::{Value, json};

use crate::csv::{Table, only_fault, three};
use crate::harness::Store;
use crate::products::{assert_holds, later, served};

#[test]
fn missing_column_keeps_and_empty_cell_removes_a_text() {
    let store = Store::of(&three());
    let key = store.key("reader", &[]);
    let text = |store: &Store| {
        let server = store.serve();
        let product = server.get(&key, "/v2/product/A?content=md");
        let product: Value = serde_json::from_slice(&product.body).expect("JSON");
        product["gift_card"]["content_resources"]["description_md"].clone()
    };
    let mut table = Table::of(&three());
    let column = table
        .columns
        .iter()
        .position(|name| name == "description_md");
    let column = column.expect("the column");
    table.columns.remove(column);
    for row in &mut table.rows {
        row.remove(column);
    }
    let file = store.write("without.csv", table.to_csv(',', "\n"));
    assert_holds(&store, &file, "the column is missing");
    assert_eq!(text(&store), "# T\n\n- a\n- b;c,d\n");
    table.set(0, "description_md", "");
    let file = store.write("empty.csv", table.to_csv(',', "\n"));
    assert_eq!(store.load(&file)["counts"]["changed"], 1);
    assert_eq!(text(&store), Value::Null);
}

#[test]
fn cells_hold_lists_as_json() {
    let store = Store::new();
    let mut table = Table::of(&three());
    table.set(0, "categories", "[\"a|b\", \"[c\"]");
    let (exit, report) = store.try_load(table.to_csv(',', "\n"));
    assert_eq!((exit, &report["warnings"]), (0, &json!({})), "{report}");
    let product: Value = serde_json::from_str(&served(&store, "/v2/product/A")).expect("JSON");
    assert_eq!(product["categories"], json!(["a|b", "[c"]));
    for (cell, rule, pointer) in [
        ("[{\"name\":}]", "json", "/subscription/subscription_plans"),
        ("{}", "type", "/subscription/subscription_plans"),
        ("", "required", "/subscription/subscription_plans"),
        ("[]", "list_empty", "/subscription/subscription_plans"),
    ] {
        table.set(2, "subscription_plans", cell);
        let (_, report) = store.try_load(table.to_csv(',', "\n"));
        let fault = only_fault(&report);
        assert_eq!(
            [&fault["rule"], &fault["pointer"], &fault["column"]],
            [rule, pointer, "subscription_plans"],
            "{cell}: {report}"
        );
    }
}

#[test]
fn payout_type_added_later_is_kept_to_the_letter() {
    let detail = r##"{"b":1.50,"content_resources":{"description_md":"# T\n"},"a":[1e3,-0]}"##;
    let lines = later("L", "prepaid_card", detail);
    let store = Store::new();
    let file = store.write("later.json", &lines);
    store.load(&file);
    let mut table = Table::of(&[serde_json::from_str(&lines).expect("JSON")]);
    table.set(0, "detail", detail);
    // Columns of other products' fields and texts, empty for this one, add nothing.
    table.set(0, "redeemable_at", "");
    let file = store.write("later.csv", table.to_csv(',', "\n"));
    assert_holds(&store, &file, "all in detail");
    for (column, cell) in [
        ("website_url", "https://e.example/"),
        ("description_md", "# T\n"),
    ] {
        let mut table = table.clone();
        table.set(0, column, cell);
        let (_, report) = store.try_load(table.to_csv(',', "\n"));
        let fault = only_fault(&report);
        assert_eq!([&fault["rule"], &fault["column"]], ["detail_only", column]);
    }
    for (cell, rule) in [("{\"x\":}", "json"), ("[1]", "type")] {
        table.set(0, "detail", cell);
        let (_, report) = store.try_load(table.to_csv(',', "\n"));
        let fault = only_fault(&report);
        assert_eq!(
            [&fault["rule"], &fault["pointer"], &fault["column"]],
            [rule, "/prepaid_card", "detail"]
        );
    }
    table.set(0, "detail", "");
    let (_, report) = store.try_load(table.to_csv(',', "\n"));
    let fault = only_fault(&report);
    assert_eq!(
        [&fault["rule"], &fault["column"]],
        ["detail_missing", "detail"]
    );
}
