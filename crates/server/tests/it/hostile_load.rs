//! A hostile feed and a hurried operator: what a feed says doesn't steer the terminal or fill the memory,
//! and no file that the operator still needs is written over or left lying about.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Store, gift_card, text, wait_for};
use crate::products::with;

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Characters that steer a terminal or turn the order of what is read.
fn steers(character: char) -> bool {
    character != '\n' && character.is_control()
        || ('\u{202a}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
}

#[test]
fn nothing_of_a_feed_steers_the_terminal() {
    let store = Store::of(&[gift_card("A")]);
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}\u{7f}";
    let mut key = gift_card("KEY");
    key[format!("{evil}\nfault: forged")] = json!(1);
    let lines = [
        gift_card("A").to_string(),
        with(gift_card("B"), "/state", &json!(evil).to_string()),
        with(
            gift_card("C"),
            "/code",
            &json!(format!("{evil}\nforged")).to_string(),
        ),
        key.to_string(),
        evil.to_owned(),
    ];
    let table = format!("code;name;{evil}\nA{evil};n;x\n");
    for (name, content) in [("feed.ndjson", lines.join("\n")), ("feed.csv", table)] {
        let name = format!("{evil}{name}");
        let file = shown(&store.write(&name, content));
        let output = store.run(&["load", &file]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told:?}");
        assert!(told.contains(r"\u001b[2J\u009b31m\u202e\u007f"), "{told:?}");
        assert!(!told.contains(steers), "{told:?}");
        assert!(
            !told.lines().any(|line| line.starts_with("fault: forged")),
            "{told}"
        );
    }
    // What passes the rules is shown again by a plan.
    let mut renamed = gift_card("A");
    renamed["customer_service"]["website_url"] = Value::Null;
    renamed["name"] = json!("\u{202e}drac");
    let file = shown(&store.write("renamed.ndjson", renamed.to_string()));
    let plan = store.run(&["load", "--dry-run", &file]);
    let told = format!("{}{}", text(&plan.stdout), text(&plan.stderr));
    assert!(!told.contains(steers), "{told:?}");
    store.ok(&["load", "--note", evil, &file]);
    let history = store.ok(&["history"]);
    assert!(
        history.contains(r"\u001b[2J") && !history.contains(steers),
        "{history:?}"
    );
    let missing = store.run(&["load", &format!("no-{evil}")]);
    let told = text(&missing.stderr);
    assert!(
        told.contains(r"no-\u001b") && !told.contains(steers),
        "{told:?}"
    );
}

#[test]
fn interrupted_load_leaves_nothing_beside_its_inputs() {
    let store = Store::of(&[gift_card("A")]);
    let feed = store.path("feed");
    std::fs::create_dir(&feed).expect("a directory");
    let bad = with(gift_card("B"), "/currency", "1");
    std::fs::write(feed.join("bad.ndjson"), format!("{bad}\n").repeat(3)).expect("a file");
    let [bad, rejected] = ["bad.ndjson", "rejected.ndjson"].map(|name| shown(&feed.join(name)));
    let mut load = store.command(&["load", "--on-error", "skip"]);
    let mut load = load
        .args(["--rejected", &rejected, &bad, "-"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a load");
    // It has read the first file once it waits for standard input.
    let process = load.id();
    wait_for("the load to wait for its input", || {
        let links = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
        let links = links.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let unnamed = links.filter(|link| {
            let link = link.display().to_string();
            link.starts_with(&shown(&feed)) && link.ends_with("(deleted)")
        });
        (unnamed.count() == 1).then_some(())
    });
    load.kill().expect("a signal");
    load.wait().expect("an end");
    let left: Vec<_> = std::fs::read_dir(&feed)
        .expect("entries")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn record_with_a_million_faults_reports_a_thousand() {
    let store = Store::of(&[gift_card("A")]);
    let categories = format!("[{}]", vec!["1"; 1_000_000].join(","));
    let key = "k".repeat(1_000_000);
    let long = format!("{{\"code\":\"LONG\",\"{key}\":{{\"a\":1,\"a\":2}}}}");
    let lines = [with(gift_card("MANY"), "/categories", &categories), long];
    let (exit, report) = store.try_load(lines.join("\n"));
    assert_eq!(exit, 3);
    assert_eq!(report["faults_by_rule"]["type"]["count"], 1_000);
    assert_eq!(report["warnings"]["findings_cut"]["count"], 1);
    let twice = &report["faults_by_rule"]["duplicate_key"]["examples"][0];
    let pointer = twice["pointer"].as_str().expect("a pointer");
    assert!(pointer.len() < 2_000, "{}", pointer.len());

    // A record that has nothing but warnings is loaded all the same.
    let mut warned = gift_card("WARNED");
    for number in 0..3_000 {
        warned[format!("unknown_{number}")] = json!(number);
    }
    let file = shown(&store.write("warned.ndjson", warned.to_string()));
    let load = ["load", "--json", "--mode", "merge", &file];
    let report = store.json(&[&load, &ALLOW_ALL[..]].concat());
    assert_eq!(report["counts"]["created"], 1);
    assert_eq!(report["warnings"]["unknown_field"]["count"], 1_000);
}

#[test]
fn conflicting_options_are_a_wrong_command_line() {
    let store = Store::sample();
    for options in [&["--retire", "A"][..], &["--rejected", "r.ndjson"]] {
        let output = store.run(&[&["load", "-"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}

#[test]
fn unwritable_export_is_an_error() {
    let store = Store::sample();
    let full = std::fs::File::create("/dev/full").expect("a device that is full");
    let export = store.command(&["export"]).stdout(full).output();
    let output = export.expect("an export");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("can't write to standard output"), "{told}");
}
