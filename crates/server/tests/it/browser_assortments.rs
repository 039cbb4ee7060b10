//! The catalog browser as assortments see it: the grid equals that of a catalog of what is visible, at once after an edit,
//! and products and keys name their assortments.

use serde_json::{Value, json};

use crate::assortments::{set, shows};
use crate::browser_grid::{compare, made_up};
use crate::harness::browsed::{Browsed, BrowsedPage, attribute, codes, counts, open};
use crate::harness::{Store, gift_card, text, wait_for};

/// Returns the addresses of all links that begin so.
fn links(page: &BrowsedPage, start: &str) -> Vec<String> {
    let links = page.tags("a");
    let addresses = links.iter().filter_map(|link| attribute(link, "href"));
    let addresses = addresses.filter(|address| address.starts_with(start));
    addresses.map(str::to_owned).collect()
}

/// Waits until the browser shows other products at an address.
fn wait_for_codes(browsed: &Browsed, target: &str, expected: &[&str]) {
    wait_for("the edit", || {
        (codes(&browsed.page(target)) == expected).then_some(())
    });
}

#[test]
fn grid_of_an_assortment_equals_a_naive_filter() {
    let products = made_up();
    let some: Vec<String> = (0..300).map(|number| format!("P-{number:04}")).collect();
    let assortments = [
        (
            "nordic",
            json!({"allow": [{"countries": ["SE", "NO"]}, {"codes": ["P-0599"]}], "deny": [{"categories": ["games"]}]}),
        ),
        (
            "listed",
            json!({"allow": [{"codes": some, "currencies": ["SEK"]}]}),
        ),
        ("most", json!({"deny": [{"payout_types": ["hologram"]}]})),
        ("nothing", json!({"allow": []})),
    ];
    let store = Store::of(&products);
    for (name, rules) in &assortments {
        set(&store, name, rules);
    }
    let browsed = open(store, &[]);
    for query in [
        "q=p-05&country=SE&country=DE",
        "state=LIVE&state=TEMPORARILY_DISABLED&orderable=no&category=games",
        "currency=SEK&orderable=yes",
    ] {
        // Selections and counts of one are cached while others are requested.
        compare(&browsed, &products, query);
        for (name, rules) in &assortments {
            let visible = products.iter().filter(|product| shows(rules, product));
            let visible: Vec<Value> = visible.cloned().collect();
            compare(&browsed, &visible, &format!("as={name}&{query}"));
        }
    }
    for (name, rules) in &assortments {
        let visible = products.iter().filter(|product| shows(rules, product));
        let visible: Vec<Value> = visible.cloned().collect();
        compare(&browsed, &visible, &format!("as={name}"));
    }
    let page = browsed.page("/catalog?as=nothing");
    let words = page.text();
    assert!(
        words.contains("This assortment shows no products"),
        "{words}"
    );
    assert!(words.contains("Products as nothing sees them"), "{words}");
}

#[test]
fn grid_follows_edits_of_an_assortment() {
    let store = Store::of(&["A", "B", "C", "D"].map(gift_card));
    set(&store, "few", &json!({"allow": [{"codes": ["A", "B"]}]}));
    let browsed = open(store, &[]);
    let target = "/catalog?as=few&q=product";
    assert_eq!(codes(&browsed.page(target)), ["A", "B"]);
    let rules = json!({"allow": [{"codes": ["C"]}], "discounts": [{"set": "0.0125"}]});
    set(&browsed.store, "few", &rules);
    wait_for_codes(&browsed, target, &["C"]);
    let page = browsed.page("/catalog?as=few&q=product&country=DE");
    assert_eq!(codes(&page), ["C"]);
    let all = counts(&page);
    let country = all.iter().find(|(group, ..)| group == "country");
    let expected = ("country".to_owned(), "DE".to_owned(), 1, true);
    assert_eq!(country, Some(&expected));
    let words = page.text();
    assert!(words.contains("own 1.25%"), "{words}");
    let store = &browsed.store;
    let rollback = ["assortments", "rollback", "few", "1"];
    store.ok(&[&rollback[..], &["--allow", "retire=100%"]].concat());
    wait_for_codes(&browsed, target, &["A", "B"]);
    store.ok(&["assortments", "remove", "few"]);
    wait_for("the removal", || {
        (browsed.ask(target).status == 404).then_some(())
    });
    assert!(browsed.page("/catalog").tags("datalist").is_empty());
}

#[test]
fn links_of_the_grid_keep_the_assortment() {
    let store = Store::of(&made_up());
    set(&store, "se", &json!({"allow": [{"countries": ["SE"]}]}));
    set(&store, "no", &json!({"allow": [{"countries": ["NO"]}]}));
    let browsed = open(store, &[]);
    let page = browsed.page("/catalog?as=se&q=p-0&payout_type=gift_card");
    let next = page.link("next").expect("a next page");
    assert_eq!(next, "/catalog?as=se&q=p-0&payout_type=gift_card&page=2");
    let picked = links(&page, "/catalog?");
    for without in [
        "/catalog?q=p-0&payout_type=gift_card",
        "/catalog?as=se&payout_type=gift_card",
        "/catalog?as=se&q=p-0",
    ] {
        assert!(picked.iter().any(|link| link == without), "{picked:?}");
    }
    let inputs = page.tags("input");
    let mut inputs = inputs.iter();
    let field = inputs.find(|input| attribute(input, "name") == Some("as"));
    let field = field.expect("a field of the assortment");
    assert_eq!(attribute(field, "value"), Some("se"));
    let options = page.tags("option");
    let names: Vec<&str> = options
        .iter()
        .filter_map(|option| attribute(option, "value"))
        .collect();
    assert_eq!(names, ["no", "se"]);
    // Without a name, everything is shown.
    assert_eq!(codes(&browsed.page("/catalog?as=")).len(), 100);
    let page = browsed.ask("/catalog?as=%3Cscript%3Ealert(1)%3C/script%3E");
    assert_eq!(page.status, 404);
    assert!(page.tags("script").is_empty(), "{}", text(&page.reply.body));
    let words = page.text();
    assert!(words.contains("No assortment is named <script>"), "{words}");
    assert!(words.contains("vitrine assortments list"), "{words}");
}

#[test]
fn product_page_names_the_assortments_that_show_it() {
    let mut product = gift_card("A");
    product["discount_multiplier"] = json!("0.0125");
    let store = Store::of(&[product, gift_card("B")]);
    let own = json!({"allow": [{"codes": ["A"]}], "discounts": [{"codes": ["B"], "set": "0.5"}, {"share": "0.8"}]});
    set(&store, "own", &own);
    set(&store, "list", &json!({}));
    set(&store, "other", &json!({"deny": [{"codes": ["A"]}]}));
    let browsed = open(store, &[]);
    let page = browsed.page("/catalog/A");
    assert_eq!(
        links(&page, "/catalog?"),
        ["/catalog?as=list", "/catalog?as=own"]
    );
    let (_, section) = page.text().split_once("Shown by").expect("the assortments");
    let words: Vec<&str> = section.split_whitespace().collect();
    let listed = ["AssortmentDiscount", "list1.25%", "own1.00%", "own"];
    let told = words.windows(listed.len()).any(|part| part == listed);
    assert!(told, "{words:?}");
    assert!(words.starts_with(&["2", "of", "3."]), "{words:?}");
    assert!(text(&page.reply.body).contains("discount_multiplier 0.0125"));
    let rules = json!({"deny": [{"codes": ["B"]}]});
    for name in ["list", "other"] {
        set(&browsed.store, name, &rules);
    }
    wait_for("the edits", || {
        let page = browsed.page("/catalog/B");
        page.text().contains("No assortment shows").then_some(())
    });
}

#[test]
fn keys_page_names_the_assortments_of_keys() {
    let store = Store::of(&[gift_card("A")]);
    set(&store, "nordic", &json!({}));
    store.key("partner", &["--assortment", "nordic"]);
    store.key("everything", &[]);
    let browsed = open(store, &[]);
    let page = browsed.page("/keys");
    assert_eq!(links(&page, "/catalog?"), ["/catalog?as=nordic"]);
    assert!(!page.text().contains("unknown"), "{}", page.text());
}
