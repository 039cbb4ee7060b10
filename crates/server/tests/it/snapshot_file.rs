//! The snapshot file: a server starts from it where it fits, with the same answers, and from the store in any
//! doubt.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;
use vitrine_model::content::TextDigest;

use crate::harness::{Server, Store, are_files, gift_card, scrape, text, wait_for};

/// A store with a server's state directory beside it.
struct Setup {
    store: Store,
    key: String,
}

impl Setup {
    /// Enough products for several blocks, and a text.
    fn new() -> Self {
        let mut products: Vec<_> = (0..600).map(|n| gift_card(&format!("P{n:04}"))).collect();
        products[7]["gift_card"]["content_resources"]["description_md"] = json!("# Seven");
        let store = Store::of(&products);
        let key = store.key("reader", &[]);
        Self { store, key }
    }

    fn directory(&self) -> PathBuf {
        self.store.path("state")
    }

    fn file(&self) -> PathBuf {
        self.directory().join("catalog.snapshot")
    }

    fn serve(&self) -> Server {
        self.serve_as("https://catalog.example")
    }

    fn serve_as(&self, public_url: &str) -> Server {
        let directory = self.directory().display().to_string();
        let options = ["--state-dir", &directory, "--public-url", public_url];
        self.store.serve_with(&options)
    }

    /// Serves a store with this one's state directory, and an admin port.
    fn serve_watched(&self, store: &Store) -> Server {
        let directory = self.directory().display().to_string();
        let public_url = "https://catalog.example";
        let options = ["--state-dir", &directory, "--public-url", public_url];
        store.serve_with(&[&options[..], &["--admin-listen", "127.0.0.1:0"]].concat())
    }

    /// Serves until the file is written, and ends.
    fn write_file(&self) {
        // One that is there already might fit.
        let _ = fs::remove_file(self.file());
        let server = self.serve();
        wait_for("the snapshot file", || {
            server
                .stderr()
                .contains("the snapshot file is written")
                .then_some(())
        });
    }

    /// Answers of each kind.
    fn answers(&self, server: &Server) -> Vec<String> {
        let targets = [
            "/v2/product?limit=500",
            "/v2/product?limit=500&after=P0400",
            "/v2/product?countries_redeemable_in=GB&limit=7",
            "/v2/product/P0007",
            "/v2/product/P0007?content=md",
            "/v2/product/P0007?content=html",
            "/v2/product/categories",
            "/v2/product/countries",
        ];
        let answer = |target: &str| {
            let reply = server.get(&self.key, target);
            format!(
                "{} {:?} {}",
                reply.status,
                reply.header("etag"),
                text(&reply.body)
            )
        };
        targets.map(answer).to_vec()
    }

    fn damage(&self, at: impl FnOnce(usize) -> usize) {
        let mut bytes = fs::read(self.file()).expect("the file");
        let at = at(bytes.len());
        bytes[at] ^= 1;
        fs::write(self.file(), bytes).expect("the file");
    }
}

fn started_from(server: &Server) -> &'static str {
    let said = |source: &str| {
        server
            .stderr()
            .contains(&format!("\"made_from\":\"{source}\""))
    };
    match (said("snapshot file"), said("store")) {
        (true, false) => "file",
        (false, true) => "store",
        both => panic!("{both:?}: {}", server.stderr()),
    }
}

#[test]
fn start_from_the_file_gives_the_same_answers() {
    let setup = Setup::new();
    let server = setup.serve();
    assert_eq!(started_from(&server), "store");
    let expected = setup.answers(&server);
    drop(server);
    setup.write_file();
    // As left by a server that was killed while it wrote.
    let half_written = setup.directory().join(".catalog.snapshot.Ab3dE9");
    fs::write(&half_written, "half").expect("a file");
    let mode = |path: PathBuf| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode(setup.directory()), mode(setup.file())),
        (0o700, 0o600)
    );
    let server = setup.serve();
    assert_eq!(started_from(&server), "file");
    assert!(!half_written.exists(), "what was left is gone");
    assert_eq!(setup.answers(&server), expected);
}

#[test]
fn changes_since_the_snapshot_file_are_applied() {
    let setup = Setup::new();
    setup.write_file();
    let mut changed = gift_card("P0300");
    changed["name"] = json!("Changed meanwhile");
    let file = setup
        .store
        .write("changed.json", json!([changed, gift_card("Q")]).to_string());
    setup
        .store
        .ok(&["load", "--mode", "merge", &file.display().to_string()]);
    setup.store.ok(&[
        "load",
        "--mode",
        "merge",
        "--retire",
        "P0301",
        &file.display().to_string(),
    ]);
    let server = setup.serve();
    assert_eq!(started_from(&server), "file");
    let status = |code: &str| {
        server
            .get(&setup.key, &format!("/v2/product/{code}"))
            .status
    };
    assert!(text(&server.get(&setup.key, "/v2/product/P0300").body).contains("Changed meanwhile"));
    assert_eq!((status("P0301"), status("Q")), (404, 200));
    // A server without a file, which reads everything, says the same.
    let other = setup.store.serve_as("https://catalog.example");
    assert_eq!(setup.answers(&server), setup.answers(&other));
}

#[test]
fn snapshot_file_of_another_store_is_not_used() {
    let setup = Setup::new();
    setup.write_file();
    let server = setup.serve_as("https://other.example");
    assert_eq!(started_from(&server), "store");
    assert!(setup.answers(&server)[3].contains("https://other.example/v2/texts/"));
    drop(server);
    setup.write_file();
    let server = setup.serve();
    let product = server.get(&setup.key, "/v2/product/P0007").json();
    let url = &product["gift_card"]["content_resources"]["description_markdown_url"];
    setup
        .store
        .ok(&["texts", "take-down", url.as_str().expect("an address")]);
    drop(server);
    let server = setup.serve();
    assert_eq!(
        started_from(&server),
        "store",
        "a text was taken down since"
    );
    assert!(setup.answers(&server)[4].contains("\"description_md\":null"));
    drop(server);
    // Another store's file: even its products would have other versions.
    let stranger = Setup::new();
    fs::create_dir(stranger.directory()).expect("a directory");
    fs::copy(setup.file(), stranger.file()).expect("a copy");
    assert_eq!(started_from(&stranger.serve()), "store");
}

#[test]
fn start_from_the_file_keeps_its_age() {
    let setup = Setup::new();
    setup.write_file();
    let server = setup.serve_watched(&setup.store);
    assert_eq!(started_from(&server), "file");
    let revision = &server.ask_admin("GET", "/readyz").json()["revision"];
    let seconds = |of: &str| revision[of].as_i64().expect("a number");
    // One more where the clock strikes between the two.
    assert!(
        seconds("live_seconds") <= seconds("age_seconds") + 1,
        "{revision}"
    );
    let metrics = scrape(&server);
    let started = metrics.value("process_start_time_seconds");
    assert!(metrics.value("vitrine_catalog_live_timestamp_seconds") >= started);
}

#[test]
fn snapshot_file_beside_an_empty_store_is_read_once() {
    let setup = Setup::new();
    setup.write_file();
    let empty = Store::new();
    let server = setup.serve_watched(&empty);
    let last_round = || {
        let metrics = scrape(&server);
        metrics.value("vitrine_follow_last_success_timestamp_seconds{of=\"catalog\"}")
    };
    let first = last_round();
    wait_for("some rounds of following", || {
        (last_round() > first + 0.5).then_some(())
    });
    let looked = server.stderr().matches("isn't used").count();
    assert_eq!(looked, 1, "{}", server.stderr());
}

#[test]
fn restored_store_serves_no_text_from_the_file() {
    if !are_files("a file of a store that went back shows no text that was taken down") {
        return;
    }
    let setup = Setup::new();
    let mut eight = gift_card("P0008");
    eight["gift_card"]["content_resources"]["description_md"] = json!("# Eight");
    let file = setup.store.write("eight.json", eight.to_string());
    let file = file.display().to_string();
    setup.store.ok(&["load", "--mode", "merge", &file]);
    let backup = setup.store.path("backup.db");
    setup.store.ok(&["backup", &backup.display().to_string()]);
    let take_down = |markdown: &str| {
        let digest = TextDigest::of(markdown).to_string();
        setup.store.ok(&["texts", "take-down", &digest]);
    };
    take_down("# Seven");
    setup.write_file();
    // Somebody copies the store of before back, which `vitrine restore` would have noted.
    for left in ["vitrine.db-wal", "vitrine.db-shm"] {
        let _ = fs::remove_file(setup.store.path(left));
    }
    fs::copy(&backup, setup.store.path("vitrine.db")).expect("a copy");
    take_down("# Eight");
    let server = setup.serve();
    let description = |code: &str| {
        let target = format!("/v2/product/{code}?content=md");
        server.get(&setup.key, &target).json()["gift_card"]["content_resources"]["description_md"]
            .clone()
    };
    assert_eq!(description("P0008"), json!(null));
    assert_eq!(description("P0007"), json!("# Seven"));
}

#[test]
fn damaged_header_or_directory_is_not_used() {
    let setup = Setup::new();
    setup.write_file();
    let whole = fs::read(setup.file()).expect("the file");
    // Mark, format, length and checksum of the header; then the header and the first block's directory.
    let header_bytes = u64::from_le_bytes(whole[24..32].try_into().expect("8 bytes"));
    let directory = 48 + usize::try_from(header_bytes).expect("short");
    for at in [
        0,
        30,
        40,
        50,
        90,
        directory,
        directory + 40,
        directory + 4_000,
    ] {
        setup.damage(|_| at);
        let server = setup.serve();
        assert_eq!(started_from(&server), "store", "byte {at}");
        assert_eq!(server.get(&setup.key, "/v2/product/P0001").status, 200);
        drop(server);
        fs::write(setup.file(), &whole).expect("the file");
    }
    for length in [0, 47, 48, 1_000, whole.len() - 1] {
        let file = File::options()
            .write(true)
            .open(setup.file())
            .expect("the file");
        file.set_len(length as u64).expect("cut");
        assert_eq!(started_from(&setup.serve()), "store", "{length} bytes");
        fs::write(setup.file(), &whole).expect("the file");
    }
}

#[test]
fn corrupt_snapshot_data_is_never_served() {
    let setup = Setup::new();
    let expected = setup.answers(&setup.serve());
    setup.write_file();
    let whole = fs::read(setup.file()).expect("the file");
    // Eight places all over the data, which ends with the text.
    for part in 0..8 {
        setup.damage(|length| length - 1 - part * 30_000);
        let server = setup.serve_watched(&setup.store);
        assert_eq!(started_from(&server), "store", "part {part}");
        assert!(server.stderr().contains(
            "\"level\":\"ERROR\",\"fields\":{\"message\":\"the snapshot file isn't used\""
        ));
        assert_eq!(setup.answers(&server), expected, "part {part}");
        let metrics = scrape(&server);
        assert_eq!(metrics.value("vitrine_snapshot_files_damaged_total"), 1.0);
        drop(server);
        fs::write(setup.file(), &whole).expect("the file");
    }
    let server = setup.serve_watched(&setup.store);
    assert_eq!(started_from(&server), "file");
    let metrics = scrape(&server);
    assert_eq!(metrics.value("vitrine_snapshot_files_damaged_total"), 0.0);
}

#[test]
fn corrupt_snapshot_file_is_replaced_after_the_start() {
    let setup = Setup::new();
    setup.write_file();
    setup.damage(|length| length - 50_000);
    let server = setup.serve();
    let expected = setup.answers(&server);
    wait_for("the file to be written anew", || {
        server
            .stderr()
            .contains("the snapshot file is written")
            .then_some(())
    });
    drop(server);
    let server = setup.serve();
    assert_eq!(started_from(&server), "file");
    assert_eq!(setup.answers(&server), expected);
}

#[test]
fn snapshot_file_of_another_format_is_not_called_damaged() {
    let setup = Setup::new();
    setup.write_file();
    setup.damage(|_| 16);
    let server = setup.serve();
    assert_eq!(started_from(&server), "store");
    let said = server.stderr();
    assert!(said.contains("it is of another format"), "{said}");
    assert!(!said.contains("\"level\":\"ERROR\""), "{said}");
}

#[test]
fn server_continues_without_a_writable_file() {
    let setup = Setup::new();
    // A directory in the file's place can't be replaced by a file.
    fs::create_dir_all(setup.file().join("in the way")).expect("directories");
    let server = setup.serve();
    wait_for("a warning", || {
        server
            .stderr()
            .contains("the snapshot file can't be written")
            .then_some(())
    });
    assert_eq!(server.get(&setup.key, "/v2/product/P0001").status, 200);
    wait_for("nothing half-written to be left", || {
        let left = fs::read_dir(setup.directory()).expect("the directory");
        let names = left.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        (names == ["catalog.snapshot", "changes", "keys", "lock"]).then_some(())
    });
}
