//! Deliverers: several at once, their ends and restarts, keys of endpoints, key files, and restored stores.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::harness::receiver::{Delivery, Event, HOOK};
use crate::harness::{Page, Scrape, Server, are_files, gift_card, scrape, text, wait_for};

/// Starts a deliverer without a listener.
fn deliverer(delivery: &Delivery) -> Server {
    let own = delivery.options();
    let mut command =
        delivery
            .store
            .command(&["deliver", "--public-url", "http://catalog.example"]);
    command.args(["--admin-listen", "127.0.0.1:0"]).args(own);
    Server::start(command)
}

#[test]
fn several_deliverers_share_the_work() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _all = [deliverer(&delivery), deliverer(&delivery), delivery.serve()];
    let paths: Vec<String> = (0..10).map(|number| format!("/hook/{number}")).collect();
    for path in &paths {
        delivery.web.set(path, &[Page::ok("")]);
        delivery.endpoint_at(&delivery.web.url(path), &[]);
    }
    for step in 0..10 {
        let code = format!("B{step}");
        delivery.store.load_products(&[gift_card(&code)]);
        wait_for("every endpoint to be told", || {
            let events = delivery.events(0);
            let told = events
                .iter()
                .filter(|event| event.body.to_string().contains(&format!("\"{code}\"")));
            (told.count() >= paths.len()).then_some(())
        });
    }
    let events = delivery.events(0);
    let ids: HashSet<&str> = events.iter().map(Event::id).collect();
    assert_eq!(ids.len(), events.len(), "each event once");
}

#[test]
fn deliverer_goes_on_where_another_ended() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    for step in 0..4 {
        let mut server = deliverer(&delivery);
        delivery
            .store
            .load_products(&[gift_card(&format!("B{step}"))]);
        delivery.events(step + 1);
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0), "{}", server.stderr());
    }
    let events = delivery.events(4);
    assert_eq!(events.len(), 4, "each once");
    assert_eq!(events[3].codes(), ["B2", "B3"]);
    assert_eq!(delivery.show(&endpoint)["pending"], Value::Null);
}

#[test]
fn event_of_a_killed_deliverer_is_sent_again_as_it_was() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    delivery
        .web
        .set(HOOK, &[Page::ok("").never(), Page::ok("")]);
    let server = deliverer(&delivery);
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(1);
    drop(server);
    let _server = deliverer(&delivery);
    // Its lease ends first.
    let events = delivery.events(2);
    assert_eq!(
        (events[0].id(), events[0].bytes()),
        (events[1].id(), events[1].bytes())
    );
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
}

#[test]
fn endpoint_moves_with_its_rotated_key_and_ends_when_revoked() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let rotated = delivery
        .store
        .json(&["keys", "rotate", "reader", "--overlap", "0s", "--json"]);
    let key = rotated["key"].as_str().expect("a key");
    let prefix = key.rsplit_once('.').expect("a prefix").0;
    assert_eq!(delivery.show(&endpoint)["key"], prefix);
    delivery.store.load_products(&[gift_card("B")]);
    let event = delivery.events(1).remove(0);
    assert_eq!(server.get(key, event.changes()).status, 200);
    let told = delivery.store.ok(&["keys", "revoke", prefix]);
    assert!(
        told.contains("webhook endpoints that ended with it: 1"),
        "{told}"
    );
    assert_eq!(delivery.show(&endpoint)["state"], "ended");
    delivery.store.load_products(&[gift_card("C")]);
    server.wait_for_revision(3);
    assert_eq!(server.get(key, event.changes()).status, 401);
    // One of another key shows that all were looked at.
    let other = Delivery {
        key: delivery.store.key("other", &[]),
        ..delivery
    };
    other.web.set("/other", &[Page::ok("")]);
    other.endpoint_at(&other.web.url("/other"), &[]);
    other.store.load_products(&[gift_card("D")]);
    wait_for("the other endpoint", || {
        other
            .web
            .posts()
            .iter()
            .any(|post| post.path() == "/other")
            .then_some(())
    });
    let own = other
        .web
        .posts()
        .iter()
        .filter(|post| post.path() == HOOK)
        .count();
    assert_eq!(own, 1);
}

#[test]
fn deliverer_with_another_key_file_says_so_and_sends_nothing() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    let [option, path, networks, network] = delivery.options();
    let right = std::fs::read(&path).expect("the key file");
    let mode = std::fs::metadata(&path)
        .expect("the key file")
        .permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    let other = Delivery::of(&[gift_card("A")]);
    other.endpoint(&[]);
    std::fs::copy(&other.options()[1], &path).expect("another key file");
    let server =
        delivery
            .store
            .serve_with(&["--deliver-webhooks", &option, &path, &networks, &network]);
    delivery.store.load_products(&[gift_card("B")]);
    wait_for("the reason in the log", || {
        let told = server.stderr();
        told.contains("isn't the file from which the endpoints' secrets are derived")
            .then_some(())
    });
    let rotate = ["webhooks", "rotate", &endpoint.id, &option, &path];
    let refused = text(&delivery.store.run(&rotate).stderr);
    assert!(
        refused.contains("isn't the one from which the secrets"),
        "{refused}"
    );
    assert_eq!(delivery.web.posts().len(), 0);
    std::fs::write(&path, right).expect("the key file");
    assert!(delivery.events(1).remove(0).is_signed_by(&endpoint.secret));
}

#[test]
fn endpoints_of_a_restored_store_tell_nobody_until_enabled() {
    if !are_files("endpoints of a restored store tell nobody until enabled") {
        return;
    }
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    let backup = delivery.store.path("backup").display().to_string();
    delivery.store.ok(&["backup", &backup]);
    let copy = Delivery::of(&[gift_card("Z")]);
    copy.store
        .ok(&["restore", "--yes", "--allow", "widen", &backup]);
    let copied = |name: &str| std::fs::read(delivery.store.path(name)).expect("a file");
    let path = copy.store.write("webhooks.key", copied("webhooks.key"));
    let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, owner).expect("permissions");
    let shown = copy.show(&endpoint);
    assert_eq!(shown["state"], "paused");
    assert!(
        shown["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("restore")),
        "{shown}"
    );
    let server = copy.serve();
    let report = copy.store.load_products(&[gift_card("B")]);
    server.wait_for_loaded(&report);
    assert_eq!(delivery.web.posts().len(), 0);
    copy.store.ok(&["webhooks", "enable", &endpoint.id]);
    let event = delivery.events(1).remove(0);
    assert!(event.is_signed_by(&endpoint.secret));
    assert_eq!(event.codes(), ["A", "B"]);
}

#[test]
fn endpoint_ahead_of_an_older_store_begins_anew() {
    if !are_files("an endpoint ahead of an older store") {
        return;
    }
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    let older = delivery.store.path("older").display().to_string();
    delivery.store.ok(&["backup", &older]);
    let server = delivery.serve();
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(1);
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    drop(server);
    // Put back by other means than `vitrine restore`, without the file of the endpoints.
    let path = delivery.store.path("vitrine.db");
    for ending in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
    }
    std::fs::copy(older, path).expect("a copy");
    let _server = delivery.serve();
    let events = delivery.events(2);
    assert_eq!(events[1].data()["resync"], true);
}

#[test]
fn metrics_tell_states_attempts_and_the_oldest_change() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = deliverer(&delivery);
    let endpoint = delivery.endpoint(&[]);
    delivery
        .web
        .set(HOOK, &[Page::status("500 Internal Server Error")]);
    delivery.store.load_products(&[gift_card("B")]);
    let wait = |what: &str, is: &dyn Fn(&Scrape) -> bool| {
        wait_for(what, || is(&scrape(&server)).then_some(()));
    };
    let state = |scrape: &Scrape, state: &str| {
        scrape.value(&format!("vitrine_webhook_endpoints{{state=\"{state}\"}}"))
    };
    wait("an age", &|scrape| {
        scrape.value("vitrine_webhook_oldest_change_seconds") > 0.0
    });
    wait("a refusal", &|scrape| {
        scrape.value("vitrine_webhook_attempts_total{outcome=\"refused\"}") > 0.0
    });
    wait("an active endpoint", &|scrape| {
        state(scrape, "active") == 1.0
    });
    delivery.store.ok(&["webhooks", "pause", &endpoint.id]);
    wait("a paused endpoint", &|scrape| {
        state(scrape, "paused") == 1.0
    });
    delivery.web.set(HOOK, &[Page::ok("")]);
    delivery.store.ok(&["webhooks", "enable", &endpoint.id]);
    wait("an attempt that was taken", &|scrape| {
        scrape.value("vitrine_webhook_attempts_total{outcome=\"taken\"}") > 0.0
    });
    wait("no age", &|scrape| {
        scrape.value("vitrine_webhook_oldest_change_seconds") == 0.0
    });
    // Also where the catalog doesn't change.
    delivery.store.ok(&["keys", "revoke", delivery.prefix()]);
    wait("an ended endpoint", &|scrape| state(scrape, "ended") == 1.0);
    let test = delivery.store.run(&["webhooks", "test", &endpoint.id]);
    let told = text(&test.stderr);
    assert!(told.contains("the endpoint ended with it"), "{told}");
}

#[test]
fn no_secret_is_in_the_store_a_backup_a_log_or_an_answer() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(1);
    let key_file =
        std::fs::read_to_string(delivery.store.path("webhooks.key")).expect("the key file");
    let secrets = [
        endpoint.secret.trim_start_matches("whsec_"),
        key_file.trim(),
    ];
    let mut told = vec![
        server.stderr(),
        delivery.show(&endpoint).to_string(),
        delivery.store.ok(&["webhooks", "list"]),
        delivery.store.ok(&["audit", "--json"]),
    ];
    match delivery.store.database() {
        Some(database) => {
            told.extend(database.run("select document from vitrine.webhook_endpoint"));
        }
        None => {
            let backup = delivery.store.path("backup").display().to_string();
            delivery.store.ok(&["backup", &backup]);
        }
    }
    for entry in std::fs::read_dir(delivery.store.path("")).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() && path.file_name() != Some("webhooks.key".as_ref()) {
            told.push(text(&std::fs::read(path).expect("a file")));
        }
    }
    assert!(told.len() > 4);
    for secret in secrets {
        assert!(!secret.is_empty() && told.iter().all(|told| !told.contains(secret)));
    }
    let audit = delivery.store.json(&["audit", "--json"]).to_string();
    assert!(audit.contains(&endpoint.id), "{audit}");
}

#[test]
fn commands_name_what_is_wrong() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    let url = delivery.web.url(HOOK);
    let prefix = delivery.prefix();
    let create = |arguments: &[&str]| {
        let own = delivery.options();
        let mut command = delivery.store.command(&["webhooks", "create"]);
        let output = command
            .args(arguments)
            .args(own)
            .output()
            .expect("vitrine runs");
        assert!(!output.status.success());
        text(&output.stderr)
    };
    for (arguments, fault) in [
        (
            &["--key", "vitrine_unknown", "--url", &url][..],
            "no key in use has the prefix",
        ),
        (&["--key", prefix, "--url", "hook"], "the address is no URL"),
        (
            &["--key", prefix, "--url", &url, "--country", "Sweden"],
            "countries_redeemable_in",
        ),
        (
            &[
                "--key",
                prefix,
                "--url",
                &url,
                "--api-version",
                "2020-01-01",
            ],
            "2020-01-01",
        ),
    ] {
        let told = create(arguments);
        assert!(told.contains(fault), "{told}");
    }
    for command in [
        "show", "pause", "enable", "retry", "test", "rotate", "delete",
    ] {
        let mut arguments = vec!["webhooks", command, "wh_none"];
        if command == "delete" {
            arguments.push("--yes");
        }
        let own = delivery.options();
        if command == "rotate" {
            arguments.extend(own[..2].iter().map(String::as_str));
        }
        let told = text(&delivery.store.run(&arguments).stderr);
        assert!(
            told.contains("there is no endpoint wh_none"),
            "{command}: {told}"
        );
    }
    delivery
        .store
        .ok(&["webhooks", "delete", &endpoint.id, "--yes"]);
    assert_eq!(
        delivery.store.json(&["webhooks", "list", "--json"]),
        json!([])
    );
    // Without endpoints nothing is derived from the old file any more.
    std::fs::remove_file(delivery.store.path("webhooks.key")).expect("the key file");
    delivery.endpoint(&[]);
}
