//! `vitrine mirror` with sources of several API versions: it asks for the newest one, and no copy is of two versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Store, gift_card};
use crate::mirror::holds;
use crate::mirror_follow::{command, start};
use crate::mirror_source::{Fake, json as in_json, mirrored, page, target_of};

const FEED: &str = "/v2/product/changes";
const KEY: &str = "partner.s3cret";

fn is_newest(head: &str) -> bool {
    head.contains("x-api-version: 2026-12-01\r\n")
}

fn refusal() -> Vec<u8> {
    in_json("400 Bad Request", "{\"type\":\"invalid_version\"}")
}

/// A product as a version shows its discount.
fn product(code: &str, is_newest: bool) -> Value {
    let mut product = gift_card(code);
    product["discount_multiplier"] = json!(if is_newest { "0.004567" } else { "0.00" });
    product
}

fn changes(products: &[Value], next: &str, has_more: bool) -> Vec<u8> {
    let change = |product: &Value| json!({"code": product["code"], "product": product});
    let changes: Vec<Value> = products.iter().map(change).collect();
    let body = json!({"changes": changes, "next": next, "has_more": has_more});
    in_json("200 OK", &body.to_string())
}

/// Source of two products, on two pages, with a feed. It has the newest version once that is set.
fn source(has_newest: &Arc<AtomicBool>) -> Fake {
    let has_newest = Arc::clone(has_newest);
    Fake::start_by_head(move |head| {
        let (target, is_newest) = (target_of(head), is_newest(head));
        if is_newest && !has_newest.load(Ordering::Relaxed) {
            return refusal();
        }
        let products = ["A", "B"].map(|code| product(code, is_newest));
        match target {
            target if target.contains("since=") => changes(&[], "token", false),
            FEED => changes(&products, "token", false),
            target if target.ends_with("after=A") => page(&products[1..], Some("B")),
            target if target.ends_with("after=B") => page(&[], None),
            _ => page(&products[..1], Some("A")),
        }
    })
}

fn asked_for_newest(fake: &Fake) -> usize {
    let heads = fake.heads();
    heads.iter().filter(|head| is_newest(head)).count()
}

fn discounts(copy: &Store) -> Vec<String> {
    let exported = copy.ok(&["export"]);
    let discount = |line: &str| {
        let product: Value = serde_json::from_str(line).expect("a product");
        product["discount_multiplier"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    exported.lines().map(discount).collect()
}

#[test]
fn mirror_brings_all_digits_of_a_source_that_has_them() {
    let has_newest = Arc::new(AtomicBool::new(false));
    let fake = source(&has_newest);
    let copy = Store::new();
    mirrored(&copy, &fake.base(), KEY, &[]);
    assert_eq!(discounts(&copy), ["0.00"; 2]);
    assert_eq!(asked_for_newest(&fake), 1, "once for each run");
    has_newest.store(true, Ordering::Relaxed);
    // More digits of what is live are no loss of a decimal point.
    let mut again = copy.command(&["mirror", "--from", &fake.base()]);
    let output = again.env("VITRINE_MIRROR_KEY", KEY).output();
    let output = output.expect("vitrine runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(discounts(&copy), ["0.004567"; 2]);
}

#[test]
fn followed_copy_begins_anew_with_a_newer_version() {
    let has_newest = Arc::new(AtomicBool::new(false));
    let fake = source(&has_newest);
    let copy = Store::new();
    let follow = || start(&copy, command(&copy, &fake.base(), KEY, &["--every", "1s"]));
    let (errors, state) = (copy.path("errors"), copy.path("mirror.json"));
    let running = follow();
    holds(&errors, "published: revision 1: 2 created");
    holds(&state, "\"version\":\"2024-02-05\"");
    drop(running);
    // The source has still no other version: the token is good.
    let walks = || {
        let heads = fake.heads();
        let is_walk = |head: &&String| target_of(head) == FEED && !is_newest(head);
        heads.iter().filter(is_walk).count()
    };
    let walked = walks();
    let waits = || {
        let heads = fake.heads();
        heads.iter().filter(|head| head.contains("wait=")).count()
    };
    let waited = waits();
    let running = follow();
    crate::harness::wait_for("waits", || (waits() > waited + 1).then_some(()));
    drop(running);
    assert_eq!(walks(), walked);
    has_newest.store(true, Ordering::Relaxed);
    let running = follow();
    holds(&errors, "API version changed; reading its whole catalog");
    holds(&errors, "published: revision 2: 0 created, 2 changed");
    holds(&state, "\"version\":\"2026-12-01\"");
    assert_eq!(discounts(&copy), ["0.004567"; 2]);
    drop(running);
    // An older source again: the guard refuses what would be lost.
    has_newest.store(false, Ordering::Relaxed);
    let _running = follow();
    holds(&errors, "refused: refused by the guard");
    assert_eq!(discounts(&copy), ["0.004567"; 2]);
}

#[test]
fn copy_is_never_of_two_versions() {
    // A fleet in the midst of an upgrade: the first server asked is new, the others are old.
    let of_feed = Fake::start_by_head(|head| {
        let is_newest = is_newest(head);
        match target_of(head) {
            FEED if is_newest => changes(&[product("A", true)], "first", true),
            _ if is_newest => refusal(),
            FEED => changes(&[product("A", false)], "first", true),
            target if target.contains("since=first") => {
                changes(&[product("B", false)], "second", false)
            }
            _ => changes(&[], "end", false),
        }
    });
    let copy = Store::new();
    let options = [&["--every", "1s"], &ALLOW_ALL[..]].concat();
    let running = start(&copy, command(&copy, &of_feed.base(), KEY, &options));
    holds(&copy.path("errors"), "published: revision 1: 2 created");
    assert_eq!(discounts(&copy), ["0.00"; 2]);
    drop(running);
    let of_pages = Fake::start_by_head(|head| {
        let (target, is_newest) = (target_of(head), is_newest(head));
        match target {
            FEED => in_json("404 Not Found", "{\"type\":\"not_found\"}"),
            target if target.ends_with("after=A") && is_newest => refusal(),
            target if target.ends_with("after=A") => page(&[product("B", false)], Some("B")),
            target if target.ends_with("after=B") => page(&[], None),
            _ => page(&[product("A", is_newest)], Some("A")),
        }
    });
    let copy = Store::new();
    mirrored(&copy, &of_pages.base(), KEY, &[]);
    assert_eq!(discounts(&copy), ["0.00"; 2]);
}
