//! What the documentation shows to be typed: every line is run.

use std::process::{Command, Stdio};

use vitrine_wire::error::ErrorType;

use crate::docs_site::{Page, page};
use crate::harness::{Server, Store, skipped, text};

/// All pages, one by one.
fn blocks(server: &Server) -> Vec<(String, Page)> {
    let mut paths = vec!["/docs".to_owned()];
    paths.extend(
        [
            "products",
            "filters",
            "paging",
            "texts",
            "caching",
            "versions",
            "limits",
            "keys",
            "errors",
            "reference",
        ]
        .map(|page| format!("/docs/{page}")),
    );
    paths.extend(
        ErrorType::ALL
            .iter()
            .map(|kind| format!("/docs/errors/{}", kind.as_str())),
    );
    let read = |path: String| {
        let reply = server.send("GET", &path, &[]);
        assert_eq!(reply.status, 200, "{path}");
        (path, page(&text(&reply.body)))
    };
    paths.into_iter().map(read).collect()
}

/// A reader with keys, made before the server starts: it takes new ones up a little later.
struct Reader {
    key: String,
    test_key: String,
}

impl Reader {
    fn of(store: &Store) -> Self {
        Self {
            key: store.key("reader", &[]),
            test_key: store.key("tester", &["--test"]),
        }
    }

    /// A program with the reader's keys, in a directory of its own.
    fn command(&self, program: &str, directory: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env("VITRINE_KEY", &self.key)
            .env("VITRINE_TEST_KEY", &self.test_key)
            .stdin(Stdio::null());
        command
    }
}

/// Has `curl` tell the status of each request on standard error, and nothing else there.
const SHELL: &str = "set -eu\ncurl() { command curl --silent --show-error --write-out '%{stderr}STATUS %{http_code}\\n' \"$@\"; }\n";

#[test]
fn every_curl_line_gets_the_status_that_it_promises() {
    let store = Store::sample();
    let reader = Reader::of(&store);
    let server = store.serve();
    let mut lines = 0;
    for (path, page) in blocks(&server) {
        let mut script = SHELL.to_owned();
        let mut promised = Vec::new();
        for (language, status, code) in page.code {
            if language != "sh" {
                assert!(
                    !code.contains("curl "),
                    "{path}: this `curl` isn't run: {code}"
                );
                continue;
            }
            let requests = code.matches("curl ").count();
            assert!(requests > 0, "{path}: {code}");
            lines += requests;
            // Of several lines all but the last succeed.
            promised.extend(std::iter::repeat_n("200".to_owned(), requests - 1));
            promised.push(status.unwrap_or_else(|| "200".to_owned()));
            script.push_str(&code);
        }
        let directory = tempfile::tempdir().expect("a directory");
        let mut shell = reader.command("bash", directory.path());
        let output = shell.args(["-c", &script]).output().expect("bash runs");
        let said = text(&output.stderr);
        assert!(output.status.success(), "{path}: {said}\n{script}");
        let statuses: Vec<&str> = said
            .lines()
            .map(|line| line.trim_start_matches("STATUS "))
            .collect();
        assert_eq!(statuses, promised, "{path}:\n{script}");
    }
    // So that the test can't pass by finding none.
    assert!(lines > 40, "{lines}");
}

#[test]
fn a_cursor_of_the_guides_is_the_one_that_the_page_before_gave() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let mut cursors = 0;
    for (path, page) in blocks(&server) {
        for (_, _, code) in page.code {
            for target in code
                .split('\'')
                .filter(|text| text.contains("/v2/product?"))
            {
                let (_, target) = target.split_once("/v2").unwrap_or_default();
                let Some((before, cursor)) = target.split_once("&after=") else {
                    continue;
                };
                let answer = server.get(&key, &format!("/v2{before}"));
                let after = &answer.json()["pagination"]["cursors"]["after"];
                assert_eq!(after, cursor, "{path}: {target}");
                cursors += 1;
            }
        }
    }
    assert!(cursors >= 2, "{cursors}");
}

#[test]
fn the_pickers_of_the_quick_start_print_the_catalog() {
    let store = Store::sample();
    let reader = Reader::of(&store);
    let server = store.serve();
    let (_, first) = blocks(&server).swap_remove(0);
    for (language, program, file) in [
        ("python", "python3", "picker.py"),
        ("js", "node", "picker.mjs"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{program} is missing"
            );
            skipped(&format!("the picker in {language}: there is no {program}"));
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let block = first.code.iter().find(|(own, _, _)| own == language);
        let (_, _, code) = block.unwrap_or_else(|| panic!("no {language}"));
        std::fs::write(directory.path().join(file), code).expect("a file");
        let mut command = reader.command(program, directory.path());
        let output = command.arg(file).output().expect("it runs");
        let printed = text(&output.stdout);
        assert!(
            output.status.success(),
            "{language}: {}",
            text(&output.stderr)
        );
        assert!(
            printed.contains("BRIARWICK-GB") && printed.contains("GBP"),
            "{printed}"
        );
        // A gift card's amounts, a subscription's plans, a payment's range.
        for amounts in ["5.00, 10.00, 20.00", "Six letters", "1.00 to"] {
            assert!(
                printed.contains(amounts),
                "{language}: {amounts}: {printed}"
            );
        }
        assert!(!printed.contains("SAGEWHISTLE-US"), "{printed}");
    }
}
