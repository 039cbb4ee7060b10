//! `vitrine mirror --follow` beside a real source: the copy equals a full mirror at rest, whatever happens meanwhile.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Server, Store, gift_card, wait_for};
use crate::mirror::{PUBLIC_URL, Running, answers, holds, source};
use crate::mirror_source::{Recorder, base, counts_rounds, mirrored};

/// Options of most mirrors; the guard lets everything pass.
const OPTIONS: [&str; 3] = ["--texts", "--every", "1s"];

/// A mirror that follows a source, not yet started. Its files are `mirror.json`, `vitrine.prom`, `out` and `errors`.
pub fn command(copy: &Store, base: &str, key: &str, options: &[&str]) -> Command {
    let mut command = copy.command(&["mirror", "--from", base, "--follow"]);
    command.args(options).env("VITRINE_MIRROR_KEY", key);
    command.arg("--state-file").arg(copy.path("mirror.json"));
    command.arg("--metrics-file").arg(copy.path("vitrine.prom"));
    command
}

/// Starts it; what it says is in the file `errors`.
pub fn start(copy: &Store, command: Command) -> Running {
    Running::start(command, &copy.path("out"), &copy.path("errors"))
}

/// Follows a source with the usual options.
fn follow(copy: &Store, base: &str, key: &str) -> Running {
    let options = [&OPTIONS[..], &ALLOW_ALL].concat();
    start(copy, command(copy, base, key, &options))
}

/// Waits until a copy is what a full mirror of the source makes.
fn wait_for_equal(copy: &Store, source: &Server, key: &str) {
    let whole = Store::new();
    mirrored(&whole, &base(source), key, &["--texts"]);
    let expected = whole.ok(&["export"]);
    wait_for("the copy to equal a full mirror", || {
        (copy.ok(&["export"]) == expected).then_some(())
    });
}

/// A product with a name and a text.
fn product(code: &str, name: &str, markdown: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = json!(name);
    product["gift_card"]["content_resources"]["description_md"] = json!(markdown);
    product
}

/// Products with names and texts of one generation.
fn generation(number: usize) -> Vec<Value> {
    // Some come and go.
    let codes = (0..12).filter(|code| !(code + number).is_multiple_of(5_usize));
    codes
        .map(|code| {
            let text = format!("# Text {}", (code * number) % 7);
            product(&format!("P{code:02}"), &format!("Name {number}"), &text)
        })
        .collect()
}

#[test]
fn followed_copy_equals_a_full_mirror() {
    let original = Store::of(&[product("A", "A", "# A"), product("B", "B", "# B")]);
    let (copy, (source, key)) = (Store::new(), source(&original));
    let recorder = Recorder::start(source.address);
    let _running = follow(&copy, &recorder.base(), &key);
    let errors = copy.path("errors");
    holds(&errors, "published: revision 1: 2 created");
    let steps: [&[Value]; 4] = [
        // Created, changed, with a new text, retired.
        &[
            product("A", "A", "# A"),
            product("B", "B", "# B"),
            product("C", "C", "# A"),
        ],
        &[
            product("A", "A2", "# A"),
            product("B", "B", "# B2"),
            product("C", "C", "# A"),
        ],
        &[product("A", "A2", "# A")],
        &generation(1),
    ];
    for (products, number) in steps.into_iter().zip(2..) {
        source.wait_for_loaded(&original.load_products(products));
        holds(&errors, &format!("published: revision {number}: "));
        wait_for_equal(&copy, &source, &key);
    }
    original.ok(&["rollback", "2", "--yes"]);
    source.wait_for_revision(6);
    wait_for_equal(&copy, &source, &key);
    let listed = source.get(&key, "/v2/product/A").json();
    let content = &listed["gift_card"]["content_resources"];
    let address = content["description_markdown_url"].as_str();
    let digest = address.expect("an address").rsplit('/').next();
    let digest = digest.expect("a name").trim_end_matches(".md");
    for (command, is_shown) in [("take-down", false), ("put-back", true)] {
        original.ok(&["texts", command, digest]);
        wait_for("the source to show it", || {
            let listed = source.get(&key, "/v2/product/A").json();
            let text = &listed["gift_card"]["content_resources"]["description_markdown_url"];
            (text.is_string() == is_shown).then_some(())
        });
        wait_for_equal(&copy, &source, &key);
    }
    let copy_key = copy.key("partner", &[]);
    let forms = ["url", "md", "html"];
    assert_eq!(
        answers(&copy.serve_as(PUBLIC_URL), &copy_key, &forms),
        answers(&source, &key, &forms)
    );
    let metrics = std::fs::read_to_string(copy.path("vitrine.prom")).expect("metrics");
    for line in [
        "vitrine_mirror_following 1\n",
        "vitrine_mirror_products 3\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(
        metrics.contains("\nvitrine_mirror_lag_seconds 0."),
        "{metrics}"
    );
    assert_eq!(recorder.walks(), ["/v2/product/changes"]);
}

#[test]
fn killed_mirror_resumes_without_a_walk() {
    let original = Store::of(&generation(0));
    let (copy, (source, key)) = (Store::new(), source(&original));
    let recorder = Recorder::start(source.address);
    let mut running = follow(&copy, &recorder.base(), &key);
    holds(&copy.path("errors"), "published: revision 1: ");
    for number in 1..=15 {
        source.wait_for_loaded(&original.load_products(&generation(number)));
        // Kills it at moments that differ: while it starts, asks, loads or waits.
        std::thread::sleep(Duration::from_millis((number as u64 * 37) % 150));
        drop(running);
        running = follow(&copy, &recorder.base(), &key);
    }
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks(), ["/v2/product/changes"]);
}

#[cfg(feature = "fail-points")]
#[test]
fn mirror_killed_within_a_publish_resumes_without_a_walk() {
    // PostgreSQL commits at a point of its own.
    if !crate::harness::are_files("kills within a publish") {
        return;
    }
    let original = Store::of(&generation(0));
    let (copy, (source, key)) = (Store::new(), source(&original));
    let recorder = Recorder::start(source.address);
    let running = follow(&copy, &recorder.base(), &key);
    holds(&copy.path("errors"), "published: revision 1: ");
    drop(running);
    let options = [&OPTIONS[..], &ALLOW_ALL].concat();
    for (point, number) in [
        ("publish.begun", 1),
        ("publish.product_put", 2),
        ("publish.state_written", 3),
        ("publish.committed", 4),
        ("publish.committed", 5),
    ] {
        source.wait_for_loaded(&original.load_products(&generation(number)));
        let before = copy.revisions();
        let mut command = command(&copy, &recorder.base(), &key, &options);
        command.env("VITRINE_FAIL_POINT", format!("{point}=kill@1"));
        let mut running = start(&copy, command);
        let ended = running.0.wait().expect("a child");
        assert!(!ended.success(), "{point}: {ended}");
        let is_committed = copy.revisions() > before;
        assert_eq!(is_committed, point == "publish.committed", "{point}");
    }
    let _running = follow(&copy, &recorder.base(), &key);
    // The last commit was its own: there is nothing to do but to wait for the next one.
    source.wait_for_loaded(&original.load_products(&generation(6)));
    holds(&copy.path("errors"), "published: revision 4: ");
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks(), ["/v2/product/changes"]);
}

#[test]
fn restarted_source_is_followed_on() {
    let original = Store::of(&generation(0));
    let (copy, (mut source, key)) = (Store::new(), source(&original));
    let address = source.address.to_string();
    let recorder = Recorder::start(source.address);
    let _running = follow(&copy, &recorder.base(), &key);
    let errors = copy.path("errors");
    holds(&errors, "published: revision 1: ");
    let serve = |public_url: &str| {
        let options = ["serve", "--public-url", public_url, "--listen", &address];
        Server::start(original.command(&options))
    };
    for (signal, number) in [("TERM", 1), ("KILL", 2)] {
        source.signal(signal);
        source.wait();
        original.load_products(&generation(number));
        source = serve(PUBLIC_URL);
        wait_for_equal(&copy, &source, &key);
    }
    assert_eq!(recorder.walks(), ["/v2/product/changes"]);
    // Tokens aren't good under another public address.
    source.signal("TERM");
    source.wait();
    original.load_products(&generation(3));
    source = serve("https://other.example");
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks(), ["/v2/product/changes"; 2]);
    original.load_products(&generation(4));
    source.wait_for_revision(5);
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks().len(), 2);
}

#[test]
fn foreign_load_into_a_followed_copy_is_undone() {
    let original = Store::of(&generation(0));
    let (copy, (source, key)) = (Store::new(), source(&original));
    let recorder = Recorder::start(source.address);
    let running = follow(&copy, &recorder.base(), &key);
    holds(&copy.path("errors"), "published: revision 1: ");
    copy.load_products(&[gift_card("FOREIGN")]);
    // The source's next change shows it, and so does a restart.
    source.wait_for_loaded(&original.load_products(&generation(1)));
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks().len(), 2);
    drop(running);
    copy.load_products(&[gift_card("FOREIGN")]);
    let _running = follow(&copy, &recorder.base(), &key);
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks().len(), 3);
}

#[test]
fn refused_changes_keep_the_token() {
    let original = Store::of(&generation(0));
    let (copy, (source, key)) = (Store::new(), source(&original));
    let recorder = Recorder::start(source.address);
    let guarded = || start(&copy, command(&copy, &recorder.base(), &key, &OPTIONS));
    let running = guarded();
    let errors = copy.path("errors");
    holds(&errors, "published: revision 1: ");
    let state = || -> Value {
        let text = std::fs::read_to_string(copy.path("mirror.json")).expect("a state file");
        serde_json::from_str(&text).expect("JSON")
    };
    let before = (state()["held"].clone(), copy.ok(&["export"]));
    source.wait_for_loaded(&original.load_products(&generation(0)[..3]));
    holds(&errors, "refused: refused by the guard");
    counts_rounds(&copy.path("vitrine.prom"), "refused", 2.0);
    assert_eq!((state()["held"].clone(), copy.ok(&["export"])), before);
    drop(running);
    let allowed = [&OPTIONS[..], &["--allow", "retire=80%"]].concat();
    let _running = start(&copy, command(&copy, &recorder.base(), &key, &allowed));
    holds(
        &errors,
        "published: revision 2: 0 created, 0 changed, 6 retired",
    );
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks(), ["/v2/product/changes"]);
}

/// Number of loads, one a second.
fn loads() -> usize {
    let loads = std::env::var("VITRINE_MIRROR_SECONDS");
    loads.map_or(6, |loads| loads.parse().expect("a number of seconds"))
}

/// Prints by how much the copy was behind.
fn report(what: &str, lags: &mut [Duration]) {
    lags.sort_unstable();
    let at = |part: usize| lags.get(lags.len() * part / 100).or(lags.last());
    let percentiles = [50, 90, 99, 100].map(|part| at(part).copied().unwrap_or_default());
    let count = lags.len();
    println!("{count} {what}: behind by {percentiles:?} (p50, p90, p99, maximum)");
}

#[test]
fn copy_is_behind_steady_loads_by_less_than_a_second() {
    let original = Store::of(&generation(0));
    let (copy, (source, key)) = (Store::new(), source(&original));
    let recorder = Recorder::start(source.address);
    let mut running = follow(&copy, &recorder.base(), &key);
    holds(&copy.path("errors"), "published: revision 1: ");
    let (served, copy_key) = (copy.serve(), copy.key("partner", &[]));
    let started = Instant::now();
    let (mut lags, mut lags_of_killed) = (Vec::new(), Vec::new());
    for number in 1..=loads() {
        let products = generation(number);
        original.load_products(&products);
        let committed = Instant::now();
        let is_killed = number % 12 == 3;
        if is_killed {
            // At moments that differ: while it asks, loads or waits.
            std::thread::sleep(Duration::from_millis((number as u64 * 37) % 150));
            drop(running);
            running = follow(&copy, &recorder.base(), &key);
        }
        let path = format!(
            "/v2/product/{}",
            products[0]["code"].as_str().expect("a code")
        );
        wait_for("the copy to have the load", || {
            let answer = served.get(&copy_key, &path);
            (answer.status == 200 && answer.json()["name"] == products[0]["name"]).then_some(())
        });
        let lag = committed.elapsed();
        match is_killed {
            true => lags_of_killed.push(lag),
            false => lags.push(lag),
        }
        std::thread::sleep(Duration::from_secs(number as u64).saturating_sub(started.elapsed()));
    }
    report("loads", &mut lags);
    report("loads with a kill", &mut lags_of_killed);
    // A promise of the contract, polled to ten times its length.
    assert!(
        lags.iter().all(|lag| *lag < Duration::from_secs(10)),
        "{lags:?}"
    );
    wait_for_equal(&copy, &source, &key);
    assert_eq!(recorder.walks(), ["/v2/product/changes"]);
}
