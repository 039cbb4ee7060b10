//! Parameters of the changes feed: what is refused, as what, and in which order; tokens that are none.

use serde_json::Value;

use crate::harness::feed::{CHANGES, CatalogCopy, Changes, FeedServer};
use crate::harness::{Headers, Reply, Store, gift_card, text};

const BAD: &str = "bad_request";
const PAGING: &str = "pagination_error";

/// Asserts an error with these faults, each as `type name`, in order.
fn assert_faults(reply: &Reply, error: &str, expected: &[&str]) {
    let body = text(&reply.body);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (400, error),
        "{body}"
    );
    let fault = |detail: &Value| {
        assert_eq!(detail["location"][0], "query", "{body}");
        let part = |value: &Value| value.as_str().expect("a text").to_owned();
        format!("{} {}", part(&detail["type"]), part(&detail["location"][1]))
    };
    let body = reply.json();
    let found: Vec<String> = body["details"]
        .as_array()
        .expect("details")
        .iter()
        .map(fault)
        .collect();
    assert_eq!(found, expected, "{body}");
    assert_eq!(reply.header("retry-after"), None);
}

#[test]
fn wrong_parameters_are_refused_with_their_faults() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let token = served.copy("").token.expect("a token");
    let since = |more: &str| format!("since={token}{more}");
    let cases: Vec<(String, &str, &[&str])> = vec![
        (since("&wait=56"), BAD, &["out_of_range wait"]),
        (since("&wait=-1"), BAD, &["out_of_range wait"]),
        (since("&wait=256"), BAD, &["out_of_range wait"]),
        (
            since("&wait=99999999999999999999"),
            BAD,
            &["out_of_range wait"],
        ),
        (since("&wait=x"), BAD, &["invalid_value wait"]),
        (since("&wait=00"), BAD, &["invalid_value wait"]),
        (since("&wait=05"), BAD, &["invalid_value wait"]),
        (since("&limit=05"), PAGING, &["invalid_value limit"]),
        (since("&wait="), BAD, &["invalid_value wait"]),
        (since("&wait"), BAD, &["invalid_value wait"]),
        (since("&wait=1.5"), BAD, &["invalid_value wait"]),
        (since("&wait=%2B5"), BAD, &["invalid_value wait"]),
        (since("&wait=5s"), BAD, &["invalid_value wait"]),
        (since("&wait=%FF"), BAD, &["invalid_value wait"]),
        ("wait=1".to_owned(), BAD, &["invalid_value wait"]),
        ("limit=0".to_owned(), PAGING, &["out_of_range limit"]),
        ("limit=501".to_owned(), PAGING, &["out_of_range limit"]),
        (since("&limit=all"), PAGING, &["invalid_value limit"]),
        (
            since(&format!("&since={token}")),
            BAD,
            &["repeated_parameter since"],
        ),
        (since("&wait=0&wait=0"), BAD, &["repeated_parameter wait"]),
        (
            "limit=1&limit=1".to_owned(),
            BAD,
            &["repeated_parameter limit"],
        ),
        (
            "is_orderable=maybe".to_owned(),
            BAD,
            &["invalid_value is_orderable"],
        ),
        (
            "countries_redeemable_in=se".to_owned(),
            BAD,
            &["invalid_value countries_redeemable_in"],
        ),
        ("categories=".to_owned(), BAD, &["invalid_value categories"]),
        ("content=md".to_owned(), BAD, &["unknown_parameter content"]),
        ("Since=x".to_owned(), BAD, &["unknown_parameter Since"]),
    ];
    for (query, error, expected) in cases {
        let reply = served
            .server
            .get(&served.key, &format!("{CHANGES}?{query}"));
        assert_faults(&reply, error, expected);
    }
    for allowed in ["&wait=0", "&limit=500", "&limit=1"] {
        let target = format!("{CHANGES}?{}", since(allowed));
        Changes::of(&served.server.get(&served.key, &target));
    }
    let allowed = format!("{CHANGES}?wait=0&limit=500");
    Changes::of(&served.server.get(&served.key, &allowed));
}

#[test]
fn parameters_of_the_list_are_refused_with_help() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    for name in ["after", "before", "page", "cursor", "offset"] {
        let reply = served
            .server
            .get(&served.key, &format!("{CHANGES}?{name}=A"));
        assert_faults(&reply, BAD, &[&format!("unknown_parameter {name}")]);
        let help = reply.json()["help"].as_str().expect("help").to_owned();
        assert!(
            help.contains("`since`") && help.contains("`next`"),
            "{help}"
        );
    }
}

#[test]
fn all_faults_are_told_together_in_order() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let query = "wait=56&since=no&page=2&limit=0&is_orderable=x&countries_redeemable_in=1&categories=&limit=5";
    let reply = served
        .server
        .get(&served.key, &format!("{CHANGES}?{query}"));
    let expected = [
        "out_of_range wait",
        "invalid_cursor since",
        "unknown_parameter page",
        "out_of_range limit",
        "invalid_value is_orderable",
        "invalid_value countries_redeemable_in",
        "invalid_value categories",
        "repeated_parameter limit",
    ];
    assert_faults(&reply, BAD, &expected);
}

#[test]
fn text_that_is_no_token_is_an_invalid_cursor() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &[]);
    let mut walking = CatalogCopy::of("");
    walking.ask(&served.server, &served.key, "limit=1");
    let tokens = [walking.token, served.copy("").token].map(|token| token.expect("a token"));
    let mut wrong: Vec<String> = [
        "", "A", "c1_", "c1", "c2_AAAA", "null", "%00", "%FF", "c1_%20",
    ]
    .map(str::to_owned)
    .to_vec();
    for token in &tokens {
        assert!(token.starts_with("c1_"), "{token}");
        wrong.extend([3, 4, token.len() / 2, token.len() - 1].map(|end| token[..end].to_owned()));
        wrong.extend([
            format!("{token}A"),
            format!("{token}AAAA"),
            format!("{token}="),
            format!("%20{token}"),
            token.replacen("c1_", "C1_", 1),
            format!("{token}{}", "A".repeat(400)),
            // Flags that no server sets.
            format!("c1__{}", &token[4..]),
        ]);
    }
    for wrong in wrong {
        let target = format!("{CHANGES}?since={wrong}");
        let reply = served.server.get(&served.key, &target);
        assert_faults(&reply, PAGING, &["invalid_cursor since"]);
        let help = reply.json()["help"].as_str().expect("help").to_owned();
        assert!(!help.is_empty());
    }
}

/// Each byte of a token is changed: the answer is one that the law knows, and never an error of the server.
#[test]
fn forged_tokens_get_an_answer_of_the_contract() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &["--max-waits", "1"]);
    let mut walking = CatalogCopy::of("");
    walking.ask(&served.server, &served.key, "limit=1");
    let token = walking.token.clone().expect("a token");
    let mut connection = served.server.keep_alive();
    // Each unknown position lets the server look at its store, for a moment.
    for at in (3..token.len()).step_by(5) {
        let letter = if token.as_bytes()[at] == b'A' {
            "B"
        } else {
            "A"
        };
        let forged = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
        let target = format!("{CHANGES}?since={forged}");
        let reply = connection.get(&served.key, &target).expect("an answer");
        let allowed = [
            (200, None),
            (400, Some("pagination_error")),
            (410, Some("changes_gone")),
            (503, Some("unavailable")),
        ];
        let error = (reply.status != 200).then(|| reply.error());
        assert!(
            allowed.contains(&(reply.status, error.as_deref())),
            "{at}: {reply:?}"
        );
    }
}

#[test]
fn filters_in_another_order_are_the_same_filters() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let token = |query: &str| {
        let reply = served
            .server
            .get(&served.key, &format!("{CHANGES}?{query}"));
        Changes::of(&reply).next
    };
    let query = "countries_redeemable_in=DE&countries_redeemable_in=SE&categories=fashion&categories=a%26b&is_orderable=true";
    let given = token(query);
    for same in [
        "is_orderable=true&categories=a%26b&categories=fashion&countries_redeemable_in=SE&countries_redeemable_in=DE",
        "categories=fashion&categories=fashion&countries_redeemable_in=DE&countries_redeemable_in=SE&countries_redeemable_in=DE&is_orderable=true&categories=a%26b",
    ] {
        token(&format!("{same}&since={given}"));
    }
    // `false`, like its absence, gives all.
    let all = token("");
    token(&format!("is_orderable=false&since={all}"));
}

#[test]
fn token_for_other_filters_is_an_invalid_cursor() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let filters = [
        "",
        "is_orderable=true",
        "countries_redeemable_in=DE",
        "countries_redeemable_in=DE&countries_redeemable_in=SE",
        "categories=fashion",
        "categories=fashion&categories=DE",
        "categories=DE",
        "codes=DE",
        "payout_types=fashion",
        "currencies=DEM",
        "countries_redeemable_in=DE&categories=fashion",
    ];
    for made in filters {
        let reply = served.server.get(&served.key, &format!("{CHANGES}?{made}"));
        let token = Changes::of(&reply).next;
        for asked in filters {
            let target = format!("{CHANGES}?{asked}&since={token}");
            let reply = served.server.get(&served.key, &target);
            if asked == made {
                Changes::of(&reply);
                continue;
            }
            assert_faults(&reply, PAGING, &["invalid_cursor since"]);
            let help = reply.json()["help"].to_string();
            assert!(help.contains("filters"), "{help}");
        }
    }
}

#[test]
fn faults_of_since_and_wait_keep_the_order_of_the_request() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let token = served.copy("").token.expect("a token");
    for (query, error, expected) in [
        (
            format!("limit=0&since={token}&codes=A&wait=99"),
            BAD,
            &[
                "out_of_range limit",
                "invalid_cursor since",
                "out_of_range wait",
            ][..],
        ),
        (
            format!("since={token}&codes=A&limit=0"),
            PAGING,
            &["invalid_cursor since", "out_of_range limit"],
        ),
        (
            "wait=5&limit=0".to_owned(),
            BAD,
            &["invalid_value wait", "out_of_range limit"],
        ),
        // What the filters were meant to be is unknown.
        (
            format!("since={token}&is_orderable=x&codes=A"),
            BAD,
            &["invalid_value is_orderable"],
        ),
        (
            format!("since={token}&is_orderable=true&is_orderable=true"),
            BAD,
            &["repeated_parameter is_orderable"],
        ),
    ] {
        let target = format!("{CHANGES}?{query}");
        let reply = served.server.get(&served.key, &target);
        assert_faults(&reply, error, expected);
    }
}

#[test]
fn tokens_are_short_with_the_longest_codes() {
    let codes: Vec<String> = ('A'..='E')
        .map(|last| format!("{}{last}", "X".repeat(63)))
        .collect();
    let products: Vec<Value> = codes.iter().map(|code| gift_card(code)).collect();
    let served = FeedServer::of(&products, &[]);
    // The longest token: of a walk of changes.
    let mut copy = served.copy("");
    let without_last = &products[..4];
    served.load(without_last);
    served.retire_all();
    let named = copy.walk(&served.server, &served.key, "limit=1");
    assert_eq!(
        named,
        codes
            .iter()
            .map(|code| format!("-{code}"))
            .collect::<Vec<_>>()
    );
    served.settle(&mut copy);
}

#[test]
fn checks_come_in_the_order_of_all_operations() {
    let store = Store::of(&[gift_card("A")]);
    let (live, test) = (store.key("live", &[]), store.key("test", &["--test"]));
    let server = store.serve();
    let bad = format!("{CHANGES}?since=no&wait=99");
    let ask = |target: &str, headers: Headers<'_>| {
        let reply = server.send("GET", target, headers);
        (reply.status, reply.error())
    };
    let refused = |status: u16, error: &str| (status, error.to_owned());
    assert_eq!(ask(&bad, &[]), refused(401, "unauthorized"));
    let wrong = [("X-Api-Key", "vitrine_x.y"), ("X-Api-Version", "no")];
    assert_eq!(ask(&bad, &wrong), refused(401, "invalid_api_key"));
    let (live_key, test_key) = (("X-Api-Key", live.as_str()), ("X-Api-Key", test.as_str()));
    let version = ("X-Api-Version", "2023-07-27");
    let simulate = ("X-Simulate", "changes_gone");
    assert_eq!(
        ask(&bad, &[test_key, version, simulate]),
        refused(410, "version_removed")
    );
    assert_eq!(ask(&bad, &[live_key, simulate]), refused(403, "forbidden"));
    assert_eq!(
        ask(&bad, &[test_key, simulate]),
        refused(410, "changes_gone")
    );
    assert_eq!(ask(&bad, &[live_key]), refused(400, "bad_request"));
    let post = server.send("POST", CHANGES, &[live_key]);
    assert_eq!(
        (post.status, post.header("allow")),
        (405, Some("GET, HEAD"))
    );
    assert_eq!(server.get(&live, "/v2/product/changes/").status, 404);
}

#[test]
fn simulated_gone_names_the_one_cure() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("test", &["--test"]);
    let server = store.serve();
    for target in [CHANGES, "/v2/product"] {
        let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", "changes_gone")];
        let reply = server.send("GET", target, &headers);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (410, "changes_gone")
        );
        assert_eq!(reply.header("retry-after"), None);
        let help = reply.json()["help"].as_str().expect("help").to_owned();
        assert!(
            help.contains("without `since`") && help.contains("replace the copy"),
            "{help}"
        );
    }
}
