//! Inputs that can't be loaded: empty, of another kind, cut off, too large, too deep, not there. Each is
//! refused with its place, or is an error that names it, and changes nothing.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};

use serde_json::Value;

use crate::harness::{Store, gift_card, text};
use crate::products::{assert_holds, pretty, with};

/// Refused input: its name, its bytes, its rule, and the line of the fault if the input has lines.
type Refused = (&'static str, Vec<u8>, &'static str, Option<u64>);

fn with_text(what: &'static str, text: String, rule: &'static str, line: Option<u64>) -> Refused {
    (what, text.into_bytes(), rule, line)
}

fn empty_or_of_another_kind() -> Vec<Refused> {
    let utf_16 = "{\"name\":1}".encode_utf16();
    let mut refused = vec![
        ("gzip", vec![0x1f, 0x8b, 8, 0, 0, 0xff], "compression", None),
        ("zeros", vec![0; 70_000], "json", None),
        (
            "UTF-16",
            utf_16.flat_map(u16::to_le_bytes).collect(),
            "json",
            Some(1),
        ),
    ];
    let empty_list = pretty("{\"catalog\":[]}");
    for (what, text, rule) in [
        ("empty", "", "empty"),
        ("only a BOM", "\u{feff}", "empty"),
        ("blank", " \r\n\n\t\n", "empty"),
        ("an empty array", "[]", "empty"),
        ("an empty list", "{\"catalog\":[]}", "empty"),
        ("an empty pretty list", &empty_list, "empty"),
        ("HTML", "<!DOCTYPE html>\n<p>502</p>", "json"),
        ("CSV without codes", "name,number\nA,B\n", "json"),
    ] {
        refused.push(with_text(what, text.to_owned(), rule, None));
    }
    refused
}

fn not_utf_8() -> Vec<Refused> {
    let mut latin_1 = with(gift_card("L"), "/name", "\"caf@\"").into_bytes();
    let at = latin_1
        .iter()
        .position(|byte| *byte == b'@')
        .expect("a mark");
    latin_1[at] = 0xe9;
    let good = gift_card("G").to_string();
    let second = [good.as_bytes(), b"\n", &latin_1].concat();
    vec![
        ("Latin-1 in the first line", latin_1, "utf8", Some(1)),
        ("Latin-1 in the second line", second, "utf8", Some(2)),
    ]
}

fn cut_off() -> Vec<Refused> {
    let good = gift_card("G").to_string();
    let half = &good[..good.len() / 2];
    let pretty_half = pretty(&good)[..half.len()].to_owned();
    [
        ("a first line", format!("{half}\n{good}\n"), Some(1)),
        (
            "a line between",
            format!("{}\n{half}\n{good}", gift_card("H")),
            Some(2),
        ),
        ("a last line", format!("{good}\n{half}"), Some(2)),
        ("the only line", half.to_owned(), Some(1)),
        ("an array, in a record", format!("[{good},{half}"), None),
        ("an array, between records", format!("[{good},"), None),
        (
            "a list, in a record",
            format!("{{\"catalog\":[{good},{half}"),
            None,
        ),
        (
            "a list that isn't closed",
            format!("{{\"catalog\":[{good}]"),
            None,
        ),
        ("a pretty product", pretty_half, None),
        ("junk after an array", format!("[{good}] junk"), None),
    ]
    .map(|(what, text, line)| with_text(what, text, "json", line))
    .to_vec()
}

fn no_product_or_too_deep() -> Vec<Refused> {
    let good = gift_card("G").to_string();
    let arrays = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let deep = |raw: &str| with(gift_card("D"), "/x", raw);
    let lists = format!("{{\"catalog\":[{good}],\"catalog\":[{}]}}", gift_card("H"));
    let pretty_lists = lists.replace("],", "],\n");
    [
        ("two lists in one", lists, "duplicate_key", None),
        ("two lists, indented", pretty_lists, "duplicate_key", None),
        ("a number in an array", format!("[{good},7]"), "type", None),
        (
            "a string as a line",
            format!("{good}\n\"x\""),
            "type",
            Some(2),
        ),
        ("deep arrays", deep(&arrays), "nesting", Some(1)),
        ("deep objects", deep(&objects), "nesting", Some(1)),
        (
            "a deep line",
            format!("{good}\n{objects}"),
            "nesting",
            Some(2),
        ),
    ]
    .map(|(what, text, rule, line)| with_text(what, text, rule, line))
    .to_vec()
}

#[test]
fn unreadable_input_is_refused_with_its_place() {
    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let refused = [
        empty_or_of_another_kind(),
        not_utf_8(),
        cut_off(),
        no_product_or_too_deep(),
    ]
    .concat();
    for (what, content, rule, line) in refused {
        let (exit, report) = store.try_load(&content);
        assert_eq!(exit, 3, "{what}: {report}");
        assert_eq!(report["applied"], false, "{what}");
        let faults = report["faults"].as_array().expect("faults");
        // A record that nests too deep lacks the fields of a product as well.
        assert!(faults.len() == 1 || rule == "nesting", "{what}: {report}");
        let fault = &faults[0];
        assert_eq!(fault["rule"], rule, "{what}: {fault}");
        assert_eq!(fault["line"].as_u64(), line, "{what}: {fault}");
        let file = fault["file"].as_str().expect("a file");
        assert!(file.ends_with("tried.json"), "{what}: {fault}");
        let message = fault["message"].as_str().expect("a message");
        assert!(message.starts_with("expected "), "{what}: {message}");
        assert_holds(&store, &kept, what);
    }
}

#[test]
fn unopenable_input_is_an_error_that_names_it() {
    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let other = store.write("other.json", gift_card("OTHER").to_string());
    let other = other.display().to_string();
    let below_a_file = kept.join("more.json");
    for (what, path) in [
        ("missing", store.path("missing.ndjson")),
        ("below a file", below_a_file),
    ] {
        let path = path.display().to_string();
        for arguments in [vec!["load", &path], vec!["load", "--json", &other, &path]] {
            let output = store.run(&arguments);
            assert_eq!(output.status.code(), Some(1), "{what}");
            let said = text(&output.stderr);
            assert!(
                said.starts_with("vitrine: ") && said.contains(&path),
                "{said}"
            );
            assert!(output.stdout.is_empty(), "{what}");
            assert_holds(&store, &kept, what);
        }
    }
}

#[test]
fn line_of_200_megabytes_is_one_fault_among_good_lines() {
    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let lines = (gift_card("A"), gift_card("B"));
    for (what, head, tail, line) in [
        (
            "lines",
            format!("{}\n{{\"name\":\"", lines.0),
            format!("\"}}\n{}\n", lines.1),
            Some(2),
        ),
        (
            "first",
            "{\"name\":\"".to_owned(),
            format!("\"}}\n{}\n{}", lines.0, lines.1),
            Some(1),
        ),
        (
            "array",
            format!("[{},{{\"name\":\"", lines.0),
            format!("\"}},{}]", lines.1),
            None,
        ),
    ] {
        let path = store.path("large");
        let mut file = File::create(&path).expect("a file");
        file.write_all(head.as_bytes()).expect("written");
        if line.is_some() {
            // A hole in the file: zeros that take no room.
            file.seek(SeekFrom::Current(200 << 20)).expect("a place");
        } else {
            // Within an array zeros would be broken JSON, found before the record is too large.
            let megabyte = vec![b'x'; 1 << 20];
            for _ in 0..20 {
                file.write_all(&megabyte).expect("written");
            }
        }
        file.write_all(tail.as_bytes()).expect("written");
        drop(file);
        let output = store.run(&["load", "--json", &path.display().to_string()]);
        assert_eq!(output.status.code(), Some(3), "{what}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let faults = report["faults"].as_array().expect("faults");
        assert_eq!(faults.len(), 1, "{what}: {faults:?}");
        assert_eq!(faults[0]["rule"], "record_too_large", "{what}");
        assert_eq!(faults[0]["line"].as_u64(), line, "{what}");
        // After a line that is too long the next ones are read; an array ends there.
        assert_eq!(
            report["records"],
            if line.is_some() { 2 } else { 1 },
            "{what}"
        );
        assert_holds(&store, &kept, what);
    }
}
