//! Attempts of webhooks that fail: what is tried again, when, what disables an endpoint, and where nothing is sent to.

use std::fs;
use std::process::Command;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::harness::receiver::{Delivery, Endpoint, HOOK};
use crate::harness::{Certificate, Page, Server, gift_card, skipped, text, wait_for};

/// Returns the seconds from an endpoint's last attempt to its next one.
fn pause(delivery: &Delivery, endpoint: &Endpoint) -> f64 {
    let shown = delivery.show(endpoint);
    let time =
        |value: &Value| -> Timestamp { value.as_str().expect("a time").parse().expect("a time") };
    let next = time(&shown["next_attempt_at"]);
    next.duration_since(time(&shown["attempts"][0]["at"]))
        .as_secs_f64()
}

#[test]
fn failed_event_is_sent_again_with_the_same_bytes() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let failure = Page::status("500 Internal Server Error");
    delivery.web.set(HOOK, &[failure, Page::ok("taken")]);
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(1);
    // What follows doesn't change it.
    delivery.store.load_products(&[gift_card("C")]);
    server.wait_for_revision(3);
    let events = delivery.events(3);
    assert_eq!(events[0].id(), events[1].id());
    assert_eq!(events[0].bytes(), events[1].bytes());
    assert_ne!(
        events[0].header("webhook-timestamp"),
        events[1].header("webhook-timestamp")
    );
    assert!(
        events
            .iter()
            .all(|event| event.is_signed_by(&endpoint.secret))
    );
    assert_ne!(events[1].id(), events[2].id());
    assert_eq!(events[2].codes(), ["B", "C"]);
    let shown = delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    let outcomes: Vec<&Value> = (0..3).map(|at| &shown["attempts"][at]["outcome"]).collect();
    assert_eq!(outcomes, ["200", "200", "500"]);
    assert_eq!(shown["failing_since"], Value::Null);
}

#[test]
fn each_failure_is_told_and_tried_again_after_five_seconds() {
    for (page, expected) in [
        (Page::redirect("/elsewhere"), "302"),
        (Page::status("500 Internal Server Error"), "500"),
        (Page::status("404 Not Found"), "404"),
        (
            Page::ok("cut").cut().with_status("503 Service Unavailable"),
            "503",
        ),
        (Page::status("100 Continue"), "the connection broke"),
        // Of the answer only a little is read.
        (
            Page::ok(vec![b'x'; 1 << 16])
                .endlessly()
                .with_status("400 Bad Request"),
            "400",
        ),
    ] {
        let delivery = Delivery::of(&[gift_card("A")]);
        let _server = delivery.serve();
        let endpoint = delivery.endpoint(&[]);
        delivery.web.set(HOOK, &[page]);
        delivery.store.load_products(&[gift_card("B")]);
        assert_eq!(delivery.wait_for_outcome(&endpoint), expected);
        let pause = pause(&delivery, &endpoint);
        assert!((3.9..8.0).contains(&pause), "{expected}: {pause}");
        let requests = delivery.web.take_requests();
        assert!(
            requests.iter().all(|head| head.starts_with("post /hook ")),
            "{requests:?}"
        );
    }
}

#[test]
fn receiver_that_does_not_answer_fails_after_fifteen_seconds() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let well = delivery.endpoint_at(&delivery.web.url("/well"), &[]);
    delivery.web.set("/well", &[Page::ok("")]);
    delivery.web.set(HOOK, &[Page::ok("").never()]);
    let slow = delivery.endpoint_at(&delivery.web.url("/slow"), &[]);
    delivery.web.set("/slow", &[Page::ok("").slowly()]);
    delivery.store.load_products(&[gift_card("B")]);
    // Others aren't held up.
    delivery.wait_for_member(&well, "pending", &Value::Null);
    assert_eq!(delivery.wait_for_outcome(&well), "200");
    assert_eq!(
        delivery.wait_for_outcome(&endpoint),
        "no answer within 15 s"
    );
    assert_eq!(delivery.wait_for_outcome(&slow), "no answer within 15 s");
    let took = delivery.show(&endpoint)["attempts"][0]["milliseconds"].clone();
    assert!(took.as_u64().is_some_and(|took| took >= 15_000), "{took}");
}

#[test]
fn receiver_with_a_certificate_that_is_not_its_own_gets_nothing() {
    let delivery = Delivery::of(&[gift_card("A")]);
    // Any server with TLS will do.
    let certificate = Certificate::new(&delivery.store, "elsewhere.example");
    let receiver = certificate.serve(&delivery.store, &[]);
    let _server = delivery.serve();
    let url = format!("https://127.0.0.1:{}/hook", receiver.address.port());
    let endpoint = delivery.endpoint_at(&url, &[]);
    delivery.store.load_products(&[gift_card("B")]);
    let outcome = delivery.wait_for_outcome(&endpoint);
    assert_eq!(outcome, "its certificate isn't valid for it");
    assert!(!receiver.stdout().contains("/hook"));
}

#[test]
fn retry_after_is_obeyed() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let busy = Page::status("429 Too Many Requests").with("Retry-After", "3600");
    delivery.web.set(HOOK, &[busy]);
    delivery.store.load_products(&[gift_card("B")]);
    assert_eq!(delivery.wait_for_outcome(&endpoint), "429");
    let pause = pause(&delivery, &endpoint);
    assert!((3_600.0..3_610.0).contains(&pause), "{pause}");
}

#[test]
fn waiting_endpoint_is_tried_now() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let retry = ["webhooks", "retry", &endpoint.id];
    let refused = delivery.store.run(&retry);
    assert_eq!(refused.status.code(), Some(1));
    let told = text(&refused.stderr);
    assert!(told.contains("has no event that waits"), "{told}");
    let busy = Page::status("429 Too Many Requests").with("Retry-After", "3600");
    delivery.web.set(HOOK, &[busy, Page::ok("taken")]);
    delivery.store.load_products(&[gift_card("B")]);
    assert_eq!(delivery.wait_for_outcome(&endpoint), "429");
    let told = delivery.store.ok(&retry);
    assert_eq!(told, format!("{} tried now\n", endpoint.id));
    let events = delivery.events(2);
    assert_eq!(events[0].bytes(), events[1].bytes());
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    let audit = delivery.store.json(&["audit", "--json"]);
    assert_eq!(audit[0]["action"], "retry", "{audit}");
    delivery.store.ok(&["webhooks", "pause", &endpoint.id]);
    let told = text(&delivery.store.run(&retry).stderr);
    assert!(told.contains("is paused; enable it"), "{told}");
}

#[test]
fn gone_receiver_disables_its_endpoint_until_it_is_enabled() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    delivery.web.set(HOOK, &[Page::status("410 Gone")]);
    delivery.store.load_products(&[gift_card("B")]);
    let shown = delivery.wait_for_member(&endpoint, "state", &json!("disabled"));
    assert_eq!(shown["reason"], "its receiver answered 410");
    wait_for("a warning", || {
        let told = server.stderr();
        told.contains("a webhook endpoint is disabled")
            .then_some(())
    });
    delivery.store.load_products(&[gift_card("C")]);
    server.wait_for_revision(3);
    delivery.web.set(HOOK, &[Page::ok("")]);
    assert_eq!(delivery.web.posts().len(), 1);
    delivery.store.ok(&["webhooks", "enable", &endpoint.id]);
    let events = delivery.events(3);
    assert_eq!(events[0].id(), events[1].id(), "it was never taken");
    assert_eq!(events[2].codes(), ["B", "C"]);
}

#[test]
fn paused_endpoint_gets_one_event_for_all_that_it_missed() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    delivery.store.ok(&["webhooks", "pause", &endpoint.id]);
    assert_eq!(delivery.show(&endpoint)["state"], "paused");
    for (step, code) in ["B", "C", "D"].into_iter().enumerate() {
        delivery.store.load_products(&[gift_card(code)]);
        server.wait_for_revision(step as u64 + 2);
    }
    assert_eq!(delivery.web.posts().len(), 0);
    delivery.store.ok(&["webhooks", "enable", &endpoint.id]);
    let events = delivery.events(1);
    assert_eq!(events[0].codes(), ["A", "B", "C", "D"]);
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    assert_eq!(delivery.web.posts().len(), 1);
}

#[test]
fn test_event_tells_its_outcome() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let told = delivery.store.ok(&["webhooks", "test", &endpoint.id]);
    assert!(told.contains("204"), "{told}");
    let event = delivery.events(1).remove(0);
    assert!(event.is_signed_by(&endpoint.secret));
    assert_eq!(
        (&event.body["type"], event.data()),
        (&json!("webhook.test"), &json!({}))
    );
    delivery
        .web
        .set(HOOK, &[Page::status("500 Internal Server Error")]);
    let output = delivery.store.run(&["webhooks", "test", &endpoint.id]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("500") || text(&output.stderr).contains("500"));
    // It isn't tried again, and says nothing about the endpoint.
    let shown = delivery.show(&endpoint);
    assert_eq!(
        (&shown["pending"], &shown["failing_since"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(delivery.web.posts().len(), 2);
}

#[test]
fn nothing_is_sent_into_networks_that_are_not_named() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let prefix = delivery.prefix();
    for (url, fault) in [
        ("http://partner.example/hook", "must begin with https://"),
        ("https://127.0.0.1/hook", "in a private network"),
        ("https://[::ffff:169.254.169.254]/", "in a private network"),
        ("ftp://partner.example/", "must begin with https://"),
        ("https://me:secret@partner.example/", "has credentials"),
    ] {
        let create = ["webhooks", "create", "--key", prefix, "--url", url];
        let output = delivery.store.run(&create);
        let told = text(&output.stderr);
        assert!(
            !output.status.success() && told.contains(fault),
            "{url}: {told}"
        );
        assert!(!told.contains("me:secret"), "{told}");
    }
    assert_eq!(
        delivery.store.json(&["webhooks", "list", "--json"]),
        json!([])
    );
    // A name is judged by what it resolves to, at each attempt; the endpoint was made where the network was named.
    let endpoint = delivery.endpoint_at(
        &format!("http://localhost:{}{HOOK}", delivery.web.address.port()),
        &[],
    );
    let [key_file, path, ..] = delivery.options();
    let _server = delivery.store.serve_with(&[
        "--deliver-webhooks",
        &key_file,
        &path,
        "--webhook-networks",
        "10.0.0.0/8",
    ]);
    delivery.store.load_products(&[gift_card("B")]);
    let outcome = delivery.wait_for_outcome(&endpoint);
    assert!(
        outcome.contains("in a network that isn't allowed"),
        "{outcome}"
    );
    assert_eq!(delivery.web.posts().len(), 0);
    assert_eq!(delivery.web.take_requests().len(), 0);
}

#[test]
fn name_is_judged_by_its_addresses_at_each_attempt() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let hosts = delivery.store.path("hosts");
    let resolve = |addresses: &[&str]| {
        let lines = addresses
            .iter()
            .map(|address| format!("{address} moving.test\n"));
        // In place: the deliverer has this very file.
        fs::write(&hosts, lines.collect::<String>()).expect("a file");
    };
    resolve(&["127.0.0.1"]);
    // The deliverer has a hosts file of its own, and all else is the machine's.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"");
    command.arg(&hosts);
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skipped(
            "names with changing addresses: this process may not make mount namespaces",
        );
    }
    let url = "https://catalog.example";
    let deliver = delivery.store.command(&["deliver", "--public-url", url]);
    command.arg(deliver.get_program()).args(deliver.get_args());
    command.args(delivery.options());
    for (name, value) in deliver.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let _deliverer = Server::start(command);
    delivery.web.set(
        HOOK,
        &[Page::status("204 No Content").with("Connection", "close")],
    );
    let port = delivery.web.address.port();
    let endpoint = delivery.endpoint_at(&format!("http://moving.test:{port}{HOOK}"), &[]);
    let test = || delivery.store.run(&["webhooks", "test", &endpoint.id]);
    let mut told = 0;
    for addresses in [
        &["127.0.0.1"][..],
        &["10.1.2.3"],
        &["192.168.7.7"],
        &["127.0.0.1", "169.254.169.254"],
        &["::1"],
        &["::ffff:10.0.0.1"],
        &["fe80::1"],
        &["0.0.0.0"],
        &["::ffff:127.0.0.1"],
        &["127.0.0.1"],
    ] {
        resolve(addresses);
        let is_named = addresses
            .iter()
            .all(|address| address.ends_with("127.0.0.1"));
        let output = test();
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.success(), is_named, "{addresses:?}: {shown}");
        if !is_named {
            assert!(
                shown.contains("in a network that isn't allowed"),
                "{addresses:?}: {shown}"
            );
        }
        told += usize::from(is_named);
        assert_eq!(delivery.web.posts().len(), told, "{addresses:?}");
    }
}
