//! Formats of input, told apart by content: all spellings of a catalog are one catalog.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Store, gift_card};
use crate::products::{assert_holds, later, payment, pretty, served, subscription, with};

/// Three products with what formats could trip over: other scripts, escapes, braces, raw numbers.
fn products() -> Vec<String> {
    let named = with(
        gift_card("A"),
        "/name",
        r#""{\"catalog\": [ \n Größe 雪 \\""#,
    );
    let detail = r##"{"b":1.50,"a":[1e3,-0],"content_resources":{"terms_buyer_md":"# T\r\n"}}"##;
    vec![
        named,
        later("B", "prepaid_card", detail),
        subscription("C").to_string(),
    ]
}

const PAGINATION: &str =
    r#""pagination":{"cursors":{"before":"A","after":"C"},"page":{"limit":3}}"#;

/// Every way to write the same three products.
fn spellings() -> Vec<(&'static str, Vec<u8>)> {
    let products = products();
    let lines = products.join("\n");
    let array = format!("[{}]", products.join(","));
    let list = format!("{{\"catalog\":{array},{PAGINATION}}}");
    let list_last = format!("{{{PAGINATION},\"catalog\":{array}}}");
    let page =
        |products: &[String]| format!("{{\"catalog\":[{}],{PAGINATION}}}", products.join(","));
    let pages = [page(&products[..2]), page(&products[2..]), page(&[])];
    let pretty_pages = pages.each_ref().map(|page| pretty(page)).join("\n");
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let bom = |text: &str| format!("\u{feff}{text}");
    [
        ("lines", lines.clone()),
        ("lines, the last one ended", format!("{lines}\n")),
        ("lines that end with CRLF", crlf(&format!("{lines}\n"))),
        ("lines after a BOM", bom(&lines)),
        (
            "blank lines between",
            format!("\n  \n{}\n\t\r\n", lines.replace('\n', "\n\n \n")),
        ),
        (
            "reversed lines",
            products
                .iter()
                .rev()
                .cloned()
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        ("an array", array.clone()),
        ("a pretty array", pretty(&array)),
        ("a pretty array, CRLF, BOM", bom(&crlf(&pretty(&array)))),
        ("a list response", list.clone()),
        ("a pretty list response", pretty(&list)),
        ("a list response, pagination first", list_last.clone()),
        (
            "a pretty list response, pagination first",
            pretty(&list_last),
        ),
        ("pages, one a line", pages.join("\n")),
        ("pretty pages", pretty_pages),
        (
            "pretty products, one after the other",
            products
                .iter()
                .map(|product| pretty(product))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    ]
    .map(|(what, text)| (what, text.into_bytes()))
    .to_vec()
}

#[test]
fn every_spelling_of_a_catalog_is_served_alike() {
    let mut first: Option<String> = None;
    for (what, content) in spellings() {
        let store = Store::new();
        let (exit, report) = store.try_load(&content);
        assert_eq!(
            (exit, &report["records"]),
            (0, &json!(3)),
            "{what}: {report}"
        );
        let body = served(&store, "/v2/product");
        assert!(body.contains("SERVER/v2/texts/"), "{what}: {body}");
        let expected = first.get_or_insert_with(|| body.clone());
        assert_eq!(&body, expected, "{what}");
    }
}

#[test]
fn one_product_is_a_catalog_compact_or_pretty() {
    for product in products() {
        let store = Store::new();
        let file = store.write("one.json", &product);
        store.load(&file);
        for content in [
            pretty(&product),
            format!("\u{feff}{}\r\n", pretty(&product)),
        ] {
            let pretty = store.write("pretty.json", &content);
            assert_holds(&store, &pretty, &content);
        }
    }
}

#[test]
fn format_of_a_large_file_is_detected() {
    let long = "x".repeat(100_000);
    let product = with(
        gift_card("LONG"),
        "/gift_card/content_resources/description_md",
        &format!("\"{long}\""),
    );
    let other = gift_card("OTHER").to_string();
    let store = Store::new();
    let lines = store.write("lines", format!("{product}\n{other}"));
    store.load(&lines);
    for (name, content) in [
        ("array", format!("[{product},{other}]")),
        ("pretty array", pretty(&format!("[{product},{other}]"))),
        ("list", format!("{{\"catalog\":[{product},{other}]}}")),
        (
            "pretty list",
            pretty(&format!("{{{PAGINATION},\"catalog\":[{product},{other}]}}")),
        ),
        (
            "pretty",
            format!("{}\n{}", pretty(&product), pretty(&other)),
        ),
        (
            "blanks first",
            format!("{}{product}\n{other}", "\n".repeat(100_000)),
        ),
    ] {
        let file = store.write("other", &content);
        assert_holds(&store, &file, name);
    }
}

#[test]
fn standard_input_and_several_files_make_one_catalog() {
    let store = Store::new();
    let [first, second, third] = products().try_into().expect("three");
    let whole = store.write("whole", [first.as_str(), &second, &third].join("\n"));
    store.load(&whole);
    let one = store.write("one", pretty(&first));
    let two = store.write("two", format!("[{second}]"));
    for third_as in [
        third.clone(),
        format!("{{\"catalog\":[{}]}}", pretty(&third)),
    ] {
        let (one, two) = (one.display().to_string(), two.display().to_string());
        let mut command = store.command(&["load", "--json", &one, "-", &two]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("vitrine runs");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(third_as.as_bytes()).expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["counts"]["unchanged"], 3, "{report}");
        assert_eq!(report["revision"], Value::Null);
    }
}

#[test]
fn format_is_detected_with_unknown_members() {
    let store = Store::new();
    let file = store.write("kept.json", payment("P").to_string());
    store.load(&file);
    let list = format!(
        "{{\"took\":3,\"catalog\":[{}],\"extra\":{{\"catalog\":[]}}}}",
        payment("P")
    );
    let list = store.write("list.json", list);
    assert_holds(&store, &list, "unknown members");
}
