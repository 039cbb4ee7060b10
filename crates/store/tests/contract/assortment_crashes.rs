//! Crashes and failures of the disk while an assortment is written or a key gets one: the old state or the new one is left.

use std::sync::Arc;

use vitrine_model::key::KeyRecord;
use vitrine_store::{IfMissing, Store, open};

use crate::assortments::{assigned, set};
use crate::kept::{Kept, on_both};
use crate::keys::{record, write};

/// Address of the store that [`crashing_child`] writes to, and what it writes.
const CRASH: [&str; 2] = ["VITRINE_TEST_CRASH_STORE", "VITRINE_TEST_CRASH_WRITE"];

/// Runs in a process of its own, which a fail point kills.
#[test]
fn crashing_child() {
    let [Ok(url), Ok(what)] = CRASH.map(std::env::var) else {
        return;
    };
    let store = open(&url, IfMissing::Refuse).unwrap();
    match what.as_str() {
        "set" => drop(set(&store, "a", Some("two"))),
        "assign" => write(&store, &[assigned(1, "a")]),
        _ => store
            .accept_assortments(&crate::audited::set_key())
            .unwrap(),
    }
}

/// Returns rules, keys and what is accepted, as text.
fn told(store: &Arc<Store>) -> [String; 3] {
    let names = |key: KeyRecord| (key.prefix, key.assortment);
    let keys: Vec<_> = store.keys().unwrap().into_iter().map(names).collect();
    [
        format!("{:?}", store.assortments().unwrap()[0].rules),
        format!("{keys:?}"),
        format!(
            "{:?}",
            store.state().unwrap().assortments_accepted.is_some()
        ),
    ]
}

fn assert_atomic(kept: &Kept<'_>, what: &str, point: &str) {
    let store = kept.open();
    set(&store, "a", Some("one"));
    write(&store, &[record(1, 1)]);
    let (old, state) = (told(&store), store.state().unwrap());
    for action in ["kill", "error"] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["assortment_crashes::crashing_child", "--exact"])
            .envs([(CRASH[0], kept.url.as_str()), (CRASH[1], what)])
            .env("VITRINE_FAIL_POINT", format!("{point}={action}@1"))
            .output()
            .unwrap();
        assert!(!child.status.success(), "{point} {action}: {child:?}");
        assert_eq!(store.check().unwrap(), [], "{point} {action}");
        let is_committed = point.ends_with("committed");
        assert_eq!(
            store.state().unwrap() != state,
            is_committed,
            "{point} {action}"
        );
        assert_eq!(told(&store) != old, is_committed, "{point} {action}");
        if is_committed {
            return;
        }
    }
}

#[test]
fn crash_at_each_point_leaves_the_old_or_the_new() {
    for (what, point) in [
        ("set", "assortments.replaced"),
        ("set", "assortments.written"),
        ("set", "assortments.counted"),
        ("set", "assortments.committed"),
        ("assign", "keys.written"),
        ("assign", "keys.counted"),
        ("assign", "keys.committed"),
        ("accept", "assortments.accepted"),
        ("accept", "assortments.committed"),
    ] {
        on_both(|kept| {
            // PostgreSQL's commit has no point of its own.
            if kept.url.starts_with("sqlite:") || !point.ends_with("committed") {
                assert_atomic(kept, what, point);
            }
        });
    }
}
