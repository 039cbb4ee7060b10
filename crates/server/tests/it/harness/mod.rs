//! Runs the real program as its users do: stores with commands on them, servers, HTTP to the letter.
//!
//! - `server`: a running server, and the client that speaks to it
//! - `browsed`: the catalog browser's pages
//! - `console`: operators who are signed in to it
//! - `feed`: a client of the changes feed, and its copy
//! - `receiver`: receivers of webhooks
//! - `redis`: a Redis of a test's own
//! - `reply`: an answer
//! - `scrape`: what `/metrics` says
//! - `tls`: clients that speak TLS, and HTTP/2 over it
//! - `web`: another server, which ours asks
//! - `database`: databases of PostgreSQL; `packed`: files with packed documents
//!
//! With `VITRINE_TEST_STORE=postgres` stores are databases of PostgreSQL, each of its own.

pub mod browsed;
pub mod console;
pub mod feed;
pub mod receiver;
mod redis;
mod reply;
mod scrape;
pub mod server;
mod tls;
pub mod web;

#[path = "../../../../store/tests/support/database.rs"]
mod database;
#[path = "../../../../store/tests/support/packed.rs"]
mod packed;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::document::{PackedDocument, unpack};

pub use database::Database;
pub use redis::Redis;
pub use reply::Reply;
pub use scrape::{Scrape, scrape};
pub use server::{Headers, KeepAlive, Server};
pub use tls::{Certificate, Http2, TlsStream, block_on, read};
pub use web::{Page, Web};

/// The sample catalog.
pub const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/catalog.ndjson");

/// Puts `other` in the place of `text` in all documents of a store's file.
pub fn overwrite_documents(file: &Path, text: &str, other: &str) {
    let sql = "update product_document \
               set document = pack_document(replace(unpack_document(document), ?1, ?2)) \
               where instr(unpack_document(document), ?1) > 0";
    let changed = packed::connect(file).execute(sql, [text, other]);
    assert!(changed.expect("the SQL runs") > 0, "{text} is there");
}

/// Returns letters that can't be packed to less than six bits each.
pub fn random_letters(count: usize, seed: u64) -> String {
    const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    let mut state = seed | 1 << 40;
    let mut letter = || {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[usize::from(state as u8 % 64)])
    };
    (0..count).map(|_| letter()).collect()
}

/// Lets the guard pass all loads of tests: most tests replace catalogs by others on purpose.
pub const ALLOW_ALL: [&str; 16] = [
    "--allow",
    "retire=100%",
    "--allow",
    "not-orderable=100%",
    "--allow",
    "states=100%",
    "--allow",
    "emptied-lists=100%",
    "--allow",
    "emptied-fields=100%",
    "--allow",
    "currencies=100%",
    "--allow",
    "amounts=100%",
    "--allow",
    "discounts=100%",
];

/// Timeout of what must come at once.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns true if the stores of this run are databases.
pub fn are_databases() -> bool {
    let kind = std::env::var("VITRINE_TEST_STORE");
    kind.is_ok_and(|kind| match kind.as_str() {
        "postgres" => true,
        "sqlite" => false,
        other => panic!("VITRINE_TEST_STORE is `{other}`; expected `postgres` or `sqlite`"),
    })
}

/// Returns true if stores are files; if not, says that the test is skipped.
pub fn are_files(what: &str) -> bool {
    if are_databases() {
        skipped(&format!("{what}: it is about stores that are files"));
    }
    !are_databases()
}

/// A store, a directory of its own, and the commands on it.
pub struct Store {
    directory: TempDir,
    url: String,
    database: Option<Database>,
}

impl Store {
    /// A place for a store; the first command makes it.
    pub fn new() -> Self {
        let mut store = Self::at(String::new());
        store.database =
            are_databases().then(|| Database::create().expect("a PostgreSQL for tests"));
        store.url = match &store.database {
            Some(database) => database.url.clone(),
            None => format!("sqlite:{}", store.path("vitrine.db").display()),
        };
        store
    }

    /// The store at an address.
    pub fn at(url: String) -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            url,
            database: None,
        }
    }

    /// A store that holds the sample catalog.
    pub fn sample() -> Self {
        let store = Self::new();
        store.load(SAMPLE);
        store
    }

    /// A store that holds these products.
    pub fn of(products: &[Value]) -> Self {
        let store = Self::new();
        store.load_products(products);
        store
    }

    /// Runs SQL on the store, as something other than Vitrine would. Tables are named alike in both kinds of stores.
    pub fn sql(&self, statement: &str) {
        match &self.database {
            Some(database) => {
                database.run(&format!("set search_path = vitrine; {statement}"));
            }
            None => {
                let file = packed::connect(&self.path("vitrine.db"));
                file.execute_batch(statement).expect("the SQL runs");
            }
        }
    }

    /// Sets the documents of versions, as something other than Vitrine would: to an SQL expression, given that of the document.
    pub fn set_document(&self, value: impl Fn(&str) -> String, condition: &str) {
        let which =
            format!("product_version_id in (select id from product_version where {condition})");
        let Some(database) = &self.database else {
            let value = value("unpack_document(document)");
            self.sql(&format!(
                "update product_document set document = pack_document({value}) where {which}"
            ));
            return;
        };
        // PostgreSQL has no function that packs.
        let run = |sql: &str| database.run(&format!("set search_path = vitrine; {sql}"));
        for id in run(&format!(
            "select product_version_id from product_document where {which}"
        )) {
            let row = format!("where product_version_id = {id}");
            let packed = run(&format!(
                "select encode(document, 'hex') from product_document {row}"
            ));
            let digits = packed[0].as_bytes().chunks_exact(2);
            let packed: Vec<u8> = digits
                .map(|pair| std::str::from_utf8(pair).expect("digits"))
                .map(|pair| u8::from_str_radix(pair, 16).expect("a byte"))
                .collect();
            let document = unpack(&packed).expect("a packed document");
            let document = run(&format!(
                "select {}",
                value(&format!("$d${document}$d$::text"))
            ));
            let packed = PackedDocument::pack(document[0].as_bytes()).expect("a packed document");
            let packed = Hexadecimal(packed.as_bytes());
            run(&format!(
                "update product_document set document = decode('{packed}', 'hex') {row}"
            ));
        }
    }

    /// A file in the store's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file into the store's directory.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// The store's address.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The store's database, where it is one.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    /// A command on the store, not yet run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vitrine"));
        command.args(arguments).env("VITRINE_STORE", &self.url);
        command
    }

    /// Runs a command on the store.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("vitrine runs")
    }

    /// Runs a command that must succeed; returns what it prints.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Runs a command that must succeed and prints JSON; returns that.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(arguments)).expect("JSON")
    }

    /// Returns the number of revisions.
    pub fn revisions(&self) -> usize {
        let history = self.json(&["history", "--json"]);
        history.as_array().expect("a list").len()
    }

    /// Loads a file that must be taken; returns the report.
    pub fn load(&self, file: impl AsRef<Path>) -> Value {
        let file = file.as_ref().display().to_string();
        let arguments = [&["load", "--json", &file], &ALLOW_ALL[..]].concat();
        self.json(&arguments)
    }

    /// Loads products that must be taken.
    pub fn load_products(&self, products: &[Value]) -> Value {
        let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
        // A name of its own: tests load from several threads.
        let file = tempfile::NamedTempFile::new_in(self.directory.path()).expect("a file");
        std::fs::write(file.path(), lines.join("\n")).expect("a file");
        self.load(file.path())
    }

    /// Tries to load a text; returns the exit code and the report.
    pub fn try_load(&self, content: impl AsRef<[u8]>) -> (i32, Value) {
        let file = self.write("tried.json", content);
        let file = file.display().to_string();
        let output = self.run(&[&["load", "--json", &file], &ALLOW_ALL[..]].concat());
        let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code().unwrap_or(-1), report)
    }

    /// Makes a key; returns it. `options` are those of `keys create`.
    pub fn key(&self, label: &str, options: &[&str]) -> String {
        let arguments = [&["keys", "create", "--json", "--label", label], options].concat();
        let made = self.json(&arguments);
        made["key"].as_str().expect("a key").to_owned()
    }

    /// Serves the store.
    pub fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// Serves the store with more options; an empty one, if there is none.
    pub fn serve_with(&self, options: &[&str]) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--create"]);
        command.args(options);
        Server::start(command)
    }

    /// Serves a copy of the store, in which texts lost their beginning and can't be unpacked. The store must be a file.
    pub fn serve_with_damaged_texts(&self) -> Server {
        let copy = self.path("copy.db");
        self.ok(&["backup", &copy.display().to_string()]);
        let sql = "update markdown_text set markdown = cast(substr(markdown, 5) as blob)";
        let damaged = packed::connect(&copy).execute(sql, []);
        assert!(damaged.expect("the SQL runs") > 0, "nothing to damage");
        self.serve_copy(&copy)
    }

    /// Serves a copy of the store, in which other bytes are in the place of some. The store must be a file.
    pub fn serve_damaged(&self, whole: &[u8], damaged: &[u8]) -> Server {
        let copy = self.path("copy.db");
        self.ok(&["backup", &copy.display().to_string()]);
        let mut bytes = std::fs::read(&copy).expect("a copy");
        let places: Vec<usize> = (0..bytes.len())
            .filter(|at| bytes[*at..].starts_with(whole))
            .collect();
        assert!(!places.is_empty(), "nothing to damage");
        for at in places {
            bytes[at..][..whole.len()].copy_from_slice(damaged);
        }
        std::fs::write(&copy, bytes).expect("a copy");
        self.serve_copy(&copy)
    }

    fn serve_copy(&self, copy: &Path) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("VITRINE_STORE", format!("sqlite:{}", copy.display()));
        Server::start(command)
    }

    /// Serves the store under a public address, which isn't where it listens.
    pub fn serve_as(&self, public_url: &str) -> Server {
        self.serve_with(&["--public-url", public_url])
    }
}

/// Says that a test, or a part of it, was skipped: past the test runner, which keeps what passing tests
/// print to itself.
pub fn skipped(what: &str) {
    let line = format!("SKIPPED: {what}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("written");
}

/// Names of a product's texts in the contract.
pub const TEXT_NAMES: [&str; 7] = [
    "description",
    "disclaimer",
    "refund_policy",
    "reissuance_policy",
    "terms_buyer",
    "terms_consumer",
    "redemption_instructions",
];

/// Bytes as text, for messages.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until `look` finds something.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A valid gift card, to change at will.
pub fn gift_card(code: &str) -> Value {
    serde_json::json!({
        "name": format!("Product {code}"),
        "code": code,
        "currency": "EUR",
        "state": "LIVE",
        "is_orderable": true,
        "payout_type": "gift_card",
        "categories": ["fashion"],
        "countries_redeemable_in": ["DE"],
        "customer_service": {"phone_number": null, "website_url": null},
        "discount_multiplier": "0.05",
        "availability": "realtime",
        "gift_card": {
            "denominations": {
                "type": "fixed",
                "minimum_value": "10.00",
                "maximum_value": "50.00",
                "available_list": ["10.00", "25.00", "50.00"],
            },
            "assets": {"card_image_url": null, "icon_image_url": null, "primary_color": null},
            "balance_check_url": null,
            "expiry": {"date_policy": null, "in_months": 12, "type": "from-issue-date"},
            "redeemable_at": "all",
            "website_url": null,
            "barcode_format": null,
            "e_code_usage_type": "url-recommended",
            "content_resources": {
                "description_md": null,
                "disclaimer_md": null,
                "refund_policy_md": null,
                "reissuance_policy_md": null,
                "terms_buyer_md": null,
                "terms_consumer_md": null,
                "redemption_instructions_md": null,
                "locale": "en_GB",
            },
        },
    })
}
