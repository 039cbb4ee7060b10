//! Records that a load knows by their digest, and doesn't read again: nothing differs from loads that read all.

use std::io::{self, Read};
use std::sync::Arc;

use serde_json::{Value, json};
use vitrine_ingest::load::progress::Silent;
use vitrine_ingest::load::report::Outcome;
use vitrine_ingest::load::{LoadSettings, Opened, load};
use vitrine_store::IfMissing;

use crate::harness::{ALLOW_ALL, Store, gift_card};

/// More than are read before the store is asked for the first time, with some that are known then.
const PRODUCTS: usize = 1_500;

fn code(number: usize) -> String {
    format!("P-{number:04}")
}

/// Returns the catalog as NDJSON, with another name for each tenth product.
fn catalog(name: &str) -> String {
    let line = |number| {
        let mut product = gift_card(&code(number));
        if number % 10 == 0 {
            product["name"] = json!(name);
        }
        product.to_string() + "\n"
    };
    (0..PRODUCTS).map(line).collect()
}

fn counts(report: &Value) -> [u64; 4] {
    ["created", "changed", "retired", "unchanged"]
        .map(|count| report["counts"][count].as_u64().expect("a count"))
}

#[test]
fn record_with_a_known_digest_is_not_read_again() {
    let store = Store::new();
    let first = store.write("first.ndjson", catalog("First"));
    let second = store.write("second.ndjson", catalog("Second"));
    assert_eq!(counts(&store.load(&first)), [1_500, 0, 0, 0]);
    assert_eq!(counts(&store.load(&second)), [0, 150, 0, 1_350]);
    // As if the live products came from the first file.
    store.sql(
        "update product_version as live set record_digest = (select record_digest from product_version as ended \
            where ended.code = live.code and ended.until_revision is not null) \
         where until_revision is null and from_revision = 2",
    );
    // The first records are read before the store is asked what is known.
    let [_, changed, retired, unchanged] = counts(&store.load(&first));
    assert_eq!((changed + unchanged, retired), (1_500, 0));
    assert!(changed < 150, "{changed}");
}

#[test]
fn known_records_without_a_field_state_no_field() {
    let store = Store::new();
    let load = |has_page: &dyn Fn(usize) -> bool| {
        let products = (0..PRODUCTS).map(|number| {
            let mut product = gift_card(&code(number));
            let card = product["gift_card"].as_object_mut().expect("a card");
            card.remove("website_url");
            if has_page(number) {
                card.insert("website_url".to_owned(), json!("https://a.example/"));
            }
            product
        });
        store.load_products(&products.collect::<Vec<_>>())
    };
    load(&|number| number % 2 == 0);
    // Known records have the field once more.
    let report = load(&|number| number % 2 == 0 && number != 2);
    assert_eq!(report["warnings"]["column_missing"], Value::Null);
    let report = load(&|_| false);
    let warned = &report["warnings"]["column_missing"];
    assert_eq!(
        (&warned["count"], &warned["examples"][0]["column"]),
        (&json!(1), &json!("website_url")),
        "{report}"
    );
}

/// Bytes with an interruption after a number of them.
struct Interrupted<F> {
    parts: [io::Cursor<Vec<u8>>; 2],
    interrupt: Option<F>,
}

impl<F: FnOnce()> Read for Interrupted<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let [first, second] = &mut self.parts;
        let read = first.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        if let Some(interrupt) = self.interrupt.take() {
            interrupt();
        }
        second.read(buffer)
    }
}

#[test]
fn load_in_between_makes_known_records_unknown() {
    let directory = Arc::new(Store::new());
    let first = directory.write("first.ndjson", catalog("First"));
    let second = directory.write("second.ndjson", catalog("Second"));
    directory.load(&first);
    let other = Arc::clone(&directory);
    let store = vitrine_store::open(&directory.url(), IfMissing::Refuse).expect("a store");
    // All but the last records are known when another load comes in between.
    let first = catalog("First").into_bytes();
    let (early, late) = first.split_at(first.len() - 100);
    let input = Interrupted {
        parts: [early, late].map(|part| io::Cursor::new(part.to_vec())),
        interrupt: Some(move || drop(other.load(&second))),
    };
    let inputs = vec![Opened::new("first".to_owned(), Box::new(input))];
    let settings = LoadSettings::replace("test".to_owned());
    let report = load(&store, inputs, settings, &Silent).expect("a report");
    let applied = report.applied.expect("no faults");
    assert!(
        matches!(&applied.outcome, Outcome::Published(revision) if revision.number == 3),
        "{:?}",
        applied.outcome
    );
    let mut names = Vec::new();
    let moment = vitrine_store::record::Moment::Live;
    let read = store.read_products(moment, &mut |product| {
        let document: Value = serde_json::from_str(&product.document)?;
        names.push(document["name"].clone());
        Ok(())
    });
    read.expect("products");
    assert_eq!(names.len(), PRODUCTS);
    assert!(names.iter().all(|name| *name != json!("Second")));
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        let product = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = product.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A store whose loads know records, and one whose loads never do.
struct Pair([Store; 2]);

impl Pair {
    /// Runs a command on both; what they print is the same, without times and random ids.
    fn run(&self, arguments: &[&str]) -> String {
        let Self([knowing, reading]) = self;
        reading.sql("update product_version set record_digest = null");
        let outcomes = [knowing, reading].map(|store| {
            let output = store.run(arguments);
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            let text = match serde_json::from_str::<Value>(&text) {
                Ok(report) => [
                    "applied",
                    "records",
                    "counts",
                    "warnings",
                    "ineffective_changes",
                ]
                .map(|name| report[name].to_string())
                .join(" "),
                Err(_) => text,
            };
            (output.status.code(), text)
        });
        assert_eq!(outcomes[0], outcomes[1], "{arguments:?}");
        let [(status, text), _] = outcomes;
        assert_eq!(status, Some(0), "{arguments:?}: {text}");
        text
    }

    fn load(&self, lines: &[String], options: &[&str]) {
        let Self([store, _]) = self;
        let file = store.write("records.ndjson", lines.join("\n"));
        let file = file.display().to_string();
        self.run(&[&["load", "--json", &file], &ALLOW_ALL[..], options].concat());
    }
}

/// Returns the record of a product in one of many forms.
fn record(number: usize, numbers: &mut Numbers) -> String {
    let mut product = gift_card(&code(number));
    let content = "/gift_card/content_resources";
    match numbers.below(40) {
        0 => product["name"] = json!(format!("Name {}", numbers.below(3))),
        1 => product["discount_multiplier"] = json!(["0.1", "0.10", "0.125"][numbers.below(3)]),
        2 => product["unknown"] = json!(1),
        3 => product["is_orderable"] = json!(false),
        4 => {
            let texts = product.pointer_mut(content).expect("texts");
            texts["description_md"] = json!(format!("# Text {}", numbers.below(3)));
        }
        5 => {
            let texts = product.pointer_mut(content).expect("texts");
            texts.as_object_mut().expect("texts").clear();
        }
        6 => return format!(" {product} ").replacen('{', "{ ", 1),
        _ => {}
    }
    product.to_string()
}

#[test]
fn loads_that_know_records_differ_in_nothing() {
    let pair = Pair([0, 1].map(|_| Store::of(&[gift_card("FIRST")])));
    let mut numbers = Numbers(20_261_126);
    let mut records: Vec<String> = (0..PRODUCTS)
        .map(|number| record(number, &mut numbers))
        .collect();
    let mut overrides = 0;
    let texts = pair.0[0].path("texts");
    for _ in 0..40 {
        for _ in 0..numbers.below(30) {
            let number = numbers.below(PRODUCTS);
            records[number] = record(number, &mut numbers);
        }
        match numbers.below(9) {
            0..4 => pair.load(&records, &[]),
            4 => pair.load(&records[..1_000], &["--mode", "merge"]),
            5 => {
                let file = texts
                    .join(code(numbers.below(1_000)))
                    .join("description.md");
                std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
                std::fs::write(&file, format!("# File {}", numbers.below(2))).expect("a file");
                let directory = texts.display().to_string();
                pair.load(&records, &["--texts", &directory]);
            }
            6 => {
                let revisions = pair.0[0].revisions();
                if revisions > 0 {
                    let number = (1 + numbers.below(revisions)).to_string();
                    pair.run(&["rollback", "--json", "--yes", &number]);
                }
            }
            7 => {
                let pattern = format!("P-0{}*", numbers.below(10));
                let command = ["disable", &pattern, "--json", "--yes"];
                pair.run(&[&command, &ALLOW_ALL[..]].concat());
                overrides += 1;
            }
            _ if overrides > 0 => {
                let number = (1 + numbers.below(overrides)).to_string();
                let _ = pair
                    .0
                    .each_ref()
                    .map(|store| store.run(&["overrides", "end", &number, "--yes"]));
            }
            _ => {}
        }
        pair.run(&["export"]);
        pair.run(&["export", "--effective"]);
    }
    pair.0.iter().for_each(|store| drop(store.ok(&["check"])));
    assert!(overrides > 0);
    assert!(texts.exists());
}
