//! The programs of the guide "Keep a copy" with servers that fail: what they say, when they stop, and what their copies are
//! meanwhile.

use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::docs_copies::{Program, Running, javascript, python, rust};
use crate::harness::{Server, Store, gift_card, wait_for};
use crate::mirror_source::{Fake, answer, json as in_json};

const KEY: &str = "partner.s3cret";
const BUSY: &str = "{\"type\":\"unavailable\",\"message\":\"busy\"}";
const GONE: &str = "{\"type\":\"changes_gone\",\"message\":\"gone\"}";

fn changes(codes: &[&str], next: &str, has_more: bool) -> Vec<u8> {
    let change = |code: &&str| json!({"code": code, "product": gift_card(code)});
    let changes: Vec<Value> = codes.iter().map(change).collect();
    let body = json!({"changes": changes, "next": next, "has_more": has_more});
    in_json("200 OK\r\nRetry-After: 1", &body.to_string())
}

/// Runs a test with each program at the same time, since they pause.
fn with_each(programs: fn(&Server) -> Vec<Program>, test: impl Fn(&Program) + Sync) {
    let store = Store::of(&[gift_card("A")]);
    let server = store.serve();
    let programs = programs(&server);
    std::thread::scope(|scope| {
        for program in &programs {
            scope.spawn(|| test(program));
        }
    });
}

fn all(server: &Server) -> Vec<Program> {
    let programs = [Some(python(server)), javascript(server), Some(rust(server))];
    programs.into_iter().flatten().collect()
}

fn scripts(server: &Server) -> Vec<Program> {
    let programs = [Some(python(server)), javascript(server)];
    programs.into_iter().flatten().collect()
}

/// Returns the codes of a copy, and whether it has been complete.
fn state(program: &Program) -> rusqlite::Result<(Vec<String>, bool)> {
    let copy = program.open()?;
    let mut codes = copy.prepare("SELECT code FROM product ORDER BY code")?;
    let codes = codes
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let complete = copy.query_row("SELECT complete FROM sync", [], |row| row.get(0))?;
    Ok((codes, complete))
}

fn wait_for_state(program: &Program, codes: &[&str], is_complete: bool) {
    wait_for("a state of the copy", || {
        let (found, complete) = state(program).ok()?;
        (found == codes && complete == is_complete).then_some(())
    });
}

/// Ends a program; returns what it has said.
fn said(mut running: Running) -> String {
    let mut stderr = running.child.stderr.take().expect("piped");
    drop(running);
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    said
}

#[test]
fn refusals_of_proxies_end_the_programs() {
    with_each(all, |program| {
        for head in [
            "400 Bad Request",
            "401 Unauthorized",
            "403 Forbidden",
            "404 Not Found",
        ] {
            let page = format!("{head}\r\nContent-Type: text/html");
            let fake = Fake::start(move |_| answer(&page, "<html>"));
            let mut running = program.start_at(&fake.base(), KEY);
            let ended = wait_for("the end", || running.child.try_wait().expect("a child"));
            assert!(!ended.success(), "{head}");
            let said = said(running);
            assert!(said.contains(&head[..3]), "{head}: {said}");
        }
    });
}

#[test]
fn copies_are_incomplete_until_their_first_walk_ends() {
    with_each(all, |program| {
        let phase = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&phase);
        let fake = Fake::start(move |target| {
            let token = target.split_once("since=").map(|(_, rest)| rest);
            let token = token.map(|token| token.split('&').next().unwrap_or_default());
            match (token, now.load(Ordering::Relaxed)) {
                (None, 0) => changes(&["A"], "first", true),
                // Products changed that this key doesn't see: the walk goes on.
                (Some("first"), 1) => changes(&[], "empty", true),
                (Some("empty"), 1) => changes(&["B"], "end", false),
                (Some("end"), 1) => changes(&[], "end", false),
                (Some("end"), _) => in_json("410 Gone", GONE),
                (None, 3) => changes(&["C"], "other", true),
                _ => in_json("503 Busy", BUSY),
            }
        });
        let running = program.start_at(&fake.base(), KEY);
        wait_for_state(program, &["A"], false);
        phase.store(1, Ordering::Relaxed);
        wait_for_state(program, &["A", "B"], true);
        // The token ends: the copy stays until another one begins.
        let walks = || {
            let heads = fake.heads();
            heads.iter().filter(|head| !head.contains("since=")).count()
        };
        let before = walks();
        phase.store(2, Ordering::Relaxed);
        // Once there is a second one, the first was answered.
        wait_for("two beginnings", || (walks() > before + 1).then_some(()));
        wait_for_state(program, &["A", "B"], true);
        phase.store(3, Ordering::Relaxed);
        wait_for_state(program, &["C"], false);
        let said = said(running);
        assert!(said.contains("busy"), "{said}");
    });
}

#[test]
fn beginnings_that_end_in_410_are_followed_by_growing_pauses() {
    with_each(scripts, |program| {
        let times = Arc::new(Mutex::new(Vec::new()));
        let begun = Arc::clone(&times);
        let fake = Fake::start(move |target| {
            if target.contains("since=") {
                return in_json("410 Gone", GONE);
            }
            begun.lock().expect("unpoisoned").push(Instant::now());
            let body = json!({"changes": [], "next": "t", "has_more": true});
            in_json("200 OK", &body.to_string())
        });
        let _running = program.start_at(&fake.base(), KEY);
        let times = wait_for("three beginnings", || {
            let times = times.lock().expect("unpoisoned").clone();
            (times.len() >= 3).then_some(times)
        });
        for (pair, seconds) in times.windows(2).zip([2, 4]) {
            assert!(pair[1] - pair[0] >= Duration::from_secs(seconds));
        }
    });
}
