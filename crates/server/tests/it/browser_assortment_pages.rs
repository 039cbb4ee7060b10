//! Pages of assortments in the console: the list, and one with its rules, keys and versions; and what overrides are to come.

use serde_json::json;

use crate::assortments::set;
use crate::browser_store_pages::{EVIL, assert_inert, links};
use crate::harness::browsed::open;
use crate::harness::{Store, gift_card, wait_for};

#[test]
fn assortments_are_listed_with_keys_products_and_authors() {
    let browsed = open(Store::of(&["A", "B", "C"].map(gift_card)), &[]);
    let empty = browsed.page("/assortments");
    assert!(
        empty.text().contains("No assortments yet"),
        "{}",
        empty.text()
    );
    let store = &browsed.store;
    set(store, "few", &json!({"allow": [{"codes": ["A", "B"]}]}));
    let file = store.write("rules.json", "{}").display().to_string();
    store.ok(&["assortments", "set", "most", &file, "--note", EVIL]);
    store.key(EVIL, &["--assortment", "few"]);
    store.key("revoked", &["--assortment", "few"]);
    store.ok(&["keys", "revoke", "revoked"]);
    let page = wait_for("the assortments", || {
        let page = browsed.page("/assortments");
        (!page.text().contains("not known here")).then_some(page)
    });
    let words = page.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("few 1 2 1 2"), "{words}");
    assert!(
        words.contains("most 0 3 1 2") && words.contains(EVIL),
        "{words}"
    );
    assert_inert(&page, "/assortments");
    let links = links(&page);
    for link in ["/assortments/few", "/catalog?as=few", "/assortments"] {
        assert!(links.iter().any(|one| one == link), "{link}: {links:?}");
    }
    let found = browsed.page("/assortments?q=FEW");
    assert!(!found.text().contains("most"), "{}", found.text());
    let none = browsed.page("/assortments?q=%22%3E%3Cscript%3E");
    assert!(none.text().contains("No assortment found"));
    assert_inert(&none, "/assortments?q=");
    for wrong in ["page=0", "page=x", "q=a&q=b", "by=me"] {
        let reply = browsed.ask(&format!("/assortments?{wrong}"));
        assert_eq!(reply.status, 400, "{wrong}");
    }
}

#[test]
fn many_assortments_have_pages() {
    let browsed = open(Store::of(&["A"].map(gift_card)), &[]);
    for number in 0..51 {
        set(&browsed.store, &format!("a{number:02}"), &json!({}));
    }
    let first = browsed.page("/assortments");
    assert_eq!(first.link("next").as_deref(), Some("/assortments?page=2"));
    assert!(!first.text().contains("a50"));
    let second = browsed.page("/assortments?page=2");
    assert!(second.text().contains("a50"), "{}", second.text());
    assert_eq!(second.link("prev").as_deref(), Some("/assortments?page=1"));
}

#[test]
fn page_of_an_assortment_has_rules_keys_and_versions() {
    let browsed = open(Store::of(&["A", "B"].map(gift_card)), &[]);
    let store = &browsed.store;
    set(store, "few", &json!({"allow": [{"codes": ["A"]}]}));
    let file = store.write("rules.json", r#"{"deny": [{"codes": ["B"]}]}"#);
    store.ok(&[
        "assortments",
        "set",
        "few",
        &file.display().to_string(),
        "--note",
        EVIL,
    ]);
    let key = store.key(EVIL, &["--assortment", "few"]);
    let page = wait_for("the assortment", || {
        let page = browsed.page("/assortments/few");
        page.text()
            .contains("1 product, as few sees them")
            .then_some(page)
    });
    let words = page.text();
    let prefix = key.split('.').next().expect("a prefix");
    for part in ["{\"codes\": [\"B\"]}", prefix, EVIL, "1 key", "live"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let secret = key.split('.').nth(1).expect("a secret");
    assert!(
        !words.contains(secret) && !words.contains("Roll back"),
        "{words}"
    );
    assert_inert(&page, "/assortments/few");
    assert!(links(&page).iter().any(|link| link == "/catalog?as=few"));
    let old = browsed.page("/assortments/few?version=1");
    assert!(old.text().contains("Rules of version 1"), "{}", old.text());
    assert!(
        old.text().contains("{\"codes\": [\"A\"]}"),
        "{}",
        old.text()
    );
    for (wrong, status) in [
        ("few?version=9", 404),
        ("few?version=x", 400),
        ("few?version=1&version=2", 400),
        ("few?by=me", 400),
        ("none", 404),
        (".few", 404),
        ("few/1", 404),
    ] {
        assert_eq!(
            browsed.ask(&format!("/assortments/{wrong}")).status,
            status,
            "{wrong}"
        );
    }
}

#[test]
fn overrides_to_come_are_listed_by_day() {
    let browsed = open(Store::of(&["A", "B"].map(gift_card)), &[]);
    let store = &browsed.store;
    let span = [
        "--from",
        "2031-03-31T22:30:00Z",
        "--until",
        "2031-05-01T00:00:00+02:00",
    ];
    let set = ["set", "A", "discount_multiplier=0.02", "--note", EVIL];
    store.ok(&[&set[..], &span].concat());
    // The calendar that the page had once has gone; addresses of its months lead on.
    for query in ["", "?month=2031-03"] {
        let page = browsed.page(&format!("/overrides{query}"));
        assert_inert(&page, query);
        let words = page.text().split_whitespace().collect::<Vec<_>>().join(" ");
        for shown in ["22:30 begins Set A", "22:00 ends Set A", "times are in UTC"] {
            assert!(words.contains(shown), "{query}: {shown}: {words}");
        }
    }
    assert_eq!(browsed.ask("/overrides?day=1").status, 400);
}
