//! A store with a past, a server over it, and what must be true of them after a fault.

use std::process::{Command, Output};
use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use vitrine_store::IfMissing;
use vitrine_store::record::Moment;
use vitrine_store::webhooks::{DeliveryUpdate, PendingEvent, Progress};

use crate::harness::{Page, Server, Store, Web, gift_card, text};
use crate::state::{State, state};

/// A command that writes.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    /// Store that it writes to: `vitrine.db` has a past, `other.db` isn't there.
    pub store: &'static str,
    /// `TEXT` stands for the digest of a live text, `WEB` for another server, `READER` for a key, `ENDPOINT` for its webhook
    /// endpoint.
    pub arguments: &'static [&'static str],
}

const fn scenario(
    name: &'static str,
    store: &'static str,
    arguments: &'static [&'static str],
) -> Scenario {
    Scenario {
        name,
        store,
        arguments,
    }
}

/// Every way to write.
pub const SCENARIOS: [Scenario; 22] = [
    scenario(
        "load",
        "vitrine.db",
        &["load", "--allow=retire=100%", "new.ndjson"],
    ),
    scenario(
        "merge",
        "vitrine.db",
        &["load", "--mode=merge", "--retire=P00", "new.ndjson"],
    ),
    scenario("rollback", "vitrine.db", &["rollback", "--yes", "1"]),
    scenario("hide", "vitrine.db", &["hide", "P04", "--note", "down"]),
    scenario("end", "vitrine.db", &["overrides", "end", "1"]),
    scenario("take-down", "vitrine.db", &["texts", "take-down", "TEXT"]),
    scenario(
        "create",
        "vitrine.db",
        &["keys", "create", "--label", "made"],
    ),
    scenario("rotate", "vitrine.db", &["keys", "rotate", "reader"]),
    scenario(
        "set",
        "vitrine.db",
        &["keys", "set", "reader", "--label", "renamed"],
    ),
    scenario(
        "assortment",
        "vitrine.db",
        &["assortments", "set", "nordic", "new.json"],
    ),
    scenario("accept", "vitrine.db", &["assortments", "accept", "--yes"]),
    scenario("texts-load", "vitrine.db", &["texts", "load", "texts"]),
    scenario(
        "texts-fetch",
        "vitrine.db",
        &["texts", "fetch", "--allow-private"],
    ),
    scenario(
        "mirror",
        "vitrine.db",
        &["mirror", "--allow=retire=100%", "--from", "WEB"],
    ),
    scenario("revoke", "vitrine.db", &["keys", "revoke", "spare"]),
    scenario(
        "operator",
        "vitrine.db",
        &["operators", "add", "ines", "--role=editor", "--proxy-only"],
    ),
    scenario(
        "webhook",
        "vitrine.db",
        &[
            "webhooks",
            "create",
            "--key",
            "READER",
            "--url",
            "https://partner.example/second",
        ],
    ),
    scenario("retry", "vitrine.db", &["webhooks", "retry", "ENDPOINT"]),
    scenario("backup", "vitrine.db", &["backup", "copy.db"]),
    scenario("restore", "vitrine.db", &["restore", "--yes", "backup.db"]),
    scenario("first-load", "other.db", &["load", "new.ndjson"]),
    scenario("first-restore", "other.db", &["restore", "first.db"]),
];

/// Exit code of a command that was done in part: webhook endpoints of a rotated key or of a backup, or the audit log, may be left out.
pub const DONE_IN_PART: i32 = 4;

/// A store, which each world begins with a copy of.
struct Template {
    store: Store,
    reader: String,
    /// The digest of a live text.
    text: String,
    /// Id of a webhook endpoint whose event waits for another attempt.
    endpoint: String,
    /// Another server, with a text and a catalog.
    web: Web,
}

/// A product with a text of its own.
fn product(number: usize, generation: &str) -> Value {
    let mut product = gift_card(&format!("P{number:02}"));
    product["name"] = json!(format!("{generation} {number}"));
    let markdown = format!("# {generation}\n\n{}", "words ".repeat(number + 1));
    product["gift_card"]["content_resources"]["description_md"] = json!(markdown);
    product
}

/// A server with a text, and with a catalog to mirror.
fn web() -> Web {
    let page = |products: &[Value], after: Option<&str>| {
        let cursors = json!({"before": after, "after": after});
        let page = json!({"catalog": products, "pagination": {"cursors": cursors}});
        let tag = format!("\"{}\"", products.len());
        Page::ok(page.to_string())
            .with("Content-Type", "application/json")
            .with("ETag", &tag)
    };
    let products = [product(3, "old"), product(4, "mirrored")];
    Web::of(&[
        ("/text.md", Page::ok("# Fetched")),
        ("/v2/product?limit=500", page(&products, Some("P04"))),
        ("/v2/product?limit=500&after=P04", page(&[], None)),
    ])
}

/// A product whose text is known by its address.
fn fetched_product(web: &Web) -> Value {
    let mut product = gift_card("P50");
    let content = &mut product["gift_card"]["content_resources"];
    let content = content.as_object_mut().expect("an object");
    content.remove("description_md");
    content.insert(
        "description_markdown_url".to_owned(),
        json!(web.url("/text.md")),
    );
    product
}

fn lines(products: impl Iterator<Item = Value>) -> String {
    products.map(|product| format!("{product}\n")).collect()
}

/// Lets an event of the store's webhook endpoint wait for another attempt, as after a failed one; returns the endpoint's id.
fn let_wait(store: &Store) -> String {
    let opened = vitrine_store::open(&store.url(), IfMissing::Refuse).expect("a store");
    let id = opened.endpoints().expect("endpoints").remove(0).id;
    let taken = opened.take_endpoints(std::slice::from_ref(&id));
    let (lease, endpoint) = taken.expect("taken").remove(0);
    let position = endpoint.progress.position;
    let progress = Progress {
        pending: Some(PendingEvent {
            id: "msg_1".to_owned(),
            body: "{}".to_owned(),
            end: position.clone(),
            failures: 1,
        }),
        failing_since: Some(Timestamp::UNIX_EPOCH),
        next_attempt_at: Some(Timestamp::now() + SignedDuration::from_hours(24)),
        position,
    };
    let update = DeliveryUpdate {
        lease,
        progress,
        attempt: None,
        disable: None,
        tested: None,
        release: true,
    };
    assert_eq!(
        opened.update_deliveries(&[update]).expect("written"),
        [true]
    );
    id
}

fn template() -> &'static Template {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let store = Store::new();
        let reader = store.key("reader", &[]);
        for _ in 0..3 {
            store.key("spare", &[]);
        }
        let first = store.write("first.ndjson", lines((0..6).map(|n| product(n, "first"))));
        store.load(first);
        // One without endpoints: a restore that creates a store places them after it.
        store.ok(&["backup", &store.path("first.db").display().to_string()]);
        let mut endpoint = store.command(&["webhooks", "create", "--key", &reader]);
        endpoint
            .args(["--url", "https://partner.example/first"])
            .current_dir(store.path(""));
        assert!(endpoint.output().expect("vitrine runs").status.success());
        let endpoint = let_wait(&store);
        store.ok(&["backup", &store.path("backup.db").display().to_string()]);
        let rules = store.write("old.json", r#"{"allow": [{"codes": ["P03"]}]}"#);
        store.ok(&["assortments", "set", "nordic", &rules.display().to_string()]);
        store.write("new.json", r#"{"allow": [{"codes": ["P03", "P04"]}]}"#);
        let web = web();
        let fetched = std::iter::once(fetched_product(&web));
        let old = (0..8).map(|n| product(n, "old")).chain(fetched);
        let old = store.write("old.ndjson", lines(old));
        store.load(old);
        store.ok(&["set", "P05", "discount_multiplier=0.02"]);
        store.ok(&["set", "P06", "categories+=sale"]);
        // P00 to P02 go (or stay, in a merge), P03 stays as it is, the others change, two come.
        let of = |n| if n == 3 { "old" } else { "new" };
        store.write("new.ndjson", lines((3..10).map(|n| product(n, of(n)))));
        store.write("next.ndjson", lines((2..7).map(|n| product(n * 2, "next"))));
        let opened = vitrine_store::open(&store.url(), IfMissing::Refuse).expect("a store");
        let code = "P04".parse().expect("a code");
        let found = opened.product(&code, Moment::Live).expect("read");
        let text = found.expect("it is live").own_texts[0].digest.to_string();
        Template {
            store,
            reader,
            text,
            endpoint,
            web,
        }
    })
}

/// A store of its own with the template's past, and a scenario for it.
pub struct World {
    pub store: Store,
    pub scenario: Scenario,
}

impl World {
    pub fn new(scenario: Scenario) -> Self {
        let store = Store::new();
        let template = template();
        for name in [
            "vitrine.db",
            "vitrine.db-webhooks",
            "vitrine-webhooks.key",
            "backup.db",
            "first.db",
            "old.ndjson",
            "new.ndjson",
            "next.ndjson",
            "new.json",
        ] {
            std::fs::copy(template.store.path(name), store.path(name)).expect("a copy");
        }
        std::fs::create_dir_all(store.path("texts/P05")).expect("a folder");
        store.write("texts/P05/description.md", "# Of a file");
        Self { store, scenario }
    }

    /// A command on the scenario's store, in its directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let web = template().web.url("");
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|argument| match *argument {
                "TEXT" => template().text.as_str(),
                "WEB" => &web,
                "READER" => &template().reader,
                "ENDPOINT" => &template().endpoint,
                other => other,
            })
            .collect();
        let mut command = self.store.command(&arguments);
        // What waits in files is on the same disk, and no proxy is between this and the other server.
        command.env("TMPDIR", self.store.path(""));
        command.env("NO_PROXY", "*");
        command.env("VITRINE_MIRROR_KEY", "partner.secret");
        command.env("VITRINE_STORE", format!("sqlite:{}", self.scenario.store));
        command.current_dir(self.store.path(""));
        command
    }

    /// The scenario's command.
    pub fn scenario(&self) -> Command {
        self.command(self.scenario.arguments)
    }

    /// Returns the states that the scenario can change: of its store, and of the backup it makes.
    pub fn state(&self) -> [State; 2] {
        [self.scenario.store, "copy.db"].map(|name| state(&self.store.path(name)))
    }

    /// A server over the store with a past.
    pub fn serve(&self) -> Server {
        self.store.serve_as("https://vitrine.test")
    }

    /// Checks the store, and the backup, by the program's own word.
    pub fn assert_clean(&self, when: &str) {
        for name in ["vitrine.db", "other.db", "copy.db"] {
            if self.store.path(name).exists() {
                let mut check = self.command(&["check", "--json"]);
                check.env("VITRINE_STORE", format!("sqlite:{name}"));
                let found = check.output().expect("vitrine runs");
                let said = text(&found.stdout);
                assert_eq!(
                    said,
                    "{\"clean\":true,\"problems\":[]}\n",
                    "{when}: {name}: {}",
                    text(&found.stderr)
                );
            }
        }
    }

    /// Loads the next catalog, which must work; returns the report.
    pub fn load_next(&self, when: &str) -> Value {
        let mut next = self.command(&["load", "--allow=retire=100%", "--json", "next.ndjson"]);
        let next = next.output();
        let next = next.expect("vitrine runs");
        assert!(next.status.success(), "{when}: {}", text(&next.stderr));
        serde_json::from_slice(&next.stdout).expect("a report")
    }
}

/// The key that opens every world's server.
pub fn reader() -> &'static str {
    &template().reader
}

/// Returns the answer of a server over the store with a past.
pub fn answer(server: &Server) -> String {
    let reply = server.get(&template().reader, "/v2/product?limit=500");
    assert_eq!(reply.status, 200, "{}", text(&reply.body));
    text(&reply.body)
}

/// The two states that a scenario may leave, and what a server may answer meanwhile.
pub struct Allowed {
    pub old: [State; 2],
    pub new: [State; 2],
    pub answers: [String; 2],
}

impl Allowed {
    /// Runs the scenario without a fault. Returns what it left, and its words on standard error.
    pub fn by(scenario: Scenario) -> (Self, String) {
        let world = World::new(scenario);
        let old = world.state();
        let before = answer(&world.serve());
        let mut command = world.scenario();
        let done = command.env("VITRINE_FAIL_POINT", "trace").output();
        let done = done.expect("vitrine runs");
        let said = text(&done.stderr);
        assert!(done.status.success(), "{}: {said}", scenario.name);
        let allowed = Self {
            old,
            new: world.state(),
            answers: [before, answer(&world.serve())],
        };
        assert!(allowed.old != allowed.new, "{} does nothing", scenario.name);
        (allowed, said)
    }

    /// Returns true if the scenario was done wholly, false if not at all; panics if it was done in part.
    pub fn is_new(&self, world: &World, when: &str) -> bool {
        let state = world.state();
        let is_known = state == self.old || state == self.new;
        let [known, found] = [&self.old, &state].map(|state| state.concat());
        let differs = |line: &&String| !known.contains(line);
        let more: Vec<_> = found.iter().filter(differs).collect();
        assert!(
            is_known,
            "{when}: neither the old state nor the new: {} instead of {} parts, of which differ {more:#?}",
            found.len(),
            known.len()
        );
        state == self.new
    }

    /// Looks whether what a command says of itself is so, and helps: done where it says so, as before
    /// where it failed, or one of the two where that can't be known. Returns whether it was done.
    pub fn assert_honest(&self, world: &World, output: &Output, when: &str) -> bool {
        let said = text(&output.stderr);
        let is_new = self.is_new(world, when);
        match output.status.code() {
            Some(0) => assert!(is_new, "{when}: it says that it was done: {said}"),
            Some(DONE_IN_PART) => assert!(is_new && said.contains(", but "), "{when}: {said}"),
            Some(1) if said.contains("while committing") => {
                assert!(said.contains("vitrine check"), "{when}: {said}");
            }
            // What it was given; nothing had begun.
            Some(1) if said.contains("can't read ") => {
                assert!(!is_new, "{when}: it says that it failed: {said}");
            }
            Some(1) => {
                assert!(!is_new, "{when}: it says that it failed: {said}");
                assert!(said.contains("nothing was changed"), "{when}: {said}");
                assert!(said.contains("try again"), "{when}: {said}");
            }
            other => panic!("{when}: ended with {other:?}: {said}"),
        }
        assert!(!said.contains("panicked"), "{when}: {said}");
        is_new
    }
}
