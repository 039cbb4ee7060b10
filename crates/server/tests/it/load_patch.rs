//! `vitrine load --mode patch`: records that hold only what changes of live products.

use std::io::Cursor;

use proptest::prelude::*;
use rust_xlsxwriter::Workbook;
use serde_json::{Map, Value, json};
use vitrine_ingest::load::apply::Mode;
use vitrine_ingest::load::guard::{Allowance, Rule};
use vitrine_ingest::load::progress::Silent;
use vitrine_ingest::load::report::{Outcome, Report};
use vitrine_ingest::load::{LoadSettings, Opened, load};
use vitrine_store::IfMissing;

use crate::harness::{ALLOW_ALL, SAMPLE, Store, gift_card, text};

/// Loads patches; returns exit code and report.
fn patch(store: &Store, input: &str, options: &[&str]) -> (Option<i32>, Value) {
    let file = store.write("patch", input).display().to_string();
    let command = ["load", "--json", "--mode", "patch", &file];
    let output = store.run(&[&command, options].concat());
    let report = serde_json::from_slice(&output.stdout);
    let report = report.unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), report)
}

/// Returns a live product as it is exported.
fn exported(store: &Store, code: &str) -> Value {
    let lines = store.ok(&["export"]);
    let mut records = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let found = records.find(|record: &Value| record["code"] == code);
    found.unwrap_or_else(|| panic!("{code} in {lines}"))
}

/// Returns the faults of a refused patch: rule, pointer, message.
fn faults(store: &Store, input: &str) -> Vec<[String; 3]> {
    let before = store.ok(&["export"]);
    let (code, report) = patch(store, input, &ALLOW_ALL);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(store.ok(&["export"]), before);
    let faults = report["faults"].as_array().expect("faults");
    let told = |fault: &Value, key: &str| fault[key].as_str().expect("a text").to_owned();
    let fault = |fault| ["rule", "pointer", "message"].map(|key| told(fault, key));
    faults.iter().map(fault).collect()
}

#[test]
fn patch_changes_what_it_names_and_nothing_else() {
    let store = Store::new();
    let mut first = gift_card("A");
    first["customer_service"]["website_url"] = json!("https://a.example/help");
    first["gift_card"]["website_url"] = json!("https://a.example/");
    first["gift_card"]["content_resources"]["description_md"] = json!("Old");
    first["gift_card"]["content_resources"]["disclaimer_md"] = json!("Stays");
    first["discount_multiplier"] = json!("0.123");
    store.load_products(&[first, gift_card("B")]);
    let mut expected = exported(&store, "A");
    let record = json!({
        "code": "A",
        "name": "New",
        "categories": ["books", "food"],
        "customer_service": {"phone_number": "+441632960522"},
        "gift_card": {
            "website_url": null,
            "denominations": {"minimum_value": "5.00"},
            "content_resources": {"description_md": "New"},
        },
    });
    let (code, report) = patch(&store, &record.to_string(), &[]);
    assert_eq!(
        (code, &report["warnings"]),
        (Some(0), &json!({})),
        "{report}"
    );
    assert_eq!(
        report["counts"],
        json!({"created": 0, "changed": 1, "retired": 0, "unchanged": 0})
    );
    expected["name"] = json!("New");
    expected["categories"] = json!(["books", "food"]);
    expected["customer_service"]["phone_number"] = json!("+441632960522");
    expected["gift_card"]["website_url"] = Value::Null;
    expected["gift_card"]["denominations"]["minimum_value"] = json!("5.00");
    expected["gift_card"]["content_resources"]["description_md"] = json!("New");
    assert_eq!(exported(&store, "A"), expected);
    assert_eq!(exported(&store, "B")["name"], "Product B");
    // The same patch again changes nothing.
    let (_, report) = patch(&store, &record.to_string(), &[]);
    assert_eq!(
        (&report["revision"], &report["counts"]["unchanged"]),
        (&Value::Null, &json!(1))
    );
}

#[test]
fn table_with_a_part_of_the_columns_patches_each_payout_type() {
    let store = Store::new();
    store.load(SAMPLE);
    let kinds = ["gift_card", "payment", "subscription"];
    let lines = store.ok(&["export"]);
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let code = |kind: &&str| {
        let found = records.iter().find(|record| record["payout_type"] == *kind);
        found.expect("one")["code"]
            .as_str()
            .expect("a code")
            .to_owned()
    };
    let codes: Vec<String> = kinds.iter().map(code).collect();
    let mut table = "code,name,customer_service_website_url,assets_primary_color,website_url,subscription_plans\n".to_owned();
    for code in &codes {
        table += &format!("{code},Name of {code},,#A1B2C3,,\n");
    }
    // An empty cell empties, which a plan can't be.
    let told = faults(&store, &table);
    let [rule, pointer, _] = &told[0];
    assert_eq!(
        (told.len(), rule.as_str(), pointer.as_str()),
        (1, "required", "/subscription/subscription_plans")
    );
    let table = table
        .replace(",subscription_plans", "")
        .replace(",,\n", ",\n");
    let (exit, report) = patch(&store, &table, &ALLOW_ALL);
    assert_eq!(
        (exit, &report["warnings"]),
        (Some(0), &json!({})),
        "{report}"
    );
    assert_eq!(report["counts"]["changed"], 3);
    for (code, kind) in codes.iter().zip(kinds) {
        let mut expected = records
            .iter()
            .find(|record| record["code"] == *code)
            .expect("one")
            .clone();
        expected["name"] = json!(format!("Name of {code}"));
        expected["customer_service"]["website_url"] = Value::Null;
        expected[kind]["assets"]["primary_color"] = json!("#A1B2C3");
        if kind != "payment" {
            expected[kind]["website_url"] = Value::Null;
        }
        assert_eq!(exported(&store, code), expected);
    }
}

#[test]
fn patch_that_does_not_fit_a_live_product_is_refused() {
    let store = Store::of(&[gift_card("AMZ-DE"), gift_card("B")]);
    for (record, expected) in [
        (
            json!({"code": "AMZ-DF"}),
            [
                "not_live",
                "/code",
                "expected the code of a live product, since this is a patch; did you mean `AMZ-DE`?",
            ],
        ),
        (
            json!({"code": "AMZ-DE", "payout_type": "payment"}),
            [
                "payout_type_changed",
                "/payout_type",
                "expected `gift_card`, as the live product has, or no value: a patch can't change it",
            ],
        ),
        (
            json!({"code": "B", "gift_card": {"denominations": {"minimum_value": "60"}}}),
            ["amount_order", "/gift_card/denominations/minimum_value", ""],
        ),
        (
            json!({"code": "B", "name": null}),
            [
                "required",
                "/name",
                "expected a value, since the field is required",
            ],
        ),
        (
            json!({"name": "N"}),
            [
                "required",
                "/code",
                "expected a value, since the field is required",
            ],
        ),
        (json!([7]), ["type", "", ""]),
    ] {
        let told = faults(&store, &record.to_string());
        let [rule, pointer, message] = &told[0];
        assert_eq!([rule, pointer], [expected[0], expected[1]], "{told:?}");
        assert!(message.contains(expected[2]), "{told:?}");
    }
    let twice = [
        json!({"code": "B", "name": "1"}),
        json!({"code": "B", "name": "2"}),
    ];
    assert_eq!(
        faults(&store, &json!(twice).to_string())[0][0],
        "code_duplicate"
    );
}

#[test]
fn table_patches_later_payout_types_by_their_details_only() {
    let store = Store::new();
    let mut later = gift_card("LATER");
    later["payout_type"] = json!("prepaid_card");
    later
        .as_object_mut()
        .expect("an object")
        .remove("gift_card");
    later["prepaid_card"] = json!({"website_url": "https://a.example/", "a": {"b": 1}, "c": 2});
    store.load_products(&[later, gift_card("CARD")]);
    let (code, report) = patch(
        &store,
        "code,detail\nLATER,\"{\"\"website_url\"\":null,\"\"a\"\":{\"\"d\"\":{}}}\"\n",
        &[],
    );
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        exported(&store, "LATER")["prepaid_card"],
        json!({"website_url": null, "a": {"b": 1, "d": {}}, "c": 2})
    );
    for table in [
        "code,website_url\nLATER,https://n.example/\n",
        "code,detail\nCARD,{}\n",
    ] {
        assert_eq!(faults(&store, table)[0][0], "detail_only", "{table}");
    }
}

#[test]
fn reports_tell_values_of_a_patch_from_live_ones() {
    let store = Store::new();
    let mut product = gift_card("A");
    product["state"] = json!("TEMPORARILY_DISABLED");
    product["discount_multiplier"] = json!("1.000");
    store.load_products(&[product]);
    let warnings = |input: &str| patch(&store, input, &ALLOW_ALL).1["warnings"].clone();
    assert_eq!(warnings(r#"{"code":"A","name":"Other"}"#), json!({}));
    assert_eq!(warnings("code;name\nA;Another\n"), json!({}));
    for (input, rule) in [
        (r#"{"code":"A","is_orderable":true}"#, "disabled_orderable"),
        (
            r#"{"code":"A","*":{"website_url":"https://a.example/"}}"#,
            "unknown_field",
        ),
        (
            r#"{"code":"A","gift_card":{"e_code_usage_type":null}}"#,
            "default_used",
        ),
    ] {
        let warned = warnings(input);
        assert_eq!(warned[rule]["count"], 1, "{warned}");
    }
    let [rule, pointer, message] = &faults(&store, "code,denominations_maximum_value\nA,20\n")[0];
    assert_eq!(
        (rule.as_str(), pointer.as_str()),
        (
            "amount_outside",
            "/gift_card/denominations/available_list/1"
        )
    );
    assert!(
        message.ends_with("the live product's value, which the patch leaves as it is"),
        "{message}"
    );
    assert_eq!(
        faults(&store, r#"{"products":[{"code":"A","name":"x"}]}"#)[0][0],
        "array_within"
    );
    let told: Vec<String> = faults(&store, "code,payout_type,website_url\nA,payment,none\n")
        .into_iter()
        .map(|[rule, ..]| rule)
        .collect();
    assert_eq!(told, ["payout_type_changed", "url"]);
}

#[test]
fn patches_retire_only_what_is_named_and_heed_the_guard() {
    let catalog: Vec<Value> = (0..12)
        .map(|number| gift_card(&format!("P-{number:02}")))
        .collect();
    let store = Store::of(&catalog);
    let all: String = (0..12)
        .map(|number| format!("{{\"code\":\"P-{number:02}\",\"availability\":null}}\n"))
        .collect();
    let (code, report) = patch(&store, &all, &[]);
    assert_eq!(
        (code, &report["guard"][0]["rule"]),
        (Some(3), &json!("emptied-fields")),
        "{report}"
    );
    let (code, _) = patch(
        &store,
        &all,
        &["--dry-run", "--allow", "emptied-fields=100%"],
    );
    assert_eq!(
        (code, &exported(&store, "P-00")["availability"]),
        (Some(0), &json!("realtime"))
    );
    let (code, report) = patch(
        &store,
        &all,
        &["--allow", "emptied-fields=100%", "--retire", "P-11"],
    );
    assert_eq!(
        (code, &report["faults"][0]["rule"]),
        (Some(3), &json!("retired_and_loaded"))
    );
    let (_, report) = patch(
        &store,
        r#"{"code":"P-00","availability":null}"#,
        &["--retire", "P-11"],
    );
    assert_eq!(
        report["counts"],
        json!({"created": 0, "changed": 1, "retired": 1, "unchanged": 0}),
        "{report}"
    );
}

#[test]
fn rejected_rows_of_a_patch_load_as_patches_once_corrected() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let table = "code,name,website_url\nA,One,https://a.example/\nB,Two,no address\nC,Three,\n";
    let (code, report) = patch(&store, table, &["--on-error", "skip"]);
    assert_eq!(
        (code, &report["rejected"]["records"]),
        (Some(4), &json!(2)),
        "{report}"
    );
    assert_eq!(
        exported(&store, "A")["gift_card"]["website_url"],
        "https://a.example/"
    );
    let rejected = std::fs::read_to_string(store.path("patch.rejected.ndjson")).expect("a file");
    let (corrected, lost): (Vec<&str>, Vec<&str>) = rejected
        .lines()
        .partition(|line| line.contains("no address"));
    let corrected = corrected
        .join("\n")
        .replace("no address", "https://b.example/");
    assert!(
        corrected.contains("\"gift_card\":{\"website_url\""),
        "{corrected}"
    );
    // The payout type isn't known where the code isn't live, so there would be no name for its detail object.
    assert!(lost.len() == 1 && !lost[0].contains("Three"), "{lost:?}");
    let (code, report) = patch(&store, &corrected, &[]);
    assert_eq!(
        (code, &report["counts"]["changed"]),
        (Some(0), &json!(1)),
        "{report}"
    );
    let b = exported(&store, "B");
    assert_eq!(
        (&b["name"], &b["gift_card"]["website_url"]),
        (&json!("Two"), &json!("https://b.example/"))
    );
}

#[test]
fn patch_applies_to_what_loads_brought_beneath_overrides() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    store.ok(&[
        "set",
        "A",
        "state=TEMPORARILY_DISABLED",
        "--allow",
        "states=100%",
    ]);
    store.ok(&["hide", "B", "--allow", "retire=100%"]);
    let patches = [
        json!({"code": "A", "name": "One"}),
        json!({"code": "B", "name": "Two"}),
    ];
    let (code, report) = patch(&store, &json!(patches).to_string(), &[]);
    assert_eq!(code, Some(0), "{report}");
    store.ok(&["overrides", "end", "1", "2"]);
    for (code, name) in [("A", "One"), ("B", "Two")] {
        let mut expected = gift_card(code);
        expected["name"] = json!(name);
        let live = exported(&store, code);
        for key in ["name", "state", "is_orderable"] {
            assert_eq!(live[key], expected[key], "{code} {key}");
        }
    }
}

/// A field that patches change: its column, its path within the detail object or (with none) the product, the payout types that
/// have it, and values.
type Field = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const ALL: &[&str] = &["gift_card", "payment", "subscription"];
const VOUCHERS: &[&str] = &["gift_card", "subscription"];
const FIELDS: [Field; 11] = [
    ("name", &["name"], &[], &["N", "Ü ü", "", "x, \"y\""]),
    (
        "state",
        &["state"],
        &[],
        &["LIVE", "TEMPORARILY_DISABLED", "live"],
    ),
    (
        "discount_multiplier",
        &["discount_multiplier"],
        &[],
        &["0.05", "0.123", "2"],
    ),
    ("availability", &["availability"], &[], &["stocked", ""]),
    (
        "customer_service_website_url",
        &["customer_service", "website_url"],
        &[],
        &["https://c.example/", ""],
    ),
    (
        "assets_icon_image_url",
        &["assets", "icon_image_url"],
        ALL,
        &["https://i.example/i.png", ""],
    ),
    (
        "website_url",
        &["website_url"],
        VOUCHERS,
        &["https://w.example/", ""],
    ),
    (
        "expiry_date_policy",
        &["expiry", "date_policy"],
        VOUCHERS,
        &["A policy", ""],
    ),
    (
        "denominations_minimum_value",
        &["denominations", "minimum_value"],
        &["gift_card", "payment"],
        &["1", "7.50", "99999"],
    ),
    (
        "description_md",
        &["content_resources", "description_md"],
        ALL,
        &["# A", ""],
    ),
    (
        "locale",
        &["content_resources", "locale"],
        ALL,
        &["de_DE", ""],
    ),
];

/// Sets a value, null if it is empty.
fn set(record: &mut Value, path: &[&str], value: &str) {
    let place = path.iter().fold(record, |node, key| &mut node[*key]);
    *place = match value {
        "" => Value::Null,
        value => json!(value),
    };
}

fn loaded(store: &vitrine_store::Store, mode: Mode, input: impl Into<Vec<u8>>) -> Report {
    let allowed = |rule: Rule| {
        format!("{}=100%", rule.name())
            .parse::<Allowance>()
            .expect("a limit")
    };
    let settings = LoadSettings {
        mode,
        allowances: Rule::ALL.into_iter().map(allowed).collect(),
        ..LoadSettings::replace("test".to_owned())
    };
    let input = Opened::new("input".to_owned(), Box::new(Cursor::new(input.into())));
    load(store, vec![input], settings, &Silent).expect("a report")
}

/// Format of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Table,
    Workbook,
}

const FORMATS: [Format; 3] = [Format::Json, Format::Table, Format::Workbook];

/// Returns rows of cells as a table separated by tabs, or as a workbook.
fn table(format: Format, rows: &[Vec<&str>]) -> Vec<u8> {
    if format == Format::Table {
        let quoted = |cell: &&str| format!("\"{}\"", cell.replace('"', "\"\""));
        let line = |row: &Vec<&str>| row.iter().map(quoted).collect::<Vec<_>>().join("\t") + "\n";
        return rows.iter().map(line).collect::<String>().into_bytes();
    }
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    for (row, number) in rows.iter().zip(0..) {
        sheet
            .write_row(number, 0, row.iter().copied())
            .expect("a row");
    }
    workbook.save_to_buffer().expect("a workbook")
}

/// Returns the record that a naive reader of a patch loads: all of the product but its texts, with the patch in it.
fn whole(mut record: Value, fields: &[(Field, &str)]) -> Value {
    let kind = record["payout_type"].as_str().expect("a type").to_owned();
    if record[&kind]["content_resources"].is_object() {
        record[&kind]["content_resources"] = Value::Object(Map::new());
    }
    for ((_, path, types, _), value) in fields {
        if types.is_empty() {
            set(&mut record, path, value);
        } else if types.contains(&kind.as_str()) {
            set(&mut record[&kind], path, value);
        }
    }
    record
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn patch_is_reading_merging_and_loading_whole(
        rows in proptest::collection::vec((0..72_usize, proptest::collection::vec(0..9_usize, FIELDS.len())), 1..6),
        chosen in proptest::sample::subsequence((0..FIELDS.len()).collect::<Vec<_>>(), 1..5),
        format in proptest::sample::select(&FORMATS[..]),
    ) {
        let stores = [Store::new(), Store::new()];
        let open = |store: &Store| vitrine_store::open(&store.url(), IfMissing::Create).expect("a store");
        let [naive, patched] = [&stores[0], &stores[1]].map(|store| {
            loaded(&open(store), Mode::Replace, SAMPLE_LINES.to_owned());
            open(store)
        });
        let mut live: Vec<Value> = stores[0].ok(&["export"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        // This test's JSON would write the numbers of later types in another way.
        live.retain(|record| ALL.contains(&record["payout_type"].as_str().expect("a type")));
        let mut seen = Vec::new();
        let (mut records, mut patches) = (String::new(), String::new());
        let columns = chosen.iter().map(|field| FIELDS[*field].0);
        let mut cells: Vec<Vec<&str>> = vec![["code"].into_iter().chain(columns).collect()];
        for (product, values) in &rows {
            let record = &live[product % live.len()];
            let (code, kind) = (record["code"].as_str().expect("a code"), record["payout_type"].as_str().expect("a type"));
            if seen.contains(&code) {
                continue;
            }
            seen.push(code);
            let fields: Vec<(Field, &str)> = chosen.iter().map(|field| {
                let (_, _, _, choices) = FIELDS[*field];
                (FIELDS[*field], choices[values[*field] % choices.len()])
            }).collect();
            records += &format!("{}\n", whole(record.clone(), &fields));
            cells.push([code].into_iter().chain(fields.iter().map(|(_, cell)| *cell)).collect());
            let mut patch = json!({"code": code, kind: {}});
            for ((_, path, types, _), value) in &fields {
                if types.is_empty() {
                    set(&mut patch, path, value);
                } else if types.contains(&kind) {
                    set(&mut patch[kind], path, value);
                }
            }
            patches += &format!("{patch}\n");
        }
        let patches = match format {
            Format::Json => patches.into_bytes(),
            _ => table(format, &cells),
        };
        let retire = Vec::new;
        let expected = loaded(&naive, Mode::Merge { retire: retire() }, records);
        let report = loaded(&patched, Mode::Patch { retire: retire() }, patches);
        prop_assert_eq!(report.fault_count(), expected.fault_count());
        let is_published = |report: &Report| report.applied.as_ref().map(|applied| matches!(applied.outcome, Outcome::Published(_)));
        prop_assert_eq!(is_published(&report), is_published(&expected));
        prop_assert_eq!(stores[1].ok(&["export"]), stores[0].ok(&["export"]));
    }
}

const SAMPLE_LINES: &str = include_str!("../../../../fixtures/catalog.ndjson");
