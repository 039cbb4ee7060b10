//! Work of one request of the changes feed: it is bounded, whoever sees whatever changed (docs/contract/changes.md#limits).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::assortments::set;
use crate::changes::named;
use crate::changes_waits::{ADMIN, begin, end, wait_for_waits};
use crate::harness::feed::{CatalogCopy, Changes, FeedServer, Refusal, aged, refusal};
use crate::harness::{Reply, Server, Store, gift_card, wait_for};

const PUBLIC_URL: [&str; 2] = ["--public-url", "https://catalog.example"];

/// Serves a store with this limit of a search: products and milliseconds.
fn serve(store: &Store, limit: &str) -> Server {
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(PUBLIC_URL).args(ADMIN);
    command.env("VITRINE_SEARCH_LIMIT", limit);
    Server::start(command)
}

fn served(products: &[Value], limit: &str) -> FeedServer {
    let store = Store::of(products);
    let key = store.key("reader", &[]);
    let server = serve(&store, limit);
    FeedServer { store, key, server }
}

/// A number that is in the code of each product, and its name.
fn products(name: &str) -> Vec<Value> {
    (0..10)
        .map(|number| named(&format!("P{number}"), name))
        .collect()
}

/// Walks until there is no more; returns what each answer names.
fn pages(server: &Server, key: &str, copy: &mut CatalogCopy) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        pages.push(copy.ask(server, key, ""));
        if !copy.is_walking() {
            return pages;
        }
        assert!(pages.len() < 100, "it doesn't advance: {pages:?}");
    }
}

#[test]
fn walk_looks_at_so_many_products_an_answer() {
    // The time may be over at once: then it is one product an answer.
    for (limit, products_an_answer) in [("1/60000", 1), ("4/60000", 4), ("10000/0", 1)] {
        let served = served(&products("old"), limit);
        let mut everything = served.copy("");
        let codes = "codes=P3&codes=P7";
        let mut some = served.copy(codes);
        let mut none = served.copy("countries_redeemable_in=SE");
        served.load(&products("new"));
        let found = pages(&served.server, &served.key, &mut everything.clone());
        let expected: Vec<String> = (0..10).map(|number| format!("P{number}")).collect();
        assert_eq!(found.concat(), expected, "{limit}");
        let most = found.iter().map(Vec::len).max();
        assert_eq!(most, Some(products_an_answer), "{limit}: {found:?}");
        let found = pages(&served.server, &served.key, &mut none.clone());
        assert_eq!(found.concat(), [""; 0]);
        assert_eq!(
            found.len(),
            10_usize.div_ceil(products_an_answer),
            "{limit}"
        );
        for copy in [&mut everything, &mut some, &mut none] {
            served.settle(copy);
        }
    }
}

/// Rules that show these products.
fn shows(codes: &[&str]) -> Value {
    json!({"allow": [{"codes": codes}]})
}

/// A server whose key sees `P5` only, with many former versions of its rules.
fn hidden(limit: &str, versions: usize) -> (FeedServer, String) {
    let store = Store::of(&products("old"));
    for number in 0..versions {
        set(&store, "partner", &shows(&["P5", &format!("Q{number}")]));
    }
    set(&store, "partner", &shows(&["P5"]));
    let partner = store.key("partner", &["--assortment", "partner"]);
    let key = store.key("reader", &[]);
    let server = serve(&store, limit);
    (FeedServer { store, key, server }, partner)
}

#[test]
fn token_names_no_product_that_its_key_never_saw() {
    let (served, partner) = hidden("1/60000", 3);
    let mut copy = CatalogCopy::of("");
    copy.settle(&served.server, &partner);
    served.load(&products("new"));
    let (mut seen, mut naming) = (Vec::new(), 0);
    loop {
        seen.extend(copy.ask(&served.server, &partner, ""));
        let token = copy.token.clone().expect("a token");
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_start_matches("c1_"));
        let text = String::from_utf8_lossy(&bytes.expect("base64")).into_owned();
        let names = |number: u8| number != 5 && text.contains(&format!("P{number}"));
        naming += usize::from((0..10).any(names));
        if !copy.is_walking() {
            break;
        }
    }
    assert_eq!(seen, ["P5"]);
    // Sealed bytes read like one of the two-letter codes now and then.
    assert!(naming < 3, "{naming} tokens name products");
    copy.settle(&served.server, &partner);
}

#[test]
fn walk_goes_on_at_another_server_but_not_with_a_forged_place() {
    let (served, partner) = hidden("1/60000", 0);
    let mut copy = CatalogCopy::of("");
    copy.settle(&served.server, &partner);
    served.load(&products("new"));
    assert_eq!(copy.ask(&served.server, &partner, ""), [""; 0]);
    let forged = copy.token.as_deref().map(|token| {
        let bytes = URL_SAFE_NO_PAD.decode(aged(token, 60).trim_start_matches("c1_"));
        let mut bytes = bytes.expect("base64");
        *bytes.last_mut().expect("a byte") ^= 1;
        format!("c1_{}", URL_SAFE_NO_PAD.encode(bytes))
    });
    let forged = copy.with_token(forged);
    let reply = served.server.get(&partner, &forged.target(""));
    assert_eq!(refusal(&reply), Some(Refusal::Gone));
    let other = serve(&served.store, "10000/60000");
    assert_eq!(copy.walk(&other, &partner, ""), ["P5"]);
    copy.settle(&other, &partner);
}

#[test]
fn former_rules_are_told_however_many_there_are() {
    for limit in ["1/60000", "10000/60000"] {
        let (served, partner) = hidden(limit, 0);
        let mut copy = CatalogCopy::of("");
        copy.settle(&served.server, &partner);
        // What a former version showed for a while is told as removed; nothing else is.
        for number in 0..20 {
            let briefly = format!("P{}", if number == 11 { 8 } else { 3 });
            let rules = json!({"allow": [{"codes": ["P5"]}, {"codes": [briefly], "countries": ["DE"]}],
                          "deny": [{"codes": [format!("Q{number}")]}]});
            set(&served.store, "partner", &rules);
        }
        set(&served.store, "partner", &shows(&["P5"]));
        served.store.load_products(&products("new"));
        wait_for("the load and the edits", || {
            let named = copy.clone().walk(&served.server, &partner, "");
            (named == ["-P3", "P5", "-P8"]).then_some(())
        });
        copy.settle(&served.server, &partner);
    }
}

/// Requests left of a quota.
fn left(reply: &Reply) -> String {
    let limit = reply.header("ratelimit").expect("RateLimit");
    let (_, rest) = limit.split_once(";r=").expect("what is left");
    rest.split(';').next().expect("a number").to_owned()
}

#[test]
fn answers_with_more_cost_quota_and_exhausted_ones_no_search() {
    let served = served(&products("old"), "9/60000");
    let key = served.store.key("small", &["--quota", "3/36000"]);
    let copy = served.copy("countries_redeemable_in=SE");
    served.load(&products("new"));
    let ask = |copy: &CatalogCopy| served.server.get(&key, &copy.target(""));
    wait_for("the key", || {
        (served.server.get(&key, "/v2/ping").status != 401).then_some(())
    });
    let mut walking = copy.clone();
    for expected in ["1", "1"] {
        // One of the quota went to the ping. The walk's first answer has more, its last one is empty.
        let reply = ask(&walking);
        assert_eq!(walking.apply(&reply).named(), [""; 0]);
        assert_eq!(left(&reply), expected);
    }
    assert!(!walking.is_walking());
    let reply = ask(&copy);
    assert_eq!((reply.status, left(&reply).as_str()), (200, "0"));
    for copy in [&copy, &walking] {
        let refused = ask(copy);
        assert_eq!(refused.status, 429);
    }
}

#[test]
fn catalog_that_changes_during_a_walk_is_followed_to_its_end() {
    // The filter selects the first product only: the walk ends among the others.
    let all = |name: &str, first: &str| {
        let mut all = products(name);
        all[0] = named("P0", first);
        all[0]["categories"] = json!(["first"]);
        all
    };
    let served = served(&all("old", "old"), "1/60000");
    let mut copy = served.copy("categories=first");
    served.load(&all("new", "new"));
    assert_eq!(copy.ask(&served.server, &served.key, ""), ["P0"]);
    assert!(copy.is_walking());
    served.load(&all("new", "newer"));
    // An empty answer without more says that the copy is the list.
    let mut named = Vec::new();
    loop {
        let answer = copy.apply(&served.ask(&copy, ""));
        named.extend(answer.named());
        if answer.changes.is_empty() && !answer.has_more {
            break;
        }
    }
    assert_eq!(named, ["P0"]);
    served.settle(&mut copy);
}

#[test]
fn copy_begins_in_answers_of_few_blocks() {
    let all: Vec<Value> = (0..600)
        .map(|number| gift_card(&format!("P{number:03}")))
        .collect();
    let served = served(&all, "1/60000");
    let mut copy = CatalogCopy::of("");
    let found = pages(&served.server, &served.key, &mut copy);
    assert!(found.len() >= 3, "{}", found.len());
    assert_eq!(copy.products.len(), 600);
    let mut none = CatalogCopy::of("codes=P599");
    assert_eq!(
        pages(&served.server, &served.key, &mut none).concat(),
        ["P599"]
    );
    served.settle(&mut copy);
}

#[test]
fn woken_wait_that_finds_nothing_visible_keeps_waiting() {
    // One product a turn.
    let served = served(&products("old"), "10/60000");
    let mut copies = ["codes=P9", "countries_redeemable_in=SE"].map(|filter| served.copy(filter));
    let waits = copies
        .each_ref()
        .map(|copy| begin(&served.server, &served.key, copy, 55));
    wait_for_waits(&served.server, 2);
    for name in ["newer", "newest"] {
        let mut newer = products(name);
        newer[9] = named("P9", "old");
        served.load(&newer);
        wait_for_waits(&served.server, 2);
    }
    served.store.load_products(&products("last"));
    let [told, untold] = waits;
    let answer = copies[0].apply(&end(told));
    let mut named = answer.named();
    if answer.has_more {
        named.extend(copies[0].walk(&served.server, &served.key, ""));
    }
    assert_eq!(named, ["P9"]);
    wait_for_waits(&served.server, 1);
    drop(untold);
    copies.iter_mut().for_each(|copy| served.settle(copy));
}

#[test]
fn equal_waits_of_many_keys_end_with_one_change() {
    let store = Store::of(&products("old"));
    let keys: Vec<String> = (0..5)
        .map(|number| store.key(&format!("k{number}"), &[]))
        .collect();
    let server = serve(&store, "10/60000");
    let served = FeedServer {
        store,
        key: keys[0].clone(),
        server,
    };
    let copy = served.copy("codes=P7");
    let waits: Vec<_> = (0..40)
        .map(|number| begin(&served.server, &keys[number % keys.len()], &copy, 55))
        .collect();
    wait_for_waits(&served.server, 40);
    served.load(&products("new"));
    for wait in waits {
        assert_eq!(Changes::of(&end(wait)).named(), ["P7"]);
    }
    wait_for_waits(&served.server, 0);
}
