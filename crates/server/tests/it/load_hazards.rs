//! Loads that meet trouble: another load, a kill while they read, a full disk. What is live afterwards is
//! one catalog or the other, whole. More trouble is in `tests/faults`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{
    ALLOW_ALL, Server, Store, are_files, gift_card, random_letters, skipped, text,
};
use crate::products::{assert_holds, served};

/// Writes a catalog of `count` products that differ from those of another `name`.
fn catalog(store: &Store, name: &str, count: u64) -> PathBuf {
    let line = |index: u64| {
        let mut product = gift_card(&format!("P{index:05}"));
        product["name"] = json!(name);
        // Letters that no store can pack into much less.
        product["gift_card"]["expiry"]["date_policy"] = random_letters(1_000, index).into();
        product.to_string()
    };
    let lines: Vec<String> = (0..count).map(line).collect();
    store.write(&format!("{name}.ndjson"), lines.join("\n"))
}

fn start_load(store: &Store, file: &Path) -> Child {
    let file = file.display().to_string();
    let mut command = store.command(&[&["load", "--json", &file], &ALLOW_ALL[..]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("vitrine runs")
}

#[test]
fn concurrent_loads_leave_one_whole_catalog() {
    let mut busy = 0;
    for round in 0..10 {
        let store = Store::new();
        if round % 2 == 0 {
            // Otherwise the two make the store itself at once.
            store.load_products(&[gift_card("BEFORE")]);
        }
        let one = catalog(&store, "one", 60);
        let two = catalog(&store, "two", 80);
        let loads = [&one, &two].map(|file| start_load(&store, file));
        for load in loads {
            let output = load.wait_with_output().expect("an end");
            if !output.status.success() {
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert!(said.contains("the store is locked by"), "{round}: {said}");
                busy += 1;
            }
        }
        let list = served(&store, "/v2/product");
        let [first, second] = [&one, &two].map(|file| {
            let alone = Store::new();
            alone.load(file);
            served(&alone, "/v2/product")
        });
        assert!(
            list == first || list == second,
            "round {round}: a mix of both"
        );
    }
    println!("{busy} of 20 loads were told that another one is writing");
}

/// After a load of `new` over `old` was killed: the live catalog is one of the two. Makes it `old`
/// again; returns whether it was `new`.
fn was_new(store: &Store, old: &Path, when: &str) -> bool {
    let report = store.load(old);
    let counts = &report["counts"];
    let all = &report["records"];
    let zero = json!(0);
    assert_eq!(
        (&counts["created"], &counts["retired"]),
        (&zero, &zero),
        "{when}: {report}"
    );
    let is_old = (&counts["unchanged"], &counts["changed"]) == (all, &zero);
    let is_new = (&counts["unchanged"], &counts["changed"]) == (&zero, all);
    assert!(is_old || is_new, "{when}: a mix: {report}");
    is_new
}

#[test]
fn load_killed_while_it_reads_leaves_the_old_catalog() {
    let store = Store::new();
    let old = catalog(&store, "old", 500);
    let new = catalog(&store, "new", 500);
    store.load(&old);
    // It has had so many bytes of its input, and waits for more.
    let content = std::fs::read(&new).expect("a file");
    for part in 0..=4 {
        let mut command = store.command(&["load", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("vitrine runs");
        let mut stdin = child.stdin.take().expect("piped");
        stdin
            .write_all(&content[..content.len() * part / 4])
            .expect("written");
        child.kill().expect("killed");
        child.wait().expect("an end");
        drop(stdin);
        assert!(!was_new(
            &store,
            &old,
            &format!("after {part}/4 of the input")
        ));
    }
    assert_holds(&store, &old, "killed while reading");
}

/// A small file system of its own, which nobody else sees; it goes with its owner.
struct SmallDisk {
    holder: Child,
}

impl SmallDisk {
    /// Mounts it on `directory`; `None` where this process may not.
    fn mount(directory: &Path) -> Option<Self> {
        let script = "mount -t tmpfs -o size=6m tmpfs \"$1\" && echo mounted && exec cat";
        let mut holder = Command::new("unshare")
            .args(["-m", "sh", "-c", script, "sh"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        let stdout = holder.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut said).expect("a pipe");
        let disk = Self { holder };
        (said == "mounted\n").then_some(disk)
    }

    /// The command, run where the disk can be seen.
    fn within(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.args(["-m", "-t", &self.holder.id().to_string()]);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            inside.env(name, value.expect("a value"));
        }
        inside
    }

    fn run(&self, command: &Command) -> Output {
        self.within(command).output().expect("nsenter runs")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn full_disk_fails_the_load_and_nothing_else() {
    if !are_files("a full disk fails the load and nothing else") {
        return;
    }
    let files = Store::new();
    let disk = Store::new();
    let Some(small) = SmallDisk::mount(&disk.path("")) else {
        skipped("a full disk; it takes root, `unshare -m` and `mount -t tmpfs`");
        return;
    };
    let load =
        |file: &Path| small.run(&disk.command(&["load", "--json", &file.display().to_string()]));
    let revision = |output: &Output| -> Value {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        report["revision"]["number"].clone()
    };
    let old = catalog(&files, "old", 100);
    assert_eq!(revision(&load(&old)), 1);
    let made = small.run(&disk.command(&["keys", "create", "--json", "--label", "reader"]));
    let key: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let key = key["key"].as_str().expect("a key");
    let server = Server::start(small.within(&disk.command(&["serve", "--listen", "127.0.0.1:0"])));
    let before = server.get(key, "/v2/product");
    assert_eq!(before.codes().len(), 100);
    // Outside, the disk can't be seen: what follows happens on it.
    assert!(!disk.path("vitrine.db").exists());
    let large = catalog(&files, "large", 6_000);
    for attempt in 0..3 {
        let output = load(&large);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{attempt}: {said}");
        assert!(
            said.contains("is full") && said.contains("nothing was changed"),
            "{said}"
        );
        assert_eq!(
            server.get(key, "/v2/product").body,
            before.body,
            "{attempt}"
        );
    }
    // The same is live still, for a new process as well; and what has room can be loaded.
    assert_eq!(revision(&load(&old)), Value::Null);
    let next = catalog(&files, "next", 120);
    assert_eq!(revision(&load(&next)), 2);
    server.wait_for_revision(2);
    assert_eq!(server.get(key, "/v2/product").codes().len(), 120);
}

#[test]
fn pipe_without_a_writer_is_told() {
    let store = Store::new();
    let pipe = store.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let mut load = start_load(&store, &pipe);
    let mut said = BufReader::new(load.stderr.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    assert!(
        line.contains("/pipe\" is a pipe; waiting for a program"),
        "{line}"
    );
    std::fs::write(&pipe, gift_card("A").to_string()).expect("it is read");
    assert!(load.wait().expect("it ends").success());
}
