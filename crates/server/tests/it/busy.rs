//! A store that another process is writing to: who waits for it too long gets an error.

use vitrine_store::{IfMissing, open};

use crate::harness::{Store, gift_card, text};

#[test]
fn busy_store_is_reported_and_left_alone() {
    let store = Store::of(&[gift_card("A")]);
    let lines = [gift_card("A"), gift_card("B")].map(|product| product.to_string());
    let file = store.write("b.json", lines.join("\n"));
    let file = file.display().to_string();
    // This process is the other writer.
    let held = open(&store.url(), IfMissing::Refuse).expect("the store");
    let publication = held.publish().expect("a publish");
    let locked = match store.database() {
        // It names itself there.
        Some(_) => format!("locked by vitrine {}", std::process::id()),
        None => "locked by another process;".to_owned(),
    };
    let mut waiting = vec![
        vec!["load", "--wait", "1", &file],
        vec!["--wait", "0", "load", &file],
    ];
    // In a database a change of keys doesn't wait for a load.
    let change_keys = vec!["keys", "create", "--label", "x", "--wait", "0"];
    match store.database() {
        Some(_) => drop(store.ok(&change_keys)),
        None => waiting.push(change_keys),
    }
    for waiting in waiting {
        let output = store.run(&waiting);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{waiting:?}: {said}");
        assert!(said.contains("nothing was changed"), "{waiting:?}: {said}");
        assert!(said.contains(&locked), "{waiting:?}: {said}");
    }
    let output = store.run(&["load", "--wait", "1", &file]);
    assert!(text(&output.stderr).contains("after 1 s;"));
    for wrong in ["-1", "1.5", "86401", "soon"] {
        let output = store.run(&["load", &format!("--wait={wrong}"), &file]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    // Readers don't wait, nor does a dry run, and a writer that is patient gets its turn.
    let listed = store.json(&["history", "--json"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let planned = store.ok(&["load", "--dry-run", "--wait", "0", &file]);
    assert!(planned.contains("+ B"), "{planned}");
    drop(publication);
    store.ok(&["load", "--wait", "0", &file]);
}
