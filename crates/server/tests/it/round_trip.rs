//! Round trips: an export, in any format, loads into an empty store as the same catalog: to the byte, in
//! every answer, for all values of products.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use vitrine_ingest::html::renders_empty;
use vitrine_model::content::TextDigest;

use crate::answers;
use crate::harness::{ALLOW_ALL, SAMPLE, Store, TEXT_NAMES, gift_card, skipped, text};
use crate::products::{later, payment, subscription};
use crate::walks::RECORDED;

/// Asserts that each export of the store loads into an empty one as the same catalog.
fn assert_returns(store: &Store, what: &str) {
    let lines = store.ok(&["export"]);
    let expected = answers::of(store);
    for format in ["ndjson", "json", "csv", "xlsx"] {
        let exported = store.run(&["export", "--format", format]);
        if format == "xlsx" && !exported.status.success() {
            let said = text(&exported.stderr);
            assert!(said.contains("control character U+0001"), "{said}");
            continue;
        }
        assert!(exported.status.success(), "{exported:?}");
        let exported = exported.stdout;
        let copy = Store::new();
        copy.load(copy.write("export", &exported));
        assert!(
            copy.ok(&["export"]) == lines,
            "{what} by {format}: its lines"
        );
        let again = copy.run(&["export", "--format", format]).stdout;
        // A workbook has the time when it was made.
        assert!(
            format == "xlsx" || again == exported,
            "{what} by {format}: itself"
        );
        answers::assert_same(
            &answers::of(&copy),
            &expected,
            &format!("{what} by {format}"),
        );
        // Loaded back where it came from, it changes nothing: discounts are exact, texts have their sources.
        let back = store.load(store.write("export", &exported));
        assert_eq!(
            back["revision"],
            Value::Null,
            "{what} by {format}: {}",
            back["counts"]
        );
    }
}

#[test]
fn real_catalogs_round_trip() {
    for input in [SAMPLE, RECORDED] {
        if !Path::new(input).exists() {
            skipped("an export of recorded data, which isn't there");
            continue;
        }
        let store = Store::new();
        store.load(input);
        assert_returns(&store, input);
    }
}

#[test]
fn generated_catalogs_round_trip() {
    for (seed, count) in [("1", "1"), ("2", "40"), ("3", "130"), ("4", "501")] {
        let store = Store::new();
        let lines = store.ok(&["generate", "--products", count, "--seed", seed]);
        store.load(store.write("generated.ndjson", lines));
        assert_returns(&store, &format!("{count} of seed {seed}"));
    }
}

#[test]
fn past_revision_round_trips_as_a_table() {
    let store = Store::sample();
    let lines = store.ok(&["export"]);
    store.load_products(&[gift_card("LATER")]);
    let table = store.ok(&["export", "--format", "csv", "--at", "1"]);
    let copy = Store::new();
    copy.load(copy.write("export.csv", table));
    assert_eq!(copy.ok(&["export"]), lines);
    let missing = store.run(&["export", "--format", "csv", "--at", "9"]);
    assert_eq!(
        (missing.status.code(), missing.stdout.as_slice()),
        (Some(1), &b""[..])
    );
}

#[test]
fn empty_catalog_is_a_table_without_rows() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let retire = ["load", "--mode", "merge", "--retire", "A", "--retire", "B"];
    store.ok(&[&retire, &ALLOW_ALL[..]].concat());
    let template = store.ok(&["load", "--template", "csv"]);
    let columns = template.lines().next().expect("a first line");
    assert_eq!(
        store.ok(&["export", "--format", "csv"]),
        format!("{columns}\n")
    );
    assert_eq!(store.ok(&["export"]), "");
}

#[test]
fn formula_like_cells_stay_data() {
    let formulas = [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "=HYPERLINK(\"http://a.example\";\"x\")",
    ];
    let products: Vec<Value> = formulas
        .iter()
        .enumerate()
        .map(|(number, formula)| {
            let mut product = gift_card(&format!("P{number}"));
            product["name"] = json!(formula);
            product["categories"] = json!([formula]);
            let texts = &mut product["gift_card"]["content_resources"];
            texts["description_md"] = json!(format!("\t{formula}"));
            texts["disclaimer_md"] = json!(format!("\r{formula}"));
            product
        })
        .collect();
    let store = Store::of(&products);
    let table = store.ok(&["export", "--format", "csv"]);
    assert!(table.contains("\n=1+1,P0,"), "{table}");
    assert_returns(&store, "formulas");
}

/// Strings that trip over quotes, separators, lists, formulas, line ends and direction.
const HOSTILE: [&str; 30] = [
    "\"", "\"\"", ",", ";", "\t", "|", "||", "[", "[]", "[1]", "{", "{}", "null", "true", "=1+1",
    "+", "-", "@x", "\\", "\\n", "\u{feff}", "\u{2028}", "\u{202e}", "e\u{301}", "\u{1}", "<b>",
    "雪", "🎁", "sep=;", "'",
];

/// One line: never blank, never with blanks around it.
fn line() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        select(&HOSTILE[..]).prop_map(str::to_owned),
        "[a-zA-Z0-9 ,;|\"]{1,8}",
        "\\PC{1,6}",
    ];
    vec(part, 1..5).prop_map(|parts| {
        let joined = parts.concat();
        match joined.trim() {
            "" => "x".to_owned(),
            trimmed => trimmed.to_owned(),
        }
    })
}

/// Markdown: whatever isn't U+0000, blanks and line ends of every kind included.
fn markdown() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        line(),
        select(
            &[
                "\n", "\r\n", "\r", " ", "\t", "\n\n", "# T", "- a\n", "`x`", "&amp;"
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    // Loads refuse a text that nobody would see, such as a lone list marker.
    let is_seen = |text: &String| !renders_empty(text, &TextDigest::of(text));
    (vec(part, 1..8).prop_map(|parts| parts.concat())).prop_filter("it is seen", is_seen)
}

fn url() -> impl Strategy<Value = String> {
    "[a-z0-9|,;=&%+-]{0,20}"
        .prop_map(|rest| format!("https://a.example/{}", rest.replace('%', "%25")))
}

/// A value, null, or no key at all.
fn field(value: impl Strategy<Value = String>) -> impl Strategy<Value = Option<Option<String>>> {
    option::of(option::of(value))
}

fn put(object: &mut Value, key: &str, field: Option<Option<String>>) {
    let members = object.as_object_mut().expect("an object");
    match field {
        None => drop(members.remove(key)),
        Some(value) => drop(members.insert(key.to_owned(), json!(value))),
    }
}

fn content() -> impl Strategy<Value = Value> {
    let texts = (field(markdown()), field(url()));
    let locale = field(select(&["de_DE", "en_GB"][..]).prop_map(str::to_owned));
    (vec(texts, TEXT_NAMES.len()), locale).prop_map(|(texts, locale)| {
        let mut content = Value::Object(Map::new());
        for (name, (markdown, url)) in TEXT_NAMES.iter().zip(texts) {
            put(&mut content, &format!("{name}_md"), markdown);
            put(&mut content, &format!("{name}_markdown_url"), url);
        }
        put(&mut content, "locale", locale);
        content
    })
}

/// Any JSON, to the letter.
fn any_json() -> impl Strategy<Value = String> {
    let text = line().prop_map(|text| json!(text).to_string()).boxed();
    let leaf = prop_oneof![
        select(
            &[
                "null",
                "true",
                "[]",
                "{}",
                "1.50",
                "-0",
                "1e3",
                "12345678901234567890",
                "\" \""
            ][..]
        )
        .prop_map(str::to_owned),
        text.clone(),
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        let member = (text.clone(), inner.clone());
        let object = vec(member, 0..4).prop_map(|members| {
            let mut seen = std::collections::BTreeSet::new();
            let members = members
                .into_iter()
                .filter(|(key, _)| seen.insert(key.clone()));
            let members: Vec<_> = members
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        });
        let list = vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(",")));
        prop_oneof![object, list]
    })
}

/// The detail object of a payout type not known here, with content resources anywhere in it, or none.
fn later_detail() -> impl Strategy<Value = String> {
    let before = vec(any_json(), 0..3);
    let after = vec(any_json(), 0..3);
    let content = option::of(prop_oneof![
        content().prop_map(|content| content.to_string()),
        Just("null".to_owned()),
        Just("{}".to_owned()),
    ]);
    (before, content, after).prop_map(|(before, content, after)| {
        let named = |prefix: &str, values: Vec<String>| -> Vec<String> {
            let values = values.into_iter().enumerate();
            values
                .map(|(number, value)| format!("\"{prefix}{number}\":{value}"))
                .collect()
        };
        let content = content.map(|content| format!("\"content_resources\":{content}"));
        let members: Vec<String> = named("expiry", before)
            .into_iter()
            .chain(content)
            .chain(named("z", after))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

/// The payout type, its texts, and what a payout type not known here holds.
#[derive(Debug, Clone)]
enum Kind {
    GiftCard(Value),
    Subscription(Value),
    Payment(Value),
    Later(&'static str, String),
}

fn kind() -> impl Strategy<Value = Kind> {
    let names = select(&["prepaid_card", "catalog", "detail", "a"][..]);
    prop_oneof![
        content().prop_map(Kind::GiftCard),
        content().prop_map(Kind::Subscription),
        content().prop_map(Kind::Payment),
        (names, later_detail()).prop_map(|(name, detail)| Kind::Later(name, detail)),
    ]
}

/// The product, and what stands in the place of `@detail@` in it, to the letter.
fn build(kind: Kind) -> (Value, String) {
    let (mut product, name, content) = match kind {
        Kind::GiftCard(content) => (gift_card("@code@"), "gift_card", content),
        Kind::Subscription(content) => (subscription("@code@"), "subscription", content),
        Kind::Payment(content) => (payment("@code@"), "payment", content),
        Kind::Later(name, detail) => {
            let product = later("@code@", name, "\"@detail@\"");
            return (serde_json::from_str(&product).expect("JSON"), detail);
        }
    };
    product[name]["content_resources"] = content;
    (product, String::new())
}

/// A record; its code, `@code@`, comes with its place in the catalog.
fn record() -> impl Strategy<Value = String> {
    let categories = vec(line(), 0..4);
    let countries = subsequence(vec!["DE", "AT", "XK", "US"], 0..4);
    let discount = select(&["0", "1", "0.0130", "0.05", "0.999"][..]);
    let availability = field(select(&["realtime", "stocked"][..]).prop_map(str::to_owned));
    let optional = (
        field("[0-9 ]{1,9}".prop_map(|digits| format!("+4{}", digits.trim()))),
        field(url()),
        field(line()),
        field(url()),
    );
    let plain = (line(), categories, countries, discount, availability);
    (kind(), plain, optional).prop_map(|(kind, plain, optional)| {
        let (mut product, detail) = build(kind);
        let (name, categories, countries, discount, availability) = plain;
        product["name"] = json!(name);
        product["categories"] = json!(categories);
        product["countries_redeemable_in"] = json!(countries);
        product["discount_multiplier"] = json!(discount);
        put(&mut product, "availability", availability);
        let (phone, website, policy, image) = optional;
        put(&mut product["customer_service"], "phone_number", phone);
        put(&mut product["customer_service"], "website_url", website);
        for voucher in ["gift_card", "subscription"] {
            if product.get(voucher).is_some() {
                put(
                    &mut product[voucher]["expiry"],
                    "date_policy",
                    policy.clone(),
                );
                put(
                    &mut product[voucher]["assets"],
                    "icon_image_url",
                    image.clone(),
                );
                put(&mut product[voucher], "website_url", image.clone());
            }
        }
        product.to_string().replace("\"@detail@\"", &detail)
    })
}

#[test]
fn any_product_content_round_trips() {
    let config = ProptestConfig {
        cases: 12,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&vec(record(), 1..30), |records| {
        let numbered = records.iter().enumerate();
        let lines: Vec<String> = numbered
            .map(|(number, record)| {
                record
                    .to_string()
                    .replace("@code@", &format!("~.-_{number}"))
            })
            .collect();
        let store = Store::new();
        let (exit, report) = store.try_load(lines.join("\n"));
        assert_eq!(exit, 0, "{report}");
        assert_returns(&store, "invented records");
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
