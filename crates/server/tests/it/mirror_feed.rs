//! `vitrine mirror --follow` with sources of which a test says what they answer: feeds that end in the midst, have none, or
//! break the contract.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Store, gift_card, text, wait_for};
use crate::mirror::holds;
use crate::mirror_follow::{command, start};
use crate::mirror_source::{Fake, answer, json as in_json, page};

const FEED: &str = "/v2/product/changes";
const KEY: &str = "partner.S3CRETs3cretS3CRETs3cret";

fn options(every: &'static str) -> Vec<&'static str> {
    [&["--every", every, "--retries", "0"], &ALLOW_ALL[..]].concat()
}

fn named(code: &str, name: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = json!(name);
    json!({"code": code, "product": product})
}

fn changes(changes: &[Value], next: &str, has_more: bool) -> Vec<u8> {
    let body = json!({"changes": changes, "next": next, "has_more": has_more});
    in_json("200 OK", &body.to_string())
}

/// An answer that never changes anything: the client has to pause.
fn nothing(next: &str) -> Vec<u8> {
    changes(&[], next, false)
}

#[test]
fn copies_of_several_moments_are_not_published() {
    let fake = Fake::start(|target| {
        let token = target.split_once("since=").map(|(_, rest)| rest);
        match token.map(|token| token.split('&').next().unwrap_or_default()) {
            None => changes(&[named("A", "old"), named("B", "old")], "first", true),
            Some("first") => changes(&[named("C", "new")], "walked", false),
            Some("walked") => {
                let gone = json!({"code": "B", "product": null});
                changes(&[named("A", "new"), gone], "mended", false)
            }
            // Nothing more: now it is a copy of one moment. What follows is, each by itself.
            Some("mended") if !target.contains("wait=") => nothing("rest"),
            Some("rest") => changes(&[named("D", "newer")], "second", false),
            Some("second") => changes(&[named("E", "newest")], "page", true),
            Some("page") => changes(&[named("F", "newest")], "end", false),
            Some("end") if !target.contains("wait=") => nothing("last"),
            _ => nothing("last"),
        }
    });
    let copy = Store::new();
    let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
    let errors = copy.path("errors");
    for summary in [
        "published: revision 1: 2 created, 0 changed, 0 retired, 0 unchanged",
        "published: revision 2: 1 created, 0 changed, 0 retired, 0 unchanged",
        "published: revision 3: 2 created, 0 changed, 0 retired, 0 unchanged",
    ] {
        holds(&errors, summary);
    }
    let exported = copy.ok(&["export"]);
    assert!(
        !exported.contains("\"old\"") && !exported.contains("\"B\""),
        "{exported}"
    );
    // Answers that come at once don't make it ask in a loop.
    let is_waiting = |head: &&String| head.contains("wait=45");
    wait_for("a wait", || {
        fake.heads()
            .iter()
            .any(|head| is_waiting(&head))
            .then_some(())
    });
}

#[test]
fn empty_answers_with_more_are_followed() {
    let fake = Fake::start(|target| {
        let token = target.split_once("since=").map(|(_, rest)| rest);
        match token.map(|token| token.split('&').next().unwrap_or_default()) {
            None => changes(&[named("A", "old")], "first", false),
            // Thousands of products changed that this key doesn't see.
            Some("first") => changes(&[], "second", true),
            Some("second") if !target.contains("wait=") => changes(&[], "third", true),
            Some("third") if !target.contains("wait=") => {
                changes(&[named("B", "new")], "walked", false)
            }
            _ => nothing("walked"),
        }
    });
    let copy = Store::new();
    let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
    let errors = copy.path("errors");
    for summary in [
        "published: revision 1: 1 created, 0 changed, 0 retired, 0 unchanged",
        "published: revision 2: 1 created, 0 changed, 0 retired, 0 unchanged",
    ] {
        holds(&errors, summary);
    }
}

#[test]
fn source_without_feed_is_polled_until_it_has_one() {
    for absent in [
        in_json("404 Not Found", "{\"type\":\"not_found\"}"),
        answer("405 Method Not Allowed", ""),
    ] {
        let (has_feed, is_new) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (feed, new) = (Arc::clone(&has_feed), Arc::clone(&is_new));
        let fake = Fake::start(move |target| {
            let name = if new.load(Ordering::Relaxed) {
                "new"
            } else {
                "old"
            };
            let product = named("A", name)["product"].clone();
            match target.starts_with(FEED) {
                true if target.contains("since=") => nothing("token"),
                true if feed.load(Ordering::Relaxed) => {
                    changes(&[named("A", name)], "token", false)
                }
                true => absent.clone(),
                false if target.contains("after=") => page(&[], None),
                false => page(&[product], Some("A")),
            }
        });
        let copy = Store::new();
        let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
        let errors = copy.path("errors");
        holds(&errors, "the source has no feed of changes; polling");
        holds(&errors, "published: revision 1: 1 created");
        let metrics = copy.path("vitrine.prom");
        holds(&metrics, "vitrine_mirror_following 0\n");
        is_new.store(true, Ordering::Relaxed);
        holds(&errors, "published: revision 2: 0 created, 1 changed");
        has_feed.store(true, Ordering::Relaxed);
        holds(&metrics, "vitrine_mirror_following 1\n");
        let feeds = |head: &&String| head.contains(&format!("GET {FEED} "));
        let asked = fake.heads().iter().filter(feeds).count();
        assert_eq!(asked, 2, "seldom, while there is none");
    }
}

#[test]
fn stray_refusals_do_not_end_following() {
    let html = |status: &str| answer(&format!("{status}\r\nContent-Type: text/html"), "<html>");
    for stray in [
        "400 Bad Request",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "501 Not Implemented",
    ] {
        let (refusal, has_refused) = (html(stray), AtomicBool::new(false));
        let fake =
            Fake::start(
                move |target| match target.split_once("since=").map(|(_, rest)| rest) {
                    None => changes(&[named("A", "old")], "first", false),
                    Some(token) if !token.starts_with("first") => nothing("second"),
                    Some(_) if has_refused.swap(true, Ordering::Relaxed) => {
                        changes(&[named("B", "new")], "second", false)
                    }
                    Some(_) => refusal.clone(),
                },
            );
        let copy = Store::new();
        let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
        let errors = copy.path("errors");
        holds(
            &errors,
            &format!("status {}: no error as the contract has it", &stray[..3]),
        );
        holds(&errors, "published: revision 2: 1 created");
        let said = std::fs::read_to_string(&errors).expect("a file");
        assert!(!said.contains("polling"), "{said}");
        let is_walk = |head: &&String| !head.contains("since=");
        assert_eq!(fake.heads().iter().filter(is_walk).count(), 1, "{stray}");
    }
}

#[test]
fn feed_that_was_seen_is_asked_for_at_every_poll() {
    let phase = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&phase);
    let product = named("A", "old")["product"].clone();
    let fake = Fake::start(move |target| {
        let is_feed = target.starts_with(FEED);
        match (is_feed, now.load(Ordering::Relaxed)) {
            (true, 0) if target.contains("since=") => nothing("token"),
            (true, 0) => changes(&[named("A", "old")], "token", false),
            (true, 1) => in_json("404 Not Found", "{\"type\":\"not_found\"}"),
            (true, _) => in_json("503 No", "{\"type\":\"unavailable\"}"),
            (false, _) if target.contains("after=") => page(&[], None),
            (false, _) => page(std::slice::from_ref(&product), Some("A")),
        }
    });
    let copy = Store::new();
    let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
    let (errors, metrics) = (copy.path("errors"), copy.path("vitrine.prom"));
    holds(&metrics, "vitrine_mirror_following 1\n");
    let asked = |path: &str| {
        let heads = fake.heads();
        let is_of = |head: &&String| head.starts_with(&format!("GET {path}"));
        heads.iter().filter(is_of).count()
    };
    phase.store(1, Ordering::Relaxed);
    holds(&errors, "the source has no feed of changes; polling");
    let before = asked(FEED);
    wait_for("the feed to be asked for", || {
        (asked(FEED) >= before + 3).then_some(())
    });
    let pages = asked("/v2/product?");
    assert!(pages < 20, "{pages} pages of polls without the feed");
    // A failure meanwhile is one of polling.
    phase.store(2, Ordering::Relaxed);
    holds(&errors, "unavailable (503)");
    holds(&metrics, "vitrine_mirror_following 0\n");
}

#[test]
fn retry_after_of_the_last_try_is_waited_for() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&times);
    let fake = Fake::start(move |_| {
        asked.lock().expect("unpoisoned").push(Instant::now());
        in_json("503 No\r\nRetry-After: 3", "{\"type\":\"unavailable\"}")
    });
    for more in [&["--follow"][..], &[]] {
        times.lock().expect("unpoisoned").clear();
        let copy = Store::new();
        let mut command = copy.command(&["mirror", "--from", &fake.base()]);
        command
            .args(more)
            .args(options("1s"))
            .env("VITRINE_MIRROR_KEY", KEY);
        let _running = start(&copy, command);
        let times = wait_for("another request", || {
            let times = times.lock().expect("unpoisoned").clone();
            (times.len() > 1).then_some(times)
        });
        assert!(times[1] - times[0] >= Duration::from_secs(3), "{more:?}");
    }
}

#[test]
fn ended_token_is_answered_by_a_walk() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    let fake = Fake::start(move |target| {
        let is_later = gone.load(Ordering::Relaxed);
        match (target.contains("since=old"), target.contains("since=")) {
            (true, _) if is_later => in_json("410 Gone", "{\"type\":\"changes_gone\"}"),
            (_, true) => nothing("old"),
            _ if is_later => changes(&[named("B", "new")], "new", false),
            _ => changes(&[named("A", "old")], "old", false),
        }
    });
    let copy = Store::new();
    let running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
    let errors = copy.path("errors");
    holds(&errors, "published: revision 1: 1 created");
    holds(&copy.path("mirror.json"), "\"old\"");
    drop(running);
    is_gone.store(true, Ordering::Relaxed);
    let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
    holds(
        &errors,
        "the source ended the token; reading its whole catalog",
    );
    holds(
        &errors,
        "published: revision 2: 1 created, 0 changed, 1 retired",
    );
}

#[test]
fn source_that_ends_each_token_is_read_whole_once() {
    let fake = Fake::start(|target| match target.contains("since=") {
        true => in_json("410 Gone", "{\"type\":\"changes_gone\"}"),
        false => changes(&[named("A", "a")], "given", true),
    });
    let copy = Store::new();
    let mut command = copy.command(&["mirror", "--from", &fake.base()]);
    let output = command.env("VITRINE_MIRROR_KEY", KEY).output();
    let output = output.expect("vitrine runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("ended a token that it had just given"),
        "{said}"
    );
}

#[test]
fn source_that_never_rests_is_published_after_a_restart() {
    let fake = Fake::start(|target| {
        let token = target.split_once("since=t").map(|(_, rest)| rest);
        let number = token.and_then(|token| token.split('&').next()?.parse::<u64>().ok());
        let next = number.map_or(0, |number| number + 1);
        changes(
            &[named("A", &format!("Name {next}"))],
            &format!("t{next}"),
            false,
        )
    });
    let copy = Store::new();
    for revision in [2, 4] {
        let _running = start(&copy, command(&copy, &fake.base(), KEY, &options("1s")));
        let published = format!("published: revision {revision}: 0 created, 1 changed");
        holds(&copy.path("errors"), &published);
        holds(&copy.path("mirror.json"), "\"t");
    }
}

#[test]
fn emptied_source_empties_a_catalog_only_while_it_is_followed() {
    let is_emptied = Arc::new(AtomicBool::new(false));
    let emptied = Arc::clone(&is_emptied);
    let fake = Fake::start(move |target| {
        match (
            target.contains("since=full"),
            emptied.load(Ordering::Relaxed),
        ) {
            (true, true) => changes(&[json!({"code": "A", "product": null})], "empty", false),
            (true, false) => nothing("full"),
            (false, true) => nothing("empty"),
            (false, false) => changes(&[named("A", "a")], "full", false),
        }
    });
    let copy = Store::new();
    let from = ["mirror", "--from", &fake.base(), "--every", "1s"];
    let mut command = copy.command(&from);
    command.args(ALLOW_ALL).env("VITRINE_MIRROR_KEY", KEY);
    let _running = start(&copy, command);
    let errors = copy.path("errors");
    holds(&errors, "published: revision 1: 1 created");
    is_emptied.store(true, Ordering::Relaxed);
    holds(&errors, "an empty input never empties the catalog");
    assert!(copy.ok(&["export"]).contains("\"code\":\"A\""));
}

#[test]
fn feeds_that_break_the_contract_change_nothing() {
    let store = Store::of(&[gift_card("OLD")]);
    let before = store.ok(&["export"]);
    for (body, expected) in [
        (
            in_json("200 OK", "{\"changes\": 1}"),
            "the answer can't be read, at `changes`",
        ),
        (
            answer("200 OK\r\nContent-Type: text/html", "<html>"),
            "isn't application/json",
        ),
        (changes(&[], "same", true), "doesn't advance"),
        (
            changes(&vec![named("A", "a"); 501], "n", false),
            "more than 500 changes",
        ),
        (
            changes(
                &[json!({"code": "X", "product": gift_card("Y")})],
                "n",
                false,
            ),
            "isn't one of a product of that code",
        ),
        (
            in_json("410 Gone", "{\"type\":\"changes_gone\"}"),
            "changes_gone (410)",
        ),
        (
            in_json("503 No", "{\"type\":\"unavailable\"}"),
            "unavailable (503)",
        ),
        (
            in_json("401 No", &format!("{{\"message\":\"{KEY}\"}}")),
            "status 401",
        ),
        (
            changes(&[], "empty", false),
            "an empty input never empties the catalog",
        ),
    ] {
        let fake = Fake::start(move |_| body.clone());
        let _running = start(&store, command(&store, &fake.base(), KEY, &options("1h")));
        let errors = store.path("errors");
        holds(&errors, expected);
        let said = std::fs::read_to_string(&errors).expect("a file");
        assert!(!said.contains("S3CRET"), "{said}");
    }
    assert_eq!(store.ok(&["export"]), before);
}

#[test]
fn foreign_state_file_is_not_replaced() {
    let store = Store::new();
    for content in ["listen = \"0.0.0.0:8080\"\n", "{}", "{\"held\":null}"] {
        store.write("mirror.json", content);
        let output = command(&store, "http://127.0.0.1:1", KEY, &[]).output();
        let output = output.expect("vitrine runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("isn't a mirror's state file"), "{said}");
        let kept = std::fs::read_to_string(store.path("mirror.json"));
        assert_eq!(kept.expect("a file"), content);
    }
    let output = store.run(&["mirror", "--from", "http://a.example", "--state-file", "a"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
