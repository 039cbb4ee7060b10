//! Rules that a machine can hold (CONTRIBUTING.md, "Rules").

#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/language.rs"]
mod language;

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Maximum length of a file, in lines.
const MAX_LINES: usize = 800;

fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == ending) {
                let name = path.strip_prefix(ROOT).expect("below the root");
                let text = std::fs::read_to_string(&path).expect("a text");
                found.push((name.display().to_string(), text));
            }
        }
    }
    assert!(!found.is_empty(), "no .{ending} in {folder}");
    found
}

/// Fails with all that was found, not with the first.
fn none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn every_file_opens_with_its_purpose_and_is_short_enough() {
    let broken = ["crates", "fuzz/src", "fuzz/targets"]
        .into_iter()
        .flat_map(|folder| files(folder, "rs"))
        .filter_map(|(name, text)| {
            let lines = text.lines().count();
            match text.starts_with("//! ") {
                false => Some(format!("{name} doesn't open with `//!`")),
                true if lines > MAX_LINES => Some(format!("{name} has {lines} lines")),
                true => None,
            }
        });
    let broken: Vec<String> = broken.collect();
    none(
        "files open with their purpose, and are short enough",
        &broken,
    );
}

/// Words that a folder's files must not name.
const BANNED: &[(&str, &[&str])] = &[
    (
        "crates/model/src",
        &[
            "vitrine_wire",
            "vitrine_store",
            "std::fs",
            "std::net",
            "std::env",
            "SystemTime",
            "Timestamp::now",
            "Instant::now",
            "serde_json",
        ],
    ),
    (
        "crates/wire/src",
        &["vitrine_model", "vitrine_store", "std::fs", "std::net"],
    ),
    ("crates/store/src", &["vitrine_wire", "StatusCode"]),
    (
        "crates/client/src",
        &[
            "vitrine_ingest",
            "vitrine_model",
            "vitrine_store",
            "std::fs",
            "std::env",
        ],
    ),
    ("crates/ingest/src", &["StatusCode"]),
    (
        "crates/ingest/src/load",
        &[
            "crate::export",
            "crate::fetch",
            "crate::mirror",
            "crate::outside",
            "vitrine_client",
        ],
    ),
    (
        "crates/ingest/src/outside",
        &["vitrine_model", "vitrine_store", "crate::load"],
    ),
    ("crates/ingest/src/view", &["crate::"]),
    ("crates/server/src", &["rusqlite", "tokio_postgres"]),
    (
        "crates/server/src/http",
        &[
            "vitrine_store",
            "crate::app",
            "crate::cli",
            "crate::docs",
            "vitrine_ingest::export",
            "vitrine_ingest::fetch",
            "vitrine_ingest::load",
            "vitrine_ingest::mirror",
            "vitrine_ingest::outside",
        ],
    ),
    (
        "crates/server/src/edge",
        &[
            "vitrine_store",
            "vitrine_model",
            "vitrine_ingest",
            "crate::cli",
        ],
    ),
    (
        "crates/server/src/metrics",
        &[
            "vitrine_model",
            "vitrine_store",
            "crate::http",
            "crate::live",
            "crate::cli",
        ],
    ),
    (
        "crates/server/src/admin",
        &["vitrine_store", "vitrine_ingest", "crate::cli"],
    ),
    ("crates/server/src/browser", &["crate::cli"]),
    (
        "crates/server/src/docs",
        &[
            "vitrine_store",
            "vitrine_model",
            "crate::app",
            "crate::cli",
            "crate::http",
            "crate::live",
            "vitrine_ingest",
        ],
    ),
    (
        "crates/server/src/live",
        &[
            "StatusCode",
            "crate::http",
            "crate::cli",
            "vitrine_ingest::load",
        ],
    ),
];

#[test]
fn layers_know_only_what_lies_below() {
    let mut broken = Vec::new();
    for (folder, words) in BANNED {
        for (name, text) in files(folder, "rs") {
            let named = words.iter().filter(|word| text.contains(**word));
            broken.extend(named.map(|word| format!("{name} names {word}")));
        }
    }
    for (name, text) in files("crates/ingest/src", "rs") {
        let asks = ["mirror/", "outside/"];
        let asks = asks
            .iter()
            .any(|place| name.contains(&format!("src/{place}")));
        if text.contains("vitrine_client") && !asks {
            broken.push(format!("{name} names vitrine_client"));
        }
    }
    for (name, text) in files("crates/server/src", "rs") {
        // The last one prints programs, in which Go calls it so.
        let speaks_http = [
            "http/",
            "admin/",
            "browser/",
            "webhooks/listen.rs",
            "docs/snippets/languages.rs",
        ]
        .iter()
        .any(|place| name.contains(&format!("src/{place}")));
        if text.contains("StatusCode") && !speaks_http {
            broken.push(format!("{name} names StatusCode"));
        }
        if text.contains("vitrine_client") && !name.contains("src/cli/") {
            broken.push(format!("{name} names vitrine_client"));
        }
    }
    none(
        "only the store knows SQL, only http, admin and browser know statuses, only commands ask as clients, the model is pure",
        &broken,
    );
}

#[test]
fn commands_print_through_one_place() {
    let streams = [
        "println!",
        "eprint!",
        "eprintln!",
        "io::stdout()",
        "io::stderr",
    ];
    // The one place; logs, whose lines are escaped; and a test's own words.
    let may = [
        "cli/output.rs",
        "cli/logging.rs",
        "http/access_log/mod.rs",
        "limits/script.rs",
    ];
    let broken: Vec<String> = ["crates/ingest/src", "crates/server/src"]
        .into_iter()
        .flat_map(|folder| files(folder, "rs"))
        .filter(|(name, text)| {
            streams.iter().any(|stream| text.contains(stream))
                && !may.iter().any(|file| name.ends_with(file))
        })
        .map(|(name, _)| name)
        .collect();
    none(
        "what steers a terminal is escaped in cli/output.rs",
        &broken,
    );
}

#[test]
fn every_route_is_called_by_a_test() {
    let routes = std::fs::read_to_string(Path::new(ROOT).join("openapi/routes.txt"));
    let tests = files("crates/server/tests/it", "rs");
    let is_called = |route: &str| {
        let fixed = route
            .trim_start_matches("GET ")
            .split('{')
            .next()
            .unwrap_or(route);
        tests
            .iter()
            .any(|(_, text)| text.contains(&format!("\"{fixed}")))
    };
    let routes = routes.expect("the list of routes");
    let uncalled = routes.lines().filter(|route| !is_called(route));
    let uncalled: Vec<String> = uncalled.map(str::to_owned).collect();
    none("a route without a test", &uncalled);
}

/// Returns the texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
