//! Limits of the changes feed: the memory of its journal, and quotas that servers share.

use serde_json::{Value, json};

use crate::changes_gone::{KNOWN, LOST};
use crate::changes_waits::ADMIN;
use crate::harness::feed::{CatalogCopy, FeedServer};
use crate::harness::{Redis, Store, gift_card, scrape, wait_for};

/// A product that no two revisions give the same, and whose facts take about 600 bytes.
fn bulky(number: usize, revision: usize) -> Value {
    let mut product = gift_card(&format!("P{number:03}"));
    let category =
        |index: usize| format!("category-{index}-{revision}-{number}-{}", "x".repeat(40));
    product["categories"] = json!((0..10).map(category).collect::<Vec<_>>());
    product
}

#[test]
fn journal_keeps_its_limit_and_forgets_the_oldest_first() {
    let revision = |revision: usize| -> Vec<Value> {
        (0..400).map(|number| bulky(number, revision)).collect()
    };
    let options = [&ADMIN[..], &["--changes-mib", "1"]].concat();
    let served = FeedServer::of(&revision(1), &options);
    let mut copies = vec![served.copy("")];
    for number in 2..=7 {
        served.load(&revision(number));
        copies.push(served.copy(""));
    }
    let assert_trimmed = |served: &FeedServer| {
        let bytes = wait_for("the history to be read", || {
            let bytes = scrape(&served.server).value("vitrine_changes_bytes");
            (bytes > 2e5).then_some(bytes)
        });
        assert!(bytes <= 1_048_576.0, "{bytes}");
        let known: Vec<bool> = copies
            .iter()
            .map(|copy| served.refusals(copy) == KNOWN)
            .collect();
        println!("{bytes} bytes; tokens that are known: {known:?}");
        assert!(!known[0] && known[5] && known[6], "{known:?}");
        assert!(known.is_sorted(), "{known:?}");
        for (copy, is_known) in copies.iter().zip(known) {
            match is_known {
                true => served.settle(&mut copy.clone()),
                false => assert_eq!(served.refusals(copy), LOST),
            }
        }
    };
    assert_trimmed(&served);
    assert_trimmed(&served.restart(&options));
}

#[test]
fn shared_quota_is_charged_for_changes_only() {
    let Some(redis) = Redis::start("a quota of the changes feed that servers share") else {
        return;
    };
    let url = redis.url();
    let options = [&ADMIN[..], &["--limits", &url]].concat();
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("small", &["--quota", "2/86400"]);
    let served = FeedServer::over(store, &options);
    let other = served
        .store
        .serve_with(&[&["--public-url", "https://catalog.example"], &options[..]].concat());
    let mut copy = CatalogCopy::of("");
    assert_eq!(copy.ask(&served.server, &key, ""), ["A"]);
    for _ in 0..3 {
        for server in [&served.server, &other] {
            assert_eq!(copy.ask(server, &key, "wait=0"), [""; 0]);
        }
    }
    served.load(&[gift_card("B")]);
    let named = wait_for("the other server", || {
        Some(copy.walk(&other, &key, "")).filter(|named| !named.is_empty())
    });
    assert_eq!(named, ["-A", "B"]);
    assert_eq!(other.get(&key, "/v2/ping").status, 429);
    // The server that has learned of it searches for nothing, and lets nobody wait in vain.
    for more in ["", "wait=55"] {
        let reply = other.get(&key, &copy.target(more));
        let refused = (reply.status, reply.error());
        assert_eq!(refused, (429, "rate_limited".to_owned()), "{more}");
    }
}
