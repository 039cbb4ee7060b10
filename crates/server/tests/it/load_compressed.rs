//! Compressed inputs and directories: told by content, unpacked on the way, refused where damaged.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::csv::Table;
use crate::harness::{SAMPLE, Store, gift_card, text};
use crate::products::{assert_holds, payment, pretty, subscription};

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

/// The bytes in two parts, each packed for itself.
fn in_two(pack: fn(&[u8]) -> Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let (first, second) = bytes.split_at(bytes.len() / 3);
    [pack(first), pack(second)].concat()
}

fn products() -> Vec<Value> {
    vec![gift_card("A"), payment("B"), subscription("C")]
}

fn lines(products: &[Value]) -> String {
    let lines: Vec<String> = products.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// Loads standard input; returns the exit code and the report.
fn load_stdin(store: &Store, content: &[u8]) -> (Option<i32>, Value) {
    let mut command = store.command(&["load", "--json", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("vitrine runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(content).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let report = serde_json::from_slice(&output.stdout).expect("a report");
    (output.status.code(), report)
}

#[test]
fn every_format_may_be_compressed() {
    let store = Store::of(&products());
    let array = format!("[{}]", lines(&products()).replace('\n', ","));
    let formats = [
        lines(&products()),
        pretty(&array),
        format!("{{\"catalog\":{array}}}"),
        Table::of(&products()).to_csv(';', "\r\n"),
        format!("\u{feff}{}", Table::of(&products()).to_csv(',', "\n")),
    ];
    for format in formats {
        let bytes = format.as_bytes();
        // A frame to be skipped, as parallel compressors write them.
        let skippable = [b"\x50\x2a\x4d\x18\x02\0\0\0ab".to_vec(), zstd(bytes)].concat();
        for packed in [
            gzip(bytes),
            in_two(gzip, bytes),
            zstd(bytes),
            in_two(zstd, bytes),
            skippable,
        ] {
            // The name says nothing.
            let file = store.write("packed.json", &packed);
            assert_holds(&store, &file, &format);
        }
        let (exit, report) = load_stdin(&store, &gzip(bytes));
        assert_eq!(
            (exit, &report["counts"]["unchanged"]),
            (Some(0), &json!(3)),
            "{report}"
        );
    }
}

#[test]
fn cut_or_damaged_stream_is_refused_by_name() {
    let store = Store::of(&products());
    let kept = store.write("kept.json", lines(&products()));
    let sample = std::fs::read(SAMPLE).expect("the sample");
    for (what, packed) in [("gzip", gzip(&sample)), ("zstd", zstd(&sample))] {
        let cut = |at: usize| packed[..at].to_vec();
        let mut flipped = packed.clone();
        flipped[packed.len() / 2] ^= 0x55;
        let cases = [
            ("cut off early", cut(9)),
            ("cut off", cut(packed.len() / 2)),
            ("cut off late", cut(packed.len() - 1)),
            ("damaged", flipped),
            (
                "followed by more",
                [packed.clone(), b"more".to_vec()].concat(),
            ),
        ];
        for (how, content) in cases {
            let (exit, report) = store.try_load(&content);
            let faults = report["faults"].as_array().expect("faults");
            let fault = faults.last().expect("a fault");
            if how == "damaged" && what == "zstd" && fault["rule"] != "compression" {
                // No checksum: what comes out is no product instead.
                assert_eq!(exit, 3);
                continue;
            }
            assert_eq!(
                (exit, &fault["rule"]),
                (3, &json!("compression")),
                "{what} {how}: {report}"
            );
            let file = fault["file"].as_str().expect("a name");
            assert!(file.ends_with("tried.json"), "{report}");
            let (exit, report) = load_stdin(&store, &content);
            let faults = report["faults"].as_array().expect("faults");
            let file = &faults.last().expect("a fault")["file"];
            assert_eq!(
                (exit, file),
                (Some(3), &json!("standard input")),
                "{report}"
            );
        }
        assert_holds(&store, &kept, what);
    }
}

/// Loads a file with less memory than a bomb unpacks to.
///
/// The limit is one of data (`ulimit -d`): of address space, threads reserve
/// more or less by chance. It counts what the allocator keeps for later, too.
fn load_in_little_memory(store: &Store, file: &Path) -> (Option<i32>, Value) {
    let command = store.command(&["load", "--json"]);
    let output = Command::new("sh")
        .args(["-c", "ulimit -d 150000 && exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .arg(file)
        .env("VITRINE_STORE", store.url())
        .output()
        .expect("a shell");
    let report = serde_json::from_slice(&output.stdout).expect("a report");
    (output.status.code(), report)
}

#[test]
fn bomb_is_refused_in_little_memory() {
    let store = Store::of(&products());
    let kept = store.write("kept.json", lines(&products()));
    let megabyte = |byte: u8| vec![byte; 1 << 20];
    for (start, filler, rule) in [
        ("{\"name\":\"", b'x', "record_too_large"),
        ("[\"", b'x', "record_too_large"),
        ("code;name\n\"", b'x', "record_too_large"),
        ("code;name\n", b';', "record_too_large"),
        ("", b'\n', "empty"),
        ("code;name\n", b'\n', "empty"),
    ] {
        for pack in [gzip, zstd] {
            let member = pack(&megabyte(filler));
            let bomb = [pack(start.as_bytes()), member.repeat(192)].concat();
            let bomb = store.write("bomb", &bomb);
            let (exit, report) = load_in_little_memory(&store, &bomb);
            assert_eq!(
                (exit, &report["faults"][0]["rule"]),
                (Some(3), &json!(rule)),
                "{start}: {report}"
            );
        }
    }
    let twice = gzip(&zstd(lines(&products()).as_bytes()));
    let (exit, report) = store.try_load(&twice);
    assert_eq!(
        (exit, &report["faults"][0]["rule"]),
        (3, &json!("json")),
        "{report}"
    );
    let (exit, report) = store.try_load(gzip(b""));
    assert_eq!(
        (exit, &report["faults"][0]["rule"]),
        (3, &json!("empty")),
        "{report}"
    );
    assert_holds(&store, &kept, "after bombs");
}

#[test]
fn directory_is_its_files_in_path_order() {
    let store = Store::new();
    let root = store.path("feed");
    std::fs::create_dir_all(root.join("b/deep")).expect("a directory");
    std::fs::create_dir_all(root.join(".hidden")).expect("a directory");
    let write =
        |path: &str, content: &[u8]| std::fs::write(root.join(path), content).expect("a file");
    write("b/deep/1", gift_card("A").to_string().as_bytes());
    write(
        "a.csv.gz",
        &gzip(Table::of(&[payment("B")]).to_csv(';', "\n").as_bytes()),
    );
    write("b.zst", &zstd(subscription("C").to_string().as_bytes()));
    write(".hidden/bad", b"bad");
    write("b/.bad", b"bad");
    let report = store.load(&root);
    assert_eq!(report["counts"]["created"], 3, "{report}");

    // '.' comes before '/'.
    for path in ["b/deep/2", "b.a", "b/1"] {
        write(path, b"{}");
    }
    let output = store.run(&["load", "--json", &root.display().to_string()]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let mut files: Vec<&str> = Vec::new();
    for fault in report["faults"].as_array().expect("faults") {
        let file = fault["file"].as_str().expect("a name");
        if files.last() != Some(&file) {
            files.push(file);
        }
    }
    let expected = ["b.a", "b/1", "b/deep/2"].map(|path| root.join(path).display().to_string());
    assert_eq!(files, expected);
}

#[test]
fn empty_directory_is_refused_and_huge_one_read() {
    let store = Store::of(&products());
    let empty = store.path("empty");
    std::fs::create_dir_all(empty.join("more")).expect("a directory");
    let output = store.run(&["load", &empty.display().to_string()]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stderr);
    assert!(
        told.contains("empty") && told.contains(&empty.display().to_string()),
        "{told}"
    );

    let many = store.path("many");
    std::fs::create_dir(&many).expect("a directory");
    for number in 0..1500 {
        let product = gift_card(&format!("N{number}")).to_string();
        std::fs::write(many.join(format!("{number}.json")), product).expect("a file");
    }
    assert_eq!(store.load(&many)["counts"]["created"], 1500);
}

#[cfg(unix)]
#[test]
fn links_are_followed_only_to_new_files_within() {
    use std::os::unix::fs::symlink;

    let store = Store::new();
    let root = store.path("feed");
    let outside = store.write("outside.json", gift_card("OUTSIDE").to_string());
    std::fs::create_dir_all(root.join("..2026")).expect("a directory");
    std::fs::write(root.join("..2026/a"), gift_card("A").to_string()).expect("a file");
    std::fs::write(root.join("b"), gift_card("B").to_string()).expect("a file");
    for (target, link) in [
        ("..2026", "..data"),
        ("..data/a", "a"),
        ("..data/a", "a2"),
        ("b", "b2"),
        ("nowhere", "c"),
        (".", "loop"),
        (outside.to_str().expect("UTF-8"), "outside"),
    ] {
        symlink(target, root.join(link)).expect("a link");
    }
    let report = store.load(&root);
    assert_eq!(report["counts"]["created"], 2, "{report}");
}
