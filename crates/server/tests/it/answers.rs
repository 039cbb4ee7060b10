//! Every answer about a catalog that a client can get, so that catalogs can be compared to the byte.

use crate::harness::{Server, Store, text};

/// The public address of every store whose answers are compared.
const PUBLIC_URL: &str = "https://catalog.example";

/// Requests and the bodies of their answers.
pub type Answers = Vec<(String, String)>;

/// All answers of a store's live catalog.
pub fn of(store: &Store) -> Answers {
    let key = store.key("comparer", &[]);
    all(&store.serve_as(PUBLIC_URL), &key)
}

/// All answers of a server: every page of lists, each filter's value, each product in all forms, each text.
pub fn all(server: &Server, key: &str) -> Answers {
    let mut connection = server.keep_alive();
    let mut answers = Answers::new();
    let mut get = |target: String| {
        let reply = connection.get(key, &target).unwrap_or_else(|| {
            connection = server.keep_alive();
            connection.get(key, &target).expect("an answer")
        });
        assert_eq!(reply.status, 200, "{target}: {}", text(&reply.body));
        answers.push((target, text(&reply.body)));
        reply
    };
    get("/v2/product".to_owned());
    get("/v2/product?is_orderable=true&limit=500".to_owned());
    // Both ends of every list by one category or one country.
    let categories = get("/v2/product/categories".to_owned()).json();
    let countries = get("/v2/product/countries".to_owned()).json();
    let categories = categories["categories"].as_array().expect("a list");
    let categories = categories.iter().map(|one| ("categories", &one["code"]));
    let countries = countries["countries"].as_array().expect("a list");
    let countries = countries.iter().map(|one| ("countries_redeemable_in", one));
    for (name, value) in categories.chain(countries) {
        let bytes = value.as_str().expect("a text").bytes();
        let value: String = bytes.map(|byte| format!("%{byte:02X}")).collect();
        for cursor in ["", "&before=~~~~~~~~"] {
            get(format!("/v2/product?{name}={value}&limit=5{cursor}"));
        }
    }
    let mut codes = Vec::new();
    for limit in [500, 17] {
        codes.clear();
        let mut target = format!("/v2/product?limit={limit}");
        loop {
            let page = get(target).codes();
            let Some(last) = page.last() else { break };
            target = format!("/v2/product?limit={limit}&after={last}");
            codes.extend(page);
        }
    }
    for code in codes {
        let product = get(format!("/v2/product/{code}?content=url"));
        get(format!("/v2/product/{code}?content=md"));
        get(format!("/v2/product/{code}?content=html"));
        let product = text(&product.body);
        let own_texts = product.split(PUBLIC_URL).skip(1);
        for rest in own_texts.filter(|rest| rest.starts_with("/v2/texts/")) {
            let target = rest.split('"').next().expect("an address");
            get(target.to_owned());
        }
    }
    answers
}

/// Asserts that two catalogs give the same answers; shows the first that differ.
pub fn assert_same(found: &Answers, expected: &Answers, what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}
