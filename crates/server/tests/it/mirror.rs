//! `vitrine mirror`, once and again and again: the copy answers as the original, and each round is told.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Reply, Server, Store, gift_card, text, wait_for};
use crate::mirror_source::{Fake, base, counts_rounds, mirror, mirrored, page, without_feed};

/// Public address of both, so that addresses of texts don't differ.
pub const PUBLIC_URL: &str = "https://catalog.example";

/// A served store, and a key of it.
pub fn source(store: &Store) -> (Server, String) {
    let key = store.key("mirror", &[]);
    (store.serve_as(PUBLIC_URL), key)
}

/// Every answer that depends on the catalog, with its target. `forms` are the forms of single products.
pub fn answers(server: &Server, key: &str, forms: &[&str]) -> Vec<(String, u16, Vec<u8>)> {
    let codes = server.get(key, "/v2/product").codes();
    let lists = ["", "?limit=7", "?is_orderable=true", "?limit=30&before=~"];
    let lists = lists.map(|query| format!("/v2/product{query}"));
    let others = ["/v2/product/categories", "/v2/product/countries"].map(str::to_owned);
    let product = |code: &String| {
        let target = |form: &&str| format!("/v2/product/{code}?content={form}");
        forms.iter().map(target).collect::<Vec<_>>()
    };
    let products = codes.iter().flat_map(product);
    let ask = |target: String| {
        let Reply { status, body, .. } = server.get(key, &target);
        (target, status, body)
    };
    lists
        .into_iter()
        .chain(others)
        .chain(products)
        .map(ask)
        .collect()
}

#[test]
fn mirror_with_texts_answers_as_its_source() {
    let (original, copy) = (Store::sample(), Store::new());
    let (source, key) = source(&original);
    let printed = mirrored(&copy, &format!("{}/", base(&source)), &key, &["--texts"]);
    assert_eq!(
        printed.lines().last(),
        Some("revision 1: 72 created, 0 changed, 0 retired, 0 unchanged")
    );
    let copy_key = copy.key("partner", &[]);
    let server = copy.serve_as(PUBLIC_URL);
    let forms = ["url", "md", "html"];
    let expected = answers(&source, &key, &forms);
    assert!(expected.len() > 200 && expected.iter().all(|(_, status, _)| *status == 200));
    for (own, expected) in answers(&server, &copy_key, &forms)
        .into_iter()
        .zip(expected)
    {
        assert_eq!(text(&own.2), text(&expected.2), "{}", own.0);
    }
    let note: Value = serde_json::from_str(&copy.ok(&["history", "--json"])).expect("JSON");
    assert!(
        note.to_string()
            .contains(&format!("mirror of {}\"", base(&source))),
        "{note}"
    );
}

#[test]
fn mirror_without_texts_names_the_addresses_of_its_source() {
    let (original, copy) = (Store::sample(), Store::new());
    let (source, key) = source(&original);
    mirrored(&copy, &base(&source), &key, &[]);
    let copy_key = copy.key("partner", &[]);
    let server = copy.serve_as("https://copy.example");
    let expected = answers(&source, &key, &["url"]);
    assert_eq!(answers(&server, &copy_key, &["url"]), expected);
    let lines = wait_for("the source's log", || {
        let log = source.stdout();
        log.contains("/v2/product/countries").then_some(log)
    });
    assert!(!lines.contains("/v2/texts/"), "{lines}");
}

#[test]
fn unchanged_source_makes_no_revision() {
    let (original, copy) = (Store::sample(), Store::new());
    let (source, key) = source(&original);
    mirrored(&copy, &base(&source), &key, &["--texts"]);
    let texts = |log: &str| log.matches("/v2/texts/").count();
    // Requests are logged in their order: after the ping's line those before are there.
    source.send(
        "GET",
        "/v2/ping",
        &[("X-Api-Key", &key), ("X-Request-Id", "first")],
    );
    let log = wait_for("the log", || {
        let log = source.stdout();
        log.contains("\"first\"").then_some(log)
    });
    let fetched = texts(&log);
    assert!(fetched > 50, "{fetched}");
    let report = mirrored(&copy, &base(&source), &key, &["--texts", "--json"]);
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(report["revision"], Value::Null);
    assert_eq!(report["counts"]["unchanged"], 72);
    source.send(
        "GET",
        "/v2/ping",
        &[("X-Api-Key", &key), ("X-Request-Id", "second")],
    );
    let log = wait_for("the log", || {
        let log = source.stdout();
        log.contains("\"second\"").then_some(log)
    });
    assert_eq!(texts(&log), fetched);
}

/// Mirrors until the copy holds a text: a source's feed follows its catalog a moment later.
fn mirrored_until(copy: &Store, source: &Server, key: &str, text: &str) {
    wait_for(text, || {
        mirrored(copy, &base(source), key, &["--texts"]);
        copy.ok(&["export"]).contains(text).then_some(())
    });
}

#[test]
fn shared_and_changed_texts_are_mirrored() {
    let with = |code: &str, description: Value| {
        let mut product = gift_card(code);
        product["gift_card"]["content_resources"]["description_md"] = description;
        product
    };
    let outside = "https://shop.example/terms.md";
    let mut abroad = gift_card("C");
    let content = &mut abroad["gift_card"]["content_resources"];
    *content = json!({"terms_buyer_markdown_url": outside, "locale": "en_GB"});
    let original = Store::of(&[with("A", json!("# Shared")), abroad]);
    let (source, key) = source(&original);
    let copy = Store::new();
    mirrored(&copy, &base(&source), &key, &["--texts"]);
    // B gets a text that the copy holds for A; A's own changes.
    let mut products = vec![with("A", json!("# Changed")), with("B", json!("# Shared"))];
    original.load_products(&products);
    mirrored_until(&copy, &source, &key, "# Changed");
    let copy_key = copy.key("partner", &[]);
    let server = copy.serve_as(PUBLIC_URL);
    let description = |code: &str| {
        let product = server
            .get(&copy_key, &format!("/v2/product/{code}?content=md"))
            .json();
        product["gift_card"]["content_resources"]["description_md"].clone()
    };
    assert_eq!(
        (description("A"), description("B")),
        (json!("# Changed"), json!("# Shared"))
    );
    assert_eq!(server.get(&copy_key, "/v2/product/C").status, 404);
    // A later payout type keeps its numbers to the letter.
    let detail = r##"{"n": 1.0E+2, "big": 123456789012345678901234567890, "content_resources": {"description_md": "# Later"}, "z": 1}"##;
    let mut later = gift_card("D");
    later["payout_type"] = json!("voucher");
    later
        .as_object_mut()
        .expect("an object")
        .remove("gift_card");
    products.push(later);
    let lines: Vec<String> = products.iter().map(Value::to_string).collect();
    let lines = lines.join("\n");
    let lines = format!("{},\"voucher\":{detail}}}", &lines[..lines.len() - 1]);
    original.load(original.write("later.ndjson", lines));
    mirrored_until(&copy, &source, &key, "# Later");
    server.wait_for_revision(3);
    let forms = ["url", "md", "html"];
    assert_eq!(
        answers(&server, &copy_key, &forms),
        answers(&source, &key, &forms)
    );
}

/// A mirror that goes on until its owner ends.
pub struct Running(pub Child);

impl Running {
    /// Runs a command that writes what it prints and says to these files.
    pub fn start(mut command: Command, out: &Path, errors: &Path) -> Self {
        let file = |path| Stdio::from(std::fs::File::create(path).expect("a file"));
        let child = command.stdout(file(out)).stderr(file(errors)).spawn();
        Self(child.expect("vitrine runs"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a file holds a text.
pub fn holds(path: &Path, what: &str) {
    wait_for(what, || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.contains(what).then_some(())
    });
}

#[test]
fn mirror_follows_its_source_through_failures() {
    let (original, copy) = (Store::of(&[gift_card("A")]), Store::new());
    let (source, key) = source(&original);
    let (base, address) = (base(&source), source.address.to_string());
    let metrics = copy.path("vitrine.prom");
    let metrics_file = metrics.display().to_string();
    let mut command = copy.command(&["mirror", "--from", &base, "--every", "1s", "--retries", "0"]);
    command.args(ALLOW_ALL);
    command
        .args(["--metrics-file", &metrics_file])
        .env("VITRINE_MIRROR_KEY", &key);
    let (out, errors) = (copy.path("out"), copy.path("errors"));
    let mut running = Running::start(command, &out, &errors);
    holds(
        &errors,
        "published: revision 1: 1 created, 0 changed, 0 retired, 0 unchanged\"",
    );
    holds(
        &errors,
        "unchanged: nothing to do: the catalog already has these 1 products",
    );
    original.load_products(&[gift_card("A"), gift_card("B")]);
    holds(
        &errors,
        "published: revision 2: 1 created, 0 changed, 0 retired, 0 unchanged",
    );
    holds(&metrics, "\nvitrine_mirror_products 2\n");
    // Someone else's load into the copy doesn't stay.
    copy.load_products(&[gift_card("C")]);
    holds(
        &errors,
        "published: revision 4: 2 created, 0 changed, 1 retired, 0 unchanged",
    );
    drop(source);
    holds(&errors, "failed: GET http");
    counts_rounds(&metrics, "failed", 1.0);
    original.load_products(&[gift_card("D")]);
    let _source = Server::start(original.command(&["serve", "--listen", &address]));
    holds(
        &errors,
        "published: revision 5: 1 created, 0 changed, 2 retired, 0 unchanged",
    );
    let id = running.0.id().to_string();
    let killed = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(killed.expect("kill runs").success());
    assert_eq!(running.0.wait().expect("a child").code(), Some(0));
    let errors = std::fs::read_to_string(&errors).expect("a file");
    assert!(!errors.contains(&key), "{errors}");
}

#[test]
fn foreign_revision_is_not_taken_for_the_mirrors() {
    let copy = Store::new();
    let (writer, asked) = (Store::at(copy.url()), AtomicU64::new(0));
    let fake = Fake::start(without_feed(move |target| {
        if target.contains("after=") {
            return page(&[], None);
        }
        // A round that loads asks twice. The next one has just seen that the store is as it left it.
        if asked.fetch_add(1, Ordering::Relaxed) == 2 {
            writer.load_products(&[gift_card("OTHER")]);
        }
        page(&[gift_card("A")], Some("A"))
    }));
    let mut command = copy.command(&["mirror", "--from", &fake.base(), "--every", "1s"]);
    command.args(ALLOW_ALL).env("VITRINE_MIRROR_KEY", "a.b");
    let (out, errors) = (copy.path("out"), copy.path("errors"));
    let _running = Running::start(command, &out, &errors);
    holds(&errors, "unchanged: ");
    holds(
        &errors,
        "published: revision 3: 1 created, 0 changed, 1 retired, 0 unchanged",
    );
}

/// A source of one product that removes a directory when it is asked.
fn source_that_removes(directory: &Path, product: Value) -> Fake {
    let directory = directory.to_owned();
    Fake::start(without_feed(move |target| {
        let _ = std::fs::remove_dir_all(&directory);
        match target.contains("after=") {
            true => page(&[], None),
            false => page(std::slice::from_ref(&product), Some("A")),
        }
    }))
}

#[test]
fn round_is_reported_without_its_metrics() {
    let copy = Store::of(&[gift_card("OLD")]);
    let directory = copy.path("metrics");
    let file = directory.join("vitrine.prom").display().to_string();
    let make = || std::fs::create_dir(&directory).expect("a directory");
    let mut wrong = gift_card("A");
    wrong["currency"] = json!("EURO");
    for (product, code, report, done) in [
        (wrong, 3, " in 1 records; ", "nothing was changed"),
        (
            gift_card("A"),
            1,
            "revision 2: 1 created, 0 changed, 1 retired, 0 unchanged\n",
            "the load was applied, revision 2",
        ),
    ] {
        make();
        let fake = source_that_removes(&directory, product);
        let output = mirror(&copy, &fake.base(), "a.b", &["--metrics-file", &file]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(report), "{said}");
        let told = format!("\nvitrine: {done}: can't write {file}: ");
        assert!(said.contains(&told), "{said}");
    }
    make();
    let fake = source_that_removes(&directory, gift_card("B"));
    let mut command = copy.command(&["mirror", "--from", &fake.base(), "--every", "1h"]);
    command.args(ALLOW_ALL).args(["--metrics-file", &file]);
    command.env("VITRINE_MIRROR_KEY", "a.b");
    let (out, errors) = (copy.path("out"), copy.path("errors"));
    let _running = Running::start(command, &out, &errors);
    holds(&errors, "published: revision 3: ");
    holds(&errors, "the load was applied, revision 3: can't write ");
}

/// Says that it is over when it goes.
struct OnDrop<'d>(&'d AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn mirror_never_mixes_two_catalogs() {
    let generation = |number: u64| {
        let named = |index: u64| {
            // Codes move too, so that pages begin elsewhere.
            let mut product = gift_card(&format!("P{:05}", index * 7 + number % 3));
            product["name"] = json!(format!("Generation {number}"));
            product
        };
        (0..1_100).map(named).collect::<Vec<_>>()
    };
    // The names in the copy, each once: there must be one only.
    let names = |copy: &Store| {
        let exported = copy.ok(&["export"]);
        assert_eq!(exported.lines().count(), 1_100);
        let name = |line: &str| {
            let product: Value = serde_json::from_str(line).expect("a product");
            product["name"].as_str().expect("a name").to_owned()
        };
        exported.lines().map(name).collect::<BTreeSet<_>>()
    };
    let (original, copy) = (Store::of(&generation(0)), Store::new());
    let (source, key) = source(&original);
    let (done, mut seen) = (AtomicBool::new(false), BTreeSet::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..1_000 {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                original.load_products(&generation(number));
            }
        });
        // Ends the loads, also where an assertion fails.
        let _end = OnDrop(&done);
        // Six rounds, or as many as it takes to see the source change.
        for round in 0.. {
            if round >= 6 && seen.len() > 1 {
                break;
            }
            assert!(round < 100, "the source didn't change meanwhile: {seen:?}");
            let output = mirror(&copy, &base(&source), &key, &["--json"]);
            if output.status.success() {
                let names = names(&copy);
                assert_eq!(names.len(), 1, "a mixture: {names:?}");
                seen.extend(names);
            } else {
                let said = text(&output.stderr);
                assert!(said.contains("changed during"), "{said}");
            }
        }
    });
    original.load_products(&generation(1_000));
    mirrored_until(&copy, &source, &key, "Generation 1000");
    assert_eq!(names(&copy), BTreeSet::from(["Generation 1000".to_owned()]));
}
