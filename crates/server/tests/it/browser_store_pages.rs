//! Pages that read the store beside revisions: home, overrides, the audit log, a product and the keys; with outside text in all
//! that they show.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::assortments::set;
use crate::harness::browsed::{Browsed, BrowsedPage, attribute, open};
use crate::harness::{ALLOW_ALL, Store, gift_card, text, wait_for};

pub const EVIL: &str = "\"><script>alert(1)</script>";

/// Returns the addresses of all links of a page.
pub fn links(page: &BrowsedPage) -> Vec<String> {
    let links = page.tags("a");
    let addresses = links.iter().filter_map(|link| attribute(link, "href"));
    addresses.map(str::to_owned).collect()
}

/// Asserts that a page runs no script of others, and shows what is hostile as text.
pub fn assert_inert(page: &BrowsedPage, target: &str) {
    for script in page.tags("script") {
        assert_eq!(
            attribute(&script, "src"),
            Some("/assets/browser.js"),
            "{target}"
        );
    }
    let body = text(&page.reply.body);
    assert!(
        !body.contains("<script>alert") && !body.contains(" style="),
        "{target}: {body}"
    );
}

/// Loads products with a note, and returns when the server shows them.
pub fn reload(browsed: &Browsed, products: &[Value], note: &str) {
    let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
    let file = browsed.store.write("again.ndjson", lines.join("\n"));
    let file = file.display().to_string();
    let load = ["load", "--json", "--note", note, &file];
    let report = browsed.store.json(&[&load[..], &ALLOW_ALL[..]].concat());
    browsed.server.wait_for_loaded(&report);
}

/// Disables products, whatever the guard says.
fn disable(store: &Store, arguments: &[&str]) {
    let allow = ["--allow", "not-orderable=100%", "--allow", "states=100%"];
    store.ok(&[&["disable"], arguments, &allow].concat());
}

#[test]
fn home_names_exceptions_changes_and_what_ends_soon() {
    let mut odd = gift_card("ODD");
    odd["state"] = "TEMPORARILY_DEGRADED".into();
    odd["is_orderable"] = false.into();
    let store = Store::of(&[gift_card("A"), odd]);
    disable(
        &store,
        &["A", "--from", "1h", "--until", "2h", "--note", EVIL],
    );
    disable(&store, &["A", "--from", "60d"]);
    store.key(EVIL, &["--expires", "36h"]);
    store.key("lasting", &[]);
    let browsed = open(store, &[]);
    let page = browsed.page("/");
    let words = page.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for shown in [
        "2 products",
        "1 revision served here",
        "Temporarily degraded 1",
        "Not orderable 1",
        "Revision 1",
        "+2",
        "in 1 day",
        "begins",
        EVIL,
    ] {
        assert!(words.contains(shown), "{shown}: {words}");
    }
    assert!(
        !words.contains("lasting") && !words.contains("not the newest"),
        "{words}"
    );
    let links = links(&page);
    for link in [
        "/catalog?state=TEMPORARILY_DEGRADED",
        "/catalog?orderable=no",
        "/overrides#override-1",
    ] {
        assert!(links.iter().any(|one| one == link), "{link}: {links:?}");
    }
    assert!(
        !links.iter().any(|one| one == "/overrides#override-2"),
        "{links:?}"
    );
    assert_inert(&page, "/");
    let empty = open(Store::new(), &[]).page("/");
    assert!(empty.text().contains("No catalog yet"), "{}", empty.text());
}

#[test]
fn home_shows_the_catalog_while_the_store_is_away() {
    if !crate::harness::are_files("a store that is away") {
        return;
    }
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    assert_eq!(browsed.page("/").status, 200);
    let (there, away) = (
        browsed.store.path("vitrine.db"),
        browsed.store.path("away.db"),
    );
    std::fs::rename(there, away).expect("moved");
    let page = browsed.page("/");
    let words = page.text();
    assert!(
        words.contains("The store can’t be read") && words.contains("revision served here"),
        "{words}"
    );
    for target in ["/overrides", "/audit", "/revisions/compare?from=1&to=2"] {
        assert_eq!(browsed.ask(target).status, 503, "{target}");
    }
}

#[test]
fn overrides_are_listed_by_status_and_in_an_agenda() {
    let store = Store::of(&["A", "B"].map(gift_card));
    let browsed = open(store, &[]);
    assert!(
        browsed
            .page("/overrides")
            .text()
            .contains("No overrides yet")
    );
    let store = &browsed.store;
    disable(store, &["A", "--until", "3d", "--note", EVIL]);
    store.ok(&["set", "B", "discount_multiplier=0.02", "--from", "1d"]);
    store.ok(&["hide", "B", "--allow", "retire=100%"]);
    store.ok(&["overrides", "end", "3", "--note", "a mistake"]);
    let page = browsed.page("/overrides");
    let words = page.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let place = |shown: &str| {
        words
            .find(shown)
            .unwrap_or_else(|| panic!("{shown}: {words}"))
    };
    assert!(place("begins Set B") < place("ends Disable A"), "{words}");
    assert!(
        place("1 Disable A") < place("2 Set B discount_multiplier=0.02"),
        "{words}"
    );
    let agenda = place("begins Set B");
    assert!(place("2 Set B discount") < agenda, "{words}");
    assert!(agenda < place("3 Hide B"), "{words}");
    assert!(
        words.contains(EVIL) && words.contains("a mistake"),
        "{words}"
    );
    assert_inert(&page, "/overrides");
    let product = wait_for("the override", || {
        let page = browsed.page("/catalog/A");
        page.text().contains("Held by overrides").then_some(page)
    });
    assert!(
        links(&product)
            .iter()
            .any(|link| link == "/overrides#override-1")
    );
    assert_inert(&product, "/catalog/A");
}

#[test]
fn audit_log_is_filtered_by_kind_and_subject() {
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    assert!(
        browsed
            .page("/audit")
            .text()
            .contains("Nothing was changed yet")
    );
    let store = &browsed.store;
    let key = store.key(EVIL, &["--quota", "100/60"]);
    let prefix = key.split('.').next().expect("a prefix");
    store.key("other", &[]);
    set(store, "nordic", &json!({}));
    store.ok(&["keys", "revoke", "other", "--note", EVIL]);
    let rows = |target: &str| {
        let page = browsed.page(target);
        assert_inert(&page, target);
        // Without the row of the headings.
        page.tags("tr").len().saturating_sub(1)
    };
    assert_eq!(rows("/audit"), 4);
    assert_eq!(rows("/audit?kind=key"), 3);
    assert_eq!(rows("/audit?kind=assortment"), 1);
    assert_eq!(rows("/audit?kind=webhook"), 0);
    assert_eq!(rows(&format!("/audit?subject={prefix}")), 1);
    assert_eq!(rows("/audit?subject=nordic&kind=key"), 0);
    assert_eq!(rows("/audit?subject=%22%3E%3Cscript%3E"), 0);
    let page = browsed.page("/audit");
    let secret = key.split('.').nth(1).expect("a secret");
    assert!(
        page.text().contains("100/60") && !page.text().contains(secret),
        "{}",
        page.text()
    );
    for wrong in [
        "kind=lock",
        "page=0",
        "page=101",
        "page=x",
        "subject=a&subject=b",
        "by=me",
    ] {
        assert_eq!(
            browsed.ask(&format!("/audit?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
}

#[test]
fn product_page_shows_discounts_and_texts_line_by_line() {
    let mut product = gift_card("A");
    product["discount_multiplier"] = "0.0125".into();
    product["gift_card"]["content_resources"]["description_md"] = "One\nTwo\nThree\n".into();
    let store = Store::of(&[product.clone(), gift_card("B")]);
    set(&store, "own", &json!({"discounts": [{"set": "0.5"}]}));
    set(&store, "none", &json!({"allow": [{"codes": ["B"]}]}));
    let browsed = open(store, &[]);
    let changed = format!("One\n{EVIL}\nThree\n");
    product["gift_card"]["content_resources"]["description_md"] = changed.into();
    reload(&browsed, &[product, gift_card("B")], "words");
    let page = browsed.page("/catalog/A");
    let words = page.text();
    assert!(
        words.contains("1.25%") && words.contains("-Two") && words.contains(&format!("+{EVIL}")),
        "{words}"
    );
    let own = browsed.page("/catalog/A?as=own");
    assert!(
        own.text().contains("As own sees it") && own.text().contains("50.00% own"),
        "{}",
        own.text()
    );
    // The page had the JSON of a version once; such addresses lead on.
    let own = browsed.page("/catalog/A?version=2024-02-05&as=own");
    assert!(own.text().contains("50.00% own"), "{}", own.text());
    let hidden = browsed.page("/catalog/A?as=none");
    assert!(
        hidden.text().contains("none doesn’t show this product"),
        "{}",
        hidden.text()
    );
    for (wrong, status) in [
        ("as=nobody", 404),
        ("colour=red", 400),
        ("as=own&as=own", 400),
    ] {
        assert_eq!(
            browsed.ask(&format!("/catalog/A?{wrong}")).status,
            status,
            "{wrong}"
        );
    }
}

#[test]
fn keys_are_searched_and_paged() {
    let store = Store::of(&[gift_card("A")]);
    for number in 0..51 {
        store.key(&format!("Partner {number}"), &[]);
    }
    let browsed = open(store, &[]);
    let rows = |target: &str| browsed.page(target).tags("tr").len().saturating_sub(1);
    assert_eq!((rows("/keys"), rows("/keys?page=2")), (50, 1));
    assert_eq!((rows("/keys?q=PARTNER%2042"), rows("/keys?q=none")), (1, 0));
    let page = browsed.page("/keys?q=none");
    assert!(page.text().contains("No key found"), "{}", page.text());
    for wrong in ["page=0", "page=x", "q=a&q=b"] {
        assert_eq!(
            browsed.ask(&format!("/keys?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
}

#[test]
fn keys_have_a_chart_of_their_days() {
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    let key = browsed.store.key("client", &[]);
    wait_for("the key to be known", || {
        (browsed.server.get(&key, "/v2/product").status == 200).then_some(())
    });
    let charts = |browsed: &Browsed| {
        let page = browsed.page("/keys");
        let charts = page.tags("svg");
        let labels = charts
            .iter()
            .filter_map(|chart| attribute(chart, "aria-label"));
        (
            labels.map(str::to_owned).collect::<Vec<_>>(),
            page.tags("rect").len(),
        )
    };
    assert_eq!(
        charts(&browsed),
        (vec!["no requests in 30 days".to_owned()], 0)
    );
    // A server stores them when it ends.
    let Browsed { store, mut server } = browsed;
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let browsed = open(store, &[]);
    let (labels, bars) = wait_for("the requests", || {
        let found = charts(&browsed);
        (found.1 > 0).then_some(found)
    });
    let today = Timestamp::now().strftime("%Y-").to_string();
    assert!(
        labels[0].contains("requests in 30 days, the most") && labels[0].contains(&today),
        "{labels:?}"
    );
    assert_eq!(bars, 1);
}
