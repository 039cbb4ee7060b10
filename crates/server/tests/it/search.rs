//! Searches of the list: what a person typed.

use serde_json::{Value, json};

use crate::harness::{Server, Store, gift_card, wait_for};

fn named(code: &str, name: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = json!(name);
    product
}

/// Returns the codes that a query finds.
fn found(server: &Server, key: &str, query: &str) -> Vec<String> {
    server.get(key, &format!("/v2/product?{query}")).codes()
}

#[test]
fn words_of_names_and_codes_are_found() {
    let mut crème = named("CREME-SE", "Crème Brûlée & Café");
    crème["is_orderable"] = json!(false);
    let store = Store::of(&[
        named("MCD-GB", "McDonald\u{2019}s"),
        crème,
        named("HM-SE", "H&M \"gift\" 礼品卡"),
    ]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (query, expected) in [
        ("q=mcdonalds", &["MCD-GB"] as &[_]),
        ("q=cafe+creme", &["CREME-SE"]),
        ("q=CAF%C3%89", &["CREME-SE"]),
        ("q=se", &["CREME-SE", "HM-SE"]),
        ("q=se&is_orderable=true", &["HM-SE"]),
        ("q=se&codes=CREME-SE&codes=MCD-GB", &["CREME-SE"]),
        ("q=h%26m+gift", &["HM-SE"]),
        ("q=%E5%93%81", &["HM-SE"]),
        ("q=%20%20gift%20", &["HM-SE"]),
        ("q=onald", &[]),
        ("q=%21%21", &[]),
    ] {
        assert_eq!(found(&server, &key, query), expected, "{query}");
    }
    for (query, kind) in [
        ("q=", "invalid_value"),
        ("q=%20", "invalid_value"),
        ("q=a+b+c+d+e+f+g+h+i", "invalid_value"),
        ("q=%FF", "invalid_value"),
        ("q=a&q=b", "repeated_parameter"),
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!(reply.error(), "bad_request", "{query}");
        assert_eq!(reply.json()["details"][0]["type"], kind, "{query}");
    }
    for (target, help) in [
        ("/v2/product?search=x", "`q`"),
        (
            "/v2/product/changes?q=x",
            "a copy is searched where it is kept",
        ),
    ] {
        let body = server.get(&key, target).json();
        assert!(
            body["help"].as_str().expect("help").contains(help),
            "{body}"
        );
        assert_eq!(body["details"][0]["type"], "unknown_parameter");
    }
}

#[test]
fn walk_of_a_search_misses_nothing_while_the_catalog_changes() {
    let catalog = |edition: usize| {
        let product = |number: usize| match number % 3 {
            0 => named(&format!("P{number:04}"), "Always found"),
            // Found in every second edition.
            1 if (number / 3 + edition).is_multiple_of(2) => {
                named(&format!("P{number:04}"), "Found")
            }
            _ => named(&format!("P{number:04}"), "Other"),
        };
        (0..900).map(product).collect::<Vec<_>>()
    };
    let store = Store::of(&catalog(0));
    let key = store.key("partner", &[]);
    let directory = store.path("state").display().to_string();
    let serve = || store.serve_with(&["--state-dir", &directory]);
    let server = serve();
    let (mut walked, mut edition) = (Vec::new(), 0);
    let mut next = Some("q=found&limit=40".to_owned());
    while let Some(query) = next {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        walked.extend(reply.codes());
        let link = reply.header("link").unwrap_or_default().to_owned();
        let links = link.split(", ").find(|link| link.contains("rel=\"next\""));
        next = links.and_then(|link| Some(link.strip_prefix("<?")?.split('>').next()?.to_owned()));
        edition += 1;
        server.wait_for_loaded(&store.load_products(&catalog(edition)));
    }
    assert!(
        walked.is_sorted_by(|left, right| left < right),
        "{walked:?}"
    );
    let always = (0..900).step_by(3).map(|number| format!("P{number:04}"));
    assert!(always.into_iter().all(|code| walked.contains(&code)));
    // Changed blocks, a start from the file and an override find the same words.
    server.wait_for_loaded(&store.load_products(&catalog(edition + 1)));
    let newly = found(&server, &key, "q=other+p0002");
    assert_eq!(newly, ["P0002"]);
    store.ok(&["set", "P0002", "is_orderable=false", "--yes"]);
    wait_for("the override", || {
        let orderable = found(&server, &key, "q=other+p0002&is_orderable=true");
        orderable.is_empty().then_some(())
    });
    assert_eq!(found(&server, &key, "q=other+p0002"), ["P0002"]);
    let before = found(&server, &key, "q=found");
    wait_for("the snapshot file", || {
        server
            .stderr()
            .contains("the snapshot file is written")
            .then_some(())
    });
    drop(server);
    assert_eq!(found(&serve(), &key, "q=found"), before);
}

#[test]
fn search_finds_only_what_the_assortment_shows() {
    let store = Store::of(&[
        named("A-SE", "Gift"),
        named("B-GB", "Gift"),
        named("C-SE", "Other"),
    ]);
    let rules = store.write("rules.json", r#"{"allow": [{"codes": ["A-SE", "C-SE"]}]}"#);
    store.ok(&["assortments", "set", "nordic", &rules.display().to_string()]);
    let key = store.key("partner", &["--assortment", "nordic"]);
    let server = store.serve();
    assert_eq!(found(&server, &key, "q=gift"), ["A-SE"]);
    assert_eq!(found(&server, &key, "q=gift+gb"), [""; 0]);
}
