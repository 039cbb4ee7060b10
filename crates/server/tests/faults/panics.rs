//! A bug in a running server: a part of it panics, at every panic point. The request is answered with 500 and its
//! connection lives on; what runs beside requests goes on with its next piece of work; and it is never hidden: the log
//! and a metric tell, and a server that can't follow says that it doesn't.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vitrine::panic_point::PanicPoint;

use crate::disk::wait_for_write;
use crate::harness::receiver::Delivery;
use crate::harness::{KeepAlive, SAMPLE, Server, Store, gift_card, scrape, text, wait_for};

/// A server over a store, with a fault in it.
struct Setup {
    store: Store,
    key: String,
    server: Server,
}

/// A server whose `fault` comes up.
fn serve(store: &Store, fault: &str, options: &[&str]) -> Server {
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0"]);
    command.args(["--public-url", "https://vitrine.test"]);
    command.args(options).env("VITRINE_FAIL_POINT", fault);
    Server::start(command)
}

impl Setup {
    fn new(fault: &str, options: &[&str]) -> Self {
        let store = Store::of(&[gift_card("A")]);
        let key = store.key("reader", &[]);
        let server = serve(&store, fault, options);
        Self { store, key, server }
    }

    fn ready(&self) -> (u16, Value) {
        let reply = self.server.ask_admin("GET", "/readyz");
        (reply.status, reply.json())
    }

    fn panics(&self) -> f64 {
        scrape(&self.server).value("vitrine_panics_total")
    }

    /// Waits until this many panics were told, and looks whether the log tells them.
    fn wait_for_panics(&self, count: f64) {
        wait_for("a panic", || (self.panics() >= count).then_some(()));
        wait_for("a message", || {
            let said = self.server.stderr();
            said.contains("a bug: the program panicked").then_some(())
        });
    }

    /// Checks that a load goes live and that a new key is accepted.
    fn assert_follows(&self) {
        let report = self.store.load_products(&[gift_card("A"), gift_card("B")]);
        self.server.wait_for_loaded(&report);
        let key = self.store.key("later", &[]);
        wait_for("the new key", || {
            (self.server.get(&key, "/v2/product/B").status == 200).then_some(())
        });
        wait_for("the store to be readable", || {
            (self.ready().1["store"]["readable"] == true).then_some(())
        });
        assert_eq!(self.ready().0, 200);
    }
}

/// Points at which the tests below panic.
const TESTED: [&str; 14] = [
    "handler",
    "version-known",
    "compress-body",
    "access-log",
    "messages",
    "admin-page",
    "follow-keys",
    "follow-catalog",
    "make-block",
    "key-use",
    "keys-file",
    "snapshot-file",
    "reload",
    "webhooks",
];

#[test]
fn every_point_has_its_test() {
    let known: BTreeSet<&str> = PanicPoint::ALL.iter().map(|point| point.name()).collect();
    assert_eq!(known, BTreeSet::from(TESTED));
}

#[test]
fn panic_in_a_handler_is_answered_with_500() {
    let setup = Setup::new("handler=panic@2", &[]);
    let mut connection = setup.server.keep_alive();
    let mut get = |target: &str| connection.get(&setup.key, target).expect("an answer");
    assert_eq!(get("/v2/product/A").status, 200);
    let failed = get("/v2/product/A?content=md");
    assert_eq!(failed.status, 500);
    assert_eq!(failed.header("content-type"), Some("application/json"));
    let id = failed.header("x-request-id").expect("an id").to_owned();
    let body = failed.json();
    assert_eq!(body["type"], "internal_server_error", "{body}");
    for part in ["message", "help"] {
        assert!(body[part].is_string(), "{part}: {body}");
    }
    assert!(!body.to_string().contains("panic"), "{body}");
    assert_eq!(get("/v2/product/A?content=md").status, 200);
    let metrics = scrape(&setup.server);
    let errors = "vitrine_http_errors_total{type=\"internal_server_error\",simulated=\"false\"}";
    for series in ["vitrine_panics_total", errors] {
        assert_eq!(metrics.value(series), 1.0, "{series}");
    }
    setup.wait_for_panics(1.0);
    let said = setup.server.stderr();
    let told = said.lines().find(|line| line.contains("panicked"));
    assert!(told.expect("a message").contains(&id), "{said}");
    let log = wait_for("the access log", || {
        let log = setup.server.stdout();
        log.contains("\"status\":500").then_some(log)
    });
    let secret = setup.key.split_once('.').expect("a key").1;
    assert!(!said.contains(secret) && !log.contains(secret));
}

#[test]
fn panic_behind_the_version_step_names_the_version() {
    let setup = Setup::new("version-known=panic@1", &[]);
    let get = || setup.server.get(&setup.key, "/v2/product");
    for status in [500, 200] {
        let reply = get();
        let version = reply.header("x-api-version");
        assert_eq!((reply.status, version), (status, Some("2024-02-05")));
    }
    wait_for("the access log", || {
        let log = setup.server.stdout();
        let told = |line: &str| {
            line.contains("\"status\":500") && line.contains("\"version\":\"2024-02-05\"")
        };
        log.lines().any(told).then_some(())
    });
}

#[test]
fn every_handler_may_panic_again_and_again() {
    let setup = Setup::new("handler=panic@1+", &[]);
    let mut connection = KeepAlive::to(setup.server.address);
    for target in ["/v2/product", "/v2/product/A", "/v2/ping", "/openapi.json"] {
        let reply = connection.get(&setup.key, target).expect("an answer");
        assert_eq!(reply.status, 500, "{target}");
    }
    assert_eq!(setup.panics(), 4.0);
    // It lives, follows and tells; who watches the errors is told.
    assert_eq!(setup.ready().0, 200);
}

#[test]
fn body_whose_compression_panics_is_sent_plain() {
    let products: Vec<Value> = (0..100).map(|n| gift_card(&format!("P{n}"))).collect();
    let store = Store::of(&products);
    let key = store.key("reader", &[]);
    let server = serve(&store, "compress-body=panic@1", &[]);
    let get = || {
        let headers = [("X-Api-Key", key.as_str()), ("Accept-Encoding", "br")];
        server.send("GET", "/v2/product?limit=100", &headers)
    };
    let plain = get();
    assert_eq!(
        (plain.status, plain.header("content-encoding")),
        (200, None)
    );
    assert_eq!(plain.json()["catalog"].as_array().map(Vec::len), Some(100));
    assert_eq!(get().header("content-encoding"), Some("br"));
}

#[test]
fn access_log_goes_on_after_a_panic() {
    let setup = Setup::new("access-log=panic@1", &[]);
    assert_eq!(setup.server.get(&setup.key, "/v2/ping").status, 200);
    wait_for("the line", || {
        setup.server.stdout().contains("/v2/ping").then_some(())
    });
    setup.wait_for_panics(1.0);
    wait_for("the message", || {
        let said = setup.server.stderr();
        said.contains("can be written again").then_some(())
    });
}

#[test]
fn messages_are_written_after_a_panic_of_their_thread() {
    // It starts: the line that says where it listens was written.
    let setup = Setup::new("messages=panic@1", &[]);
    setup.wait_for_panics(1.0);
    wait_for("the message", || {
        let said = setup.server.stderr();
        said.contains("the server log can be written again")
            .then_some(())
    });
}

#[test]
fn admin_port_goes_on_after_a_panic() {
    let setup = Setup::new("admin-page=panic@1", &[]);
    assert!(setup.server.keep_alive_admin().get("", "/livez").is_none());
    assert_eq!(setup.ready().0, 200);
    setup.wait_for_panics(1.0);
}

/// A following thread used to be gone for good after a panic, while its server called itself ready.
#[test]
fn follower_continues_after_a_panic() {
    for fault in ["follow-keys=panic@2", "follow-catalog=panic@2"] {
        let setup = Setup::new(fault, &[]);
        setup.assert_follows();
        setup.wait_for_panics(1.0);
    }
}

#[test]
fn always_panicking_follower_is_reported() {
    let setup = Setup::new("follow-catalog=panic@2+", &[]);
    let before = setup.server.get(&setup.key, "/v2/product").body;
    setup.store.load_products(&[gift_card("B")]);
    setup.wait_for_panics(2.0);
    let (status, ready) = setup.ready();
    assert_eq!((status, &ready["store"]["readable"]), (200, &json!(false)));
    assert_eq!(setup.server.get(&setup.key, "/v2/product").body, before);
    // Keys are another thread's.
    let key = setup.store.key("later", &[]);
    wait_for("the new key", || {
        (setup.server.get(&key, "/v2/ping").status == 200).then_some(())
    });
    let setup = Setup::new("follow-keys=panic@2+", &["--max-stale-keys", "2s"]);
    setup.store.key("later", &[]);
    wait_for("keys to be too old", || {
        let (status, ready) = setup.ready();
        (status == 503 && ready["reason"] == "stale_keys").then_some(())
    });
    assert_eq!(setup.server.get(&setup.key, "/v2/ping").status, 503);
}

#[test]
fn panic_at_the_start_ends_or_serves_the_last_good() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    for fault in ["follow-keys", "follow-catalog", "make-block"] {
        let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("VITRINE_FAIL_POINT", format!("{fault}=panic@1"));
        let ended = command.output().expect("vitrine runs");
        assert_eq!(ended.status.code(), Some(1), "{fault}");
        let said = text(&ended.stderr);
        assert!(said.contains("panicked"), "{fault}: {said}");
    }
    let state = store.path("state").display().to_string();
    let options = ["--state-dir", &state];
    drop(wait_for_files(&store, serve(&store, "", &options)));
    let report = store.load_products(&[gift_card("NEW")]);
    for fault in ["follow-keys", "follow-catalog"] {
        let server = serve(&store, &format!("{fault}=panic@1"), &options);
        server.wait_for_loaded(&report);
        assert_eq!(server.get(&key, "/v2/product/NEW").status, 200, "{fault}");
    }
}

/// Waits until a server's state is kept.
fn wait_for_files(store: &Store, server: Server) -> Server {
    wait_for_write("the files", || {
        let written = server.stderr().contains("the snapshot file is written");
        written && store.path("state/keys").exists()
    });
    server
}

#[test]
fn catalog_whose_blocks_panic_is_reread() {
    let store = Store::of(&[gift_card("A")]);
    let backup = store.path("backup.db").display().to_string();
    store.ok(&["backup", &backup]);
    store.load_products(&[gift_card("B")]);
    let key = store.key("reader", &[]);
    store.ok(&["backup", &store.path("with-key.db").display().to_string()]);
    let server = serve(&store, "make-block=panic@2", &[]);
    assert_eq!(server.get(&key, "/v2/product/B").status, 200);
    let with_key = store.path("with-key.db").display().to_string();
    store.load_products(&[gift_card("C")]);
    // All is read anew after a restore.
    store.ok(&["restore", "--yes", &with_key]);
    wait_for("the panic", || {
        server
            .stderr()
            .contains("the program panicked")
            .then_some(())
    });
    wait_for("the restored catalog", || {
        (server.get(&key, "/v2/product/B").status == 200).then_some(())
    });
}

#[test]
fn state_files_are_written_after_a_panic() {
    for fault in ["keys-file", "snapshot-file"] {
        let store = Store::sample();
        let key = store.key("reader", &[]);
        let state = store.path("state").display().to_string();
        let options = ["--state-dir", &state];
        let server = serve(&store, &format!("{fault}=panic@1"), &options);
        wait_for("a warning", || {
            let warning = format!("the {} can't be written", fault.replace('-', " "));
            server.stderr().contains(&warning).then_some(())
        });
        let report = store.load_products(&[gift_card("NEW")]);
        server.wait_for_loaded(&report);
        store.key("later", &[]);
        drop(wait_for_files(&store, server));
        // The next start has them.
        let server = serve(&store, "", &options);
        assert!(server.stderr().contains("\"made_from\":\"snapshot file\""));
        assert_eq!(server.get(&key, "/v2/product/NEW").status, 200);
    }
}

#[test]
fn panic_while_storing_key_use_leaves_a_clean_exit() {
    let mut setup = Setup::new("key-use=panic@1+", &[]);
    assert_eq!(setup.server.get(&setup.key, "/v2/ping").status, 200);
    setup.server.signal("TERM");
    assert_eq!(setup.server.wait(), Some(0));
    assert!(setup.server.stderr().contains("the program panicked"));
}

#[test]
fn webhooks_are_delivered_after_a_panic() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let own = delivery.options();
    let options = ["--deliver-webhooks"].into_iter();
    let options: Vec<&str> = options.chain(own.iter().map(String::as_str)).collect();
    let server = serve(&delivery.store, "webhooks=panic@1", &options);
    let endpoint = delivery.endpoint(&[]);
    wait_for("the panic", || {
        server
            .stderr()
            .contains("the program panicked")
            .then_some(())
    });
    delivery.store.load_products(&[gift_card("B")]);
    assert!(delivery.events(1).remove(0).is_signed_by(&endpoint.secret));
    assert_eq!(server.get(&delivery.key, "/v2/product/B").status, 200);
}

#[test]
fn reload_after_a_panic_succeeds() {
    let setup = Setup::new("reload=panic@1", &[]);
    setup.server.signal("HUP");
    setup.wait_for_panics(1.0);
    setup.server.signal("HUP");
    wait_for("the settings", || {
        let said = setup.server.stderr();
        said.contains("settings reloaded").then_some(())
    });
    setup.store.load(SAMPLE);
}
