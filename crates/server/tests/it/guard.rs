//! The guard: a load that would turn the live catalog upside down is refused, unless that is allowed by
//! name.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text};

const RULES: [&str; 8] = [
    "retire",
    "not-orderable",
    "states",
    "emptied-lists",
    "emptied-fields",
    "currencies",
    "amounts",
    "discounts",
];

/// A hundred products, each changed by `change`, of which it tells the number.
fn products(mut change: impl FnMut(usize, &mut Value) -> bool) -> Vec<Value> {
    let products = (0..100).filter_map(|number| {
        let mut product = gift_card(&format!("P{number:03}"));
        change(number, &mut product).then_some(product)
    });
    products.collect()
}

fn all(_: usize, _: &mut Value) -> bool {
    true
}

/// Loads products over a hundred usual ones; returns the exit code, the JSON report and what is said.
fn load(store: &Store, products: &[Value], options: &[&str]) -> (i32, Value, String) {
    let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
    let file = store.write("next.ndjson", lines.join("\n"));
    let file = file.display().to_string();
    let dry = store.run(&[&["load", "--dry-run", &file], options].concat());
    let output = store.run(&[&["load", "--json", &file], options].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(
        dry.status.code(),
        output.status.code(),
        "a dry run ends as the load does: {report}"
    );
    let said = text(&dry.stdout) + &text(&dry.stderr);
    (output.status.code().expect("an end"), report, said)
}

/// Twenty of a hundred pass, one more doesn't, and does where that is allowed.
fn assert_guards(name: &str, most: usize, next: impl Fn(usize) -> Vec<Value>) {
    let store = Store::of(&products(all));
    let (exit, report, said) = load(&store, &next(most + 1), &[]);
    assert_eq!(exit, 3, "{name}: {report}");
    assert_eq!(
        (&report["applied"], &report["revision"]),
        (&json!(false), &Value::Null)
    );
    let exceeded = &report["guard"].as_array().expect("a list")[..];
    assert_eq!(exceeded.len(), 1, "{name}: {report}");
    assert_eq!(exceeded[0]["rule"], name);
    let share = format!("{}%", most + 1);
    let named = format!("--allow {name}={share}");
    assert!(said.contains(&named), "{named} in {said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(store.revisions(), 1, "{name}");

    let less = format!("{name}={most}%");
    assert_eq!(
        load(&store, &next(most + 1), &["--allow", &less]).0,
        3,
        "{name}"
    );
    for other in RULES {
        let other_name = format!("{other}=100%");
        let (exit, ..) = load(&store, &next(most + 1), &["--allow", &other_name]);
        assert_eq!(
            exit,
            if other == name { 0 } else { 3 },
            "{name} with {other}"
        );
        if other == name {
            store.ok(&["rollback", "1", "--yes"]);
        }
    }
    // What the refusal names is enough.
    let (exit, ..) = load(
        &store,
        &next(most + 1),
        &["--allow", &format!("{name}={share}")],
    );
    assert_eq!(exit, 0, "{name}");
    store.ok(&["rollback", "1", "--yes"]);
    let (exit, report, _) = load(&store, &next(most), &[]);
    assert_eq!(
        (exit, &report["guard"]),
        (0, &json!([])),
        "{name}: {report}"
    );
}

#[test]
fn more_than_a_fifth_retired_is_refused() {
    assert_guards("retire", 20, |count| products(|number, _| number >= count));
}

#[test]
fn more_than_a_fifth_made_not_orderable_is_refused() {
    assert_guards("not-orderable", 20, |count| {
        products(|number, product| {
            product["is_orderable"] = (number >= count).into();
            true
        })
    });
}

/// The hundred products, of which the first `count` have another value in a field.
fn with_field(count: usize, field: &str, value: &Value) -> Vec<Value> {
    products(|number, product| {
        if number < count {
            product[field] = value.clone();
        }
        true
    })
}

#[test]
fn feed_with_states_not_live_is_refused() {
    for state in ["TEMPORARILY_DISABLED", "TEMPORARILY_DEGRADED"] {
        assert_guards("states", 20, |count| {
            with_field(count, "state", &json!(state))
        });
    }
}

#[test]
fn feed_with_emptied_lists_is_refused() {
    for list in ["countries_redeemable_in", "categories"] {
        assert_guards("emptied-lists", 20, |count| {
            with_field(count, list, &json!([]))
        });
    }
}

#[test]
fn feed_that_empties_a_field_is_refused() {
    for field in ["/availability", "/gift_card/content_resources/locale"] {
        assert_guards("emptied-fields", 20, |count| {
            products(|number, product| {
                if number < count {
                    *product.pointer_mut(field).expect("a field") = Value::Null;
                }
                true
            })
        });
    }
}

#[test]
fn emptied_field_is_a_share_of_the_products_that_have_it() {
    let with_pages = |pages: usize, kept: usize| {
        products(|number, product| {
            let page = if number < pages && number >= pages - kept {
                json!("https://a.example/")
            } else {
                Value::Null
            };
            product["gift_card"]["balance_check_url"] = page;
            true
        })
    };
    for (pages, kept, exit) in [(9, 0, 0), (10, 8, 0), (10, 7, 3), (40, 20, 3)] {
        let store = Store::of(&with_pages(pages, pages));
        let (ended, report, said) = load(&store, &with_pages(pages, kept), &[]);
        assert_eq!(ended, exit, "{pages} {kept}: {report}");
        if exit == 3 {
            let lost = pages - kept;
            let exceeded = &report["guard"][0];
            assert_eq!(
                (&exceeded["count"], &exceeded["live"]),
                (&json!(lost), &json!(pages))
            );
            assert_eq!(exceeded["by_field"], json!({"balance_check_url": lost}));
            assert!(
                said.contains(&format!(
                    "{lost} of the {pages} live products that have a value there"
                )),
                "{said}"
            );
        }
    }
}

#[test]
fn refusal_for_an_emptied_field_names_its_products() {
    let store = Store::of(&products(all));
    let next = products(|number, product| {
        match number {
            0..20 => product["gift_card"]["content_resources"]["locale"] = Value::Null,
            50..75 => product["availability"] = Value::Null,
            _ => {}
        }
        true
    });
    let (exit, report, said) = load(&store, &next, &[]);
    let exceeded = &report["guard"][0];
    assert_eq!(
        (exit, &exceeded["by_field"], &exceeded["products"]),
        (3, &json!({"availability": 25}), &json!(25)),
        "{report}"
    );
    let named: Vec<String> = (50..60).map(|number| format!("P{number:03}")).collect();
    assert_eq!(exceeded["first_products"], json!(named));
    assert!(said.contains("P059 … and 15 more"), "{said}");
}

#[test]
fn missing_column_is_warned_of_if_products_lose_values() {
    let with_page = products(|_, product| {
        product["gift_card"]["website_url"] = json!("https://a.example/");
        product["gift_card"]["content_resources"]["description_md"] = json!("Terms");
        true
    });
    let store = Store::of(&with_page);
    let without = products(|_, product| {
        let card = product["gift_card"].as_object_mut().expect("a card");
        card.remove("website_url");
        let texts = card["content_resources"].as_object_mut();
        texts.expect("texts").clear();
        true
    });
    let (exit, report, said) = load(&store, &without, &["--allow", "emptied-fields=100%"]);
    assert_eq!(exit, 0, "{report}");
    let warned = &report["warnings"]["column_missing"];
    assert_eq!(
        (&warned["count"], &warned["examples"][0]["pointer"]),
        (&json!(1), &json!("/website_url")),
        "{said}"
    );
    // Texts stayed; to remove one, it must be null.
    let (exit, report, _) = load(&store, &products(all), &[]);
    let exceeded = &report["guard"][0];
    assert_eq!(
        (exit, &exceeded["by_field"]),
        (3, &json!({"description": 100}))
    );
    // Nothing else is lost any more, and a value of null isn't missing.
    let emptied = products(|_, product| {
        product["availability"] = Value::Null;
        true
    });
    let (exit, report, _) = load(&store, &emptied, &["--allow", "emptied-fields=100%"]);
    let warned = &report["warnings"]["column_missing"];
    assert_eq!((exit, warned), (0, &Value::Null), "{report}");
}

#[test]
fn feed_with_other_currencies_is_refused() {
    assert_guards("currencies", 5, |count| {
        with_field(count, "currency", &json!("USD"))
    });
}

#[test]
fn return_to_live_and_lists_empty_before_are_not_counted() {
    let mut before = with_field(60, "state", &json!("TEMPORARILY_DISABLED"));
    for product in &mut before[60..] {
        product["categories"] = json!([]);
    }
    let store = Store::of(&before);
    let mut after = with_field(30, "state", &json!("TEMPORARILY_DEGRADED"));
    for product in &mut after[60..] {
        product["categories"] = json!([]);
        product["name"] = json!("Another name");
    }
    let (exit, report, _) = load(&store, &after, &[]);
    assert_eq!((exit, &report["guard"]), (0, &json!([])), "{report}");
}

#[test]
fn refusal_names_first_products_and_counts_by_field() {
    let store = Store::of(&products(all));
    let next = products(|number, product| {
        if number < 30 {
            product["countries_redeemable_in"] = json!([]);
        }
        if number < 10 {
            product["categories"] = json!([]);
        }
        if number == 99 {
            product["gift_card"]["e_code_usage_type"] = Value::Null;
        }
        true
    });
    let (exit, report, said) = load(&store, &next, &[]);
    assert_eq!(exit, 3, "{report}");
    let exceeded = &report["guard"][0];
    assert_eq!(
        (&exceeded["count"], &exceeded["products"]),
        (&json!(30), &json!(30))
    );
    let named = exceeded["first_products"].as_array().expect("codes");
    assert_eq!((named.len(), &named[0]), (10, &json!("P000")));
    let by_field = json!({"categories": 10, "countries_redeemable_in": 30});
    assert_eq!(exceeded["by_field"], by_field);
    // The guard's line comes first, warnings after it.
    assert!(said.starts_with("guard: emptied-lists: "), "{said}");
    let order = [
        "products: P000, P001, ",
        "P009 … and 20 more",
        "countries_redeemable_in: 30",
        "categories: 10",
        "warning: 1 product: default used e_code_usage_type",
        "nothing was changed",
    ];
    let places = order.map(|part| {
        said.find(part)
            .unwrap_or_else(|| panic!("{part} in {said}"))
    });
    assert!(places.is_sorted(), "{places:?}: {said}");
}

#[test]
fn feed_with_amounts_changed_tenfold_is_refused() {
    // A lost decimal point: 5.00 and 50.00 become 500.00 and 5000.00.
    assert_guards("amounts", 5, |count| {
        products(|number, product| {
            if number < count {
                let denominations = product["gift_card"]["denominations"].to_string();
                let lost: Value =
                    serde_json::from_str(&denominations.replace(".00", "00")).expect("JSON");
                product["gift_card"]["denominations"] = lost;
            }
            true
        })
    });
}

#[test]
fn feed_with_discounts_changed_tenfold_is_refused() {
    let store = Store::new();
    let with_discount = |count: usize, discount: &str| {
        products(|number, product| {
            let lost = if number < count { discount } else { "0.05" };
            product["discount_multiplier"] = lost.into();
            true
        })
    };
    store.load_products(&with_discount(0, ""));
    for (count, discount, expected) in [
        (6, "0.5", 3),
        (6, "0.005", 3),
        (6, "0", 3),
        (100, "0.49", 0),
        (5, "0.5", 0),
    ] {
        let (exit, report, _) = load(&store, &with_discount(count, discount), &[]);
        assert_eq!(exit, expected, "{count} × {discount}: {report}");
        if expected == 0 {
            store.ok(&["rollback", "1", "--yes"]);
        } else {
            assert_eq!(report["guard"][0]["rule"], "discounts");
        }
    }
}

#[test]
fn merge_is_measured_against_the_whole_live_catalog() {
    let store = Store::of(&products(all));
    let mut one = gift_card("P000");
    one["gift_card"]["denominations"]["maximum_value"] = "5000.00".into();
    // Half of the amounts that it names, and a two-hundredth of those that are live.
    let (exit, report, _) = load(&store, &[one], &["--mode", "merge"]);
    assert_eq!(
        (exit, &report["counts"]["changed"]),
        (0, &json!(1)),
        "{report}"
    );
    let codes: Vec<String> = (0..21).map(|number| format!("P{number:03}\n")).collect();
    let codes = store.write("codes", codes.concat()).display().to_string();
    let merge = ["load", "--mode", "merge", "--retire-file", &codes];
    let refused = store.run(&merge);
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("--allow retire=21%"));
    store.ok(&[&merge, &["--allow", "retire=21%"][..]].concat());
}

#[test]
fn first_load_and_a_growing_catalog_are_not_guarded() {
    let store = Store::new();
    assert_eq!(load(&store, &[gift_card("A")], &[]).0, 0);
    let mut grown = products(all);
    grown.push(gift_card("A"));
    assert_eq!(load(&store, &grown, &[]).0, 0);
}

#[test]
fn senseless_allowance_is_a_wrong_command_line() {
    let store = Store::new();
    for wrong in [
        "retire",
        "retire=",
        "retire=101%",
        "retire=-1%",
        "all=100%",
        "retire=ten%",
    ] {
        let refused = store.run(&["load", "--allow", wrong, "x.json"]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {said}");
        assert!(said.contains("expected"), "{wrong}: {said}");
    }
}

#[test]
fn guarded_mirror_is_refused_and_its_metrics_show_it() {
    let original = Store::of(&[gift_card("A"), gift_card("B")]);
    let (key, server) = (original.key("mirror", &[]), original.serve());
    let base = crate::mirror_source::base(&server);
    let copy = Store::of(&[gift_card("A"), gift_card("OTHER")]);
    let metrics = copy.path("vitrine.prom");
    let mirror = |options: &[&str]| {
        let file = metrics.display().to_string();
        let options = [&["--metrics-file", &file], options].concat();
        crate::mirror_source::guarded_mirror(&copy, &base, &key, &options)
    };
    let refused = mirror(&[]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("--allow retire=50%"));
    assert_eq!(copy.revisions(), 1);
    let told = std::fs::read_to_string(&metrics).expect("metrics");
    let refusals = "vitrine_mirror_rounds_total{outcome=\"refused\"} 1\n";
    assert!(told.contains(refusals), "{told}");
    assert_eq!(mirror(&["--allow", "retire=50%"]).status.code(), Some(0));
    assert_eq!(original.ok(&["export"]), copy.ok(&["export"]));
}
