//! Tests of reading and writing rules, and of comparing them with products.

use std::sync::Arc;

use vitrine_model::assortment::{Assortment, OwnDiscount, Rules};
use vitrine_model::changes::StateId;
use vitrine_model::code::ProductCode;
use vitrine_model::facts::Facts;
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::{
    BlockBuilder, Entry, FacetNumbers, PlacedDiscount, Snapshot, TextTable,
};

use super::{Fault, MAX_BYTES, MAX_FAULTS, excesses, lines, parse, to_json, warnings};

const JSON: &str = r#"{
    "discounts": [{"codes": ["AMZ-GB"], "set": "0.0125"}, {"share": 0.80, "currencies": ["SEK"]}, {"share": "1.5"}],
    "allow": [{"countries": ["SE", "NO", "SE"], "payout_types": ["gift_card"]}, {"codes": ["B", "AMZ-GB", "B"]}, {}],
    "deny": [{"categories": ["gambling", "café \"& bistro"]}, {"codes": []}]
}"#;

const CANONICAL: &str = r#"{"allow":[{"countries":["SE","NO"],"payout_types":["gift_card"]},{"codes":["AMZ-GB","B"]},{}],"deny":[{"categories":["gambling","café \"& bistro"]},{"codes":[]}],"discounts":[{"codes":["AMZ-GB"],"set":"0.0125"},{"currencies":["SEK"],"share":"0.8"},{"share":"1.5"}]}"#;

fn faults(text: &str) -> Vec<String> {
    let faults = parse(text).expect_err("faulty rules");
    faults.iter().map(Fault::to_string).collect()
}

#[test]
fn rules_are_read_alike_in_any_spelling() {
    let rules = parse(JSON).expect("rules");
    assert_eq!(to_json(&rules), CANONICAL);
    assert_eq!(parse(CANONICAL).as_ref(), Ok(&rules));
}

#[test]
fn absent_and_empty_lists_stay_different() {
    for (text, canonical) in [
        ("{}", "{}"),
        (r#"{"allow":[],"deny":[]}"#, r#"{"allow":[]}"#),
        (r#"{"allow":[{"codes":[]}]}"#, r#"{"allow":[{"codes":[]}]}"#),
    ] {
        let rules = parse(text).expect("rules");
        assert_eq!(to_json(&rules), canonical);
    }
}

#[test]
fn all_faults_are_told_with_places_and_suggestions() {
    let text = r#"{
        "alow": [],
        "allow": [{}, {"countries": ["se", "UK", "XX", 7], "country": []}],
        "deny": [{"codes": ["A B", null], "currencies": ["eur", "EURO"]}, [], {"payout_types": ["gift-card", "?"]}],
        "discounts": [{}, {"set": "0.1", "share": "1"}, {"set": "1.1"}, {"share": "0.1234567"}, {"set": true}, {"share": 1e2}, 5]
    }"#;
    let found = faults(text);
    let expected = [
        "alow: unknown member; did you mean `allow`?",
        "allow[1].country: unknown member; did you mean `countries`?",
        "allow[1].countries[0]: expected the ISO 3166-1 alpha-2 code of a country, two capitals such as `GB`; found `\"se\"`; did you mean `SE`?",
        "allow[1].countries[1]: expected the ISO 3166-1 alpha-2 code of a country, two capitals such as `GB`; found `\"UK\"`; did you mean `GB`?",
        "allow[1].countries[2]: expected the ISO 3166-1 alpha-2 code of a country, two capitals such as `GB`; found `\"XX\"`",
        "allow[1].countries[3]: expected a string; found `7`",
        "deny[0].codes[0]: expected 1 to 64 characters out of A-Z, a-z, 0-9, `.`, `_`, `~` and `-`; found `\"A B\"`",
        "deny[0].codes[1]: expected a string; found `null`",
        "deny[0].currencies[0]: expected the ISO 4217 code of a currency, three capitals such as `EUR`; found `\"eur\"`; did you mean `EUR`?",
        "deny[0].currencies[1]: expected the ISO 4217 code of a currency, three capitals such as `EUR`; found `\"EURO\"`",
        "deny[1]: expected an object with some of `codes`, `categories`, `countries`, `currencies`, `payout_types`; found `[]`",
        "discounts[0]: expected `set` or `share`; found neither",
        "discounts[1]: expected either `set` or `share`; found both",
        "discounts[2].set: expected a decimal from 0 to 1 with a point and at most six digits behind it, such as `0.0125`; found `\"1.1\"`",
        "discounts[3].share: expected a decimal from 0 to 1000 with a point and at most six digits behind it, such as `0.8`; found `\"0.1234567\"`",
        "discounts[4].set: expected a decimal, as a string such as `\"0.0125\"`; found `true`",
        "discounts[5].share: expected a decimal from 0 to 1000 with a point and at most six digits behind it, such as `0.8`; found `1e2`",
    ];
    for fault in expected {
        assert!(
            found.iter().any(|found| found == fault),
            "{fault}: {found:#?}"
        );
    }
    let payout_types = found
        .iter()
        .filter(|fault| fault.starts_with("deny[2].payout_types["));
    let payout_types: Vec<&String> = payout_types.collect();
    assert!(
        payout_types[0].ends_with("did you mean `gift_card`?"),
        "{payout_types:?}"
    );
    assert!(
        payout_types[1].ends_with("found `\"?\"`"),
        "{payout_types:?}"
    );
    assert!(
        found
            .last()
            .is_some_and(|last| last.starts_with("discounts[6]: expected an object"))
    );
    assert_eq!(found.len(), expected.len() + 3, "{found:#?}");
}

#[test]
fn repeated_members_are_faults() {
    let found = faults(r#"{"allow":[{"codes":["A"],"codes":[]}],"deny":[{"set":1}]}"#);
    assert_eq!(
        found[0],
        "allow[0].codes: expected each key once; found `[]`"
    );
    assert!(
        found[1].starts_with("deny[0].set: unknown member"),
        "{found:?}"
    );
}

#[test]
fn limits_are_refused_with_the_number_found() {
    let many = |item: &str, count: usize| vec![item; count].join(",");
    let text = format!(
        r#"{{"deny":[{}],"discounts":[{{"set":"0"}}]}}"#,
        many("{}", Rules::MAX_SELECTORS)
    );
    assert_eq!(
        faults(&text),
        ["expected at most 1000 selectors in all; there are 1001"]
    );
    let codes: Vec<String> = (0..=Rules::MAX_CODES)
        .map(|code| format!("\"{code}\""))
        .collect();
    let text = format!(r#"{{"allow":[{{"codes":[{}]}}]}}"#, codes.join(","));
    assert_eq!(
        faults(&text),
        ["expected at most 100000 codes in all; there are 100001"]
    );
    let text = format!(r#"{{"allow":[{}]}}"#, many("1", 1_500));
    let found = faults(&text);
    assert_eq!(found.len(), MAX_FAULTS + 1);
    // These, and the number of selectors.
    assert_eq!(found[MAX_FAULTS], "501 further faults aren't shown");
    let text = " ".repeat(MAX_BYTES + 1);
    assert_eq!(faults(&text).len(), 1);
}

#[test]
fn hostile_texts_are_refused_without_control_characters() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = "{\"allow\":".repeat(100_000);
    let steering =
        "{\"\\u001b]0;x\\u0007\\u202e\":1,\"deny\":[{\"codes\":[\"\\u0000\",\"\\u001b\"]}]}";
    let long = format!(r#"{{"{}":1}}"#, "x".repeat(100_000));
    for text in [
        &deep,
        &objects,
        steering,
        &long,
        "\u{1b}",
        "",
        "nul",
        "\u{feff}{}",
        "{\"allow\":",
    ] {
        let Err(faults) = parse(text) else {
            continue;
        };
        for fault in faults {
            let shown = fault.to_string();
            assert!(!shown.contains(crate::escape::is_steering), "{shown:?}");
            assert!(shown.len() < 6_000, "{}", shown.len());
        }
    }
    assert!(parse(&deep).is_err());
    assert!(parse(steering).is_err());
}

/// Returns selectors with each list absent, empty and filled, in all combinations.
fn selectors() -> Vec<Selector> {
    let mut selectors = Vec::new();
    for number in 0..243 {
        let state = |place: u32| number / 3_usize.pow(place) % 3;
        fn list<T: Clone>(state: usize, values: &[T]) -> Option<Vec<T>> {
            [None, Some(Vec::new()), Some(values.to_vec())][state].clone()
        }
        let codes = ["Z~", "A-1"].map(|code| code.parse::<ProductCode>().expect("a code"));
        let names = ["café \"& bistro\\", "\u{1b}\u{202e}"].map(str::to_owned);
        let countries = ["SE", "NO"].map(|code| code.parse().expect("a country"));
        let currencies = ["SEK", "EUR"].map(|code| code.parse().expect("a currency"));
        let payout_types = ["gift_card", "x_1"].map(|name| name.parse().expect("a payout type"));
        selectors.push(Selector {
            codes: list(state(0), &codes).map(FromIterator::from_iter),
            categories: list(state(1), &names),
            countries: list(state(2), &countries),
            currencies: list(state(3), &currencies),
            payout_types: list(state(4), &payout_types),
            ..Selector::default()
        });
    }
    selectors
}

#[test]
fn written_rules_are_read_as_the_same() {
    use vitrine_model::assortment::DiscountChange::{Set, Share};
    let changes = [
        Set("0.0125".parse().expect("a discount")),
        Set("1".parse().expect("a discount")),
        Share("0.000001".parse().expect("a share")),
        Share("1000".parse().expect("a share")),
    ];
    let changes = changes.into_iter().cycle();
    let discounts = selectors().into_iter().zip(changes);
    let discounts = discounts.map(|(selector, change)| OwnDiscount { selector, change });
    let discounts: Vec<OwnDiscount> = discounts.collect();
    for allow in [None, Some(Vec::new()), Some(selectors())] {
        for deny in [Vec::new(), selectors()] {
            for discounts in [&[], &discounts[..]] {
                let rules = Rules {
                    allow: allow.clone(),
                    deny: deny.clone(),
                    discounts: discounts.to_vec(),
                };
                let json = to_json(&rules);
                assert_eq!(parse(&json).as_ref(), Ok(&rules), "{json}");
            }
        }
    }
}

/// Returns a snapshot of products with these codes, each of Sweden, with a discount of a half.
fn snapshot(codes: &[&str]) -> Arc<Snapshot> {
    let mut numbers = FacetNumbers::default();
    let facets = numbers.facets_of(&Facts {
        is_orderable: true,
        currency: "SEK".parse().expect("a currency"),
        payout_type: "gift_card",
        countries: &["SE".parse().expect("a country")],
        categories: &["Books & more".into()],
    });
    let mut builder = BlockBuilder::default();
    for code in codes {
        let entry = Entry {
            code: &code.parse().expect("a code"),
            bytes: b"$0.50",
            content: None,
            discount: Some(PlacedDiscount {
                exact: "0.5".parse().expect("a discount"),
                start: 1,
            }),
            facets: &facets,
            words: "",
        };
        builder.push(&entry).expect("ascending");
    }
    let blocks = vec![builder.finish().expect("a block")];
    let (numbers, texts) = (Arc::new(numbers), TextTable::default());
    Arc::new(Snapshot::new(Revision::default(), numbers, blocks, texts).expect("a snapshot"))
}

#[test]
fn names_without_products_are_warned_of_with_suggestions() {
    let snapshot = snapshot(&["AMZ-DE", "AMZ-GB", "ZZ"]);
    let text = r#"{
        "allow": [{"codes": ["AMZ-GB", "amz-gb", "AMZ-FR", "QQQ"]}, {"countries": ["SE", "NO"], "currencies": ["EUR"]}],
        "deny": [{"categories": ["books & mor", "Books & more", "\u001b"]}],
        "discounts": [{"countries": ["DK"], "set": "1"}]
    }"#;
    let rules = parse(text).expect("rules");
    let found: Vec<String> = warnings(&rules, &snapshot)
        .iter()
        .map(Fault::to_string)
        .collect();
    let expected = [
        "allow[0].codes: no product has the code `AMZ-FR`; did you mean `AMZ-DE`?",
        "allow[0].codes: no product has the code `QQQ`",
        "allow[0].codes: no product has the code `amz-gb`; did you mean `AMZ-GB`?",
        "allow[1].countries: no product has the country `NO`",
        "deny[0].categories: no product has the category `books & mor`; did you mean `Books & more`?",
        "deny[0].categories: no product has the category `\\u001b`",
        "discounts[0].countries: no product has the country `DK`",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        // Neighbours are equally like the third code.
        let expected = expected
            .split("; did you mean `AMZ-DE`")
            .next()
            .unwrap_or(expected);
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn discounts_above_one_are_told_with_their_products() {
    let snapshot = snapshot(&["A", "B", "C", "D"]);
    let text = r#"{
        "deny": [{"codes": ["D"]}],
        "discounts": [{"codes": ["A"], "share": "2"}, {"codes": ["A", "B"], "share": "2.1"}, {"share": "3"}]
    }"#;
    let told = |text: &str| {
        let rules = parse(text).expect("rules");
        let assortment = Assortment::new("partner".to_owned(), StateId::default(), rules);
        let faults = excesses(&assortment.view(&snapshot), &snapshot);
        faults.iter().map(Fault::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        told(text),
        [
            "discounts[1].share: the discount of `B` would be above 1",
            "discounts[2].share: the discount of `C` would be above 1",
        ]
    );
    assert_eq!(
        told(r#"{"discounts": [{"share": "3"}]}"#),
        ["discounts[0].share: the discount of `A` and 3 more would be above 1"]
    );
}

#[test]
fn faults_have_lines() {
    let json = "{\n\"allow\": [\n  {\"countries\": [\"SE\",\n    \"XX\"]},\n  {\"codez\": []}],\n\"discounts\": [{\n  \"share\": \"2000\"}]\n}";
    let places = [
        "allow[0].countries[1]",
        "allow[1].codez",
        "discounts[0].share",
    ];
    let faults = parse(json).expect_err("faulty rules");
    let found: Vec<&str> = faults.iter().map(|fault| &*fault.place).collect();
    assert_eq!(found, places);
    assert_eq!(lines(json, &faults), [4, 5, 7].map(Some));
    for (text, line) in [("{\n\"allow\": [\n}", Some(3)), ("[]", None)] {
        let faults = parse(text).expect_err("no rules");
        assert_eq!(lines(text, &faults)[0], line, "{text}");
    }
}
