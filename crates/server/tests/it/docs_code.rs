//! The code blocks of the documentation: every line of shell is run, and every printed answer compared, on the sample
//! catalog and on others.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use vitrine_wire::error::ErrorType;

use crate::docs_site::{Page, page};
use crate::harness::{SAMPLE, Server, Store, gift_card, skipped, text};
use crate::walks::RECORDED;

/// All pages with their addresses.
pub fn pages(server: &Server) -> Vec<(String, Page)> {
    let mut paths = vec!["/docs".to_owned()];
    paths.extend(
        [
            "products",
            "filters",
            "paging",
            "changes",
            "webhooks",
            "texts",
            "caching",
            "versions",
            "limits",
            "keys",
            "clients",
            "recipes",
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

/// Separates the output of blocks.
const SEPARATOR: &str = "=== next block ===\n";

/// Makes `curl` print the status of each request to standard error, and nothing else there.
const SHELL: &str = "set -eu\ncurl() { command curl --silent --show-error --write-out '%{stderr}STATUS %{http_code}\\n' \"$@\"; }\n";

/// A page as a script, with the outcome that it promises.
#[derive(Default)]
struct Script {
    text: String,
    statuses: Vec<String>,
    /// Printed answers by the number of their block of shell.
    answers: Vec<(usize, Value)>,
}

impl Script {
    fn of(path: &str, page: Page) -> Self {
        let mut script = Self {
            text: SHELL.to_owned(),
            ..Self::default()
        };
        let mut blocks = 0;
        for (language, meta, code) in page.code {
            match (language.as_str(), meta.as_deref()) {
                ("sh", status) => {
                    let requests = code.matches("curl ").count();
                    assert!(requests > 0, "{path}: {code}");
                    // Of several requests all but the last succeed.
                    let good = std::iter::repeat_n("200".to_owned(), requests - 1);
                    script.statuses.extend(good);
                    script.statuses.push(status.unwrap_or("200").to_owned());
                    script.text += &format!("{code}printf '{}\\n'\n", SEPARATOR.trim_end());
                    blocks += 1;
                }
                ("json", Some("answer")) => {
                    let answer = serde_json::from_str(&code);
                    let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}: {code}"));
                    script.answers.push((blocks - 1, answer));
                }
                _ => assert!(!code.contains("curl "), "{path}: not run: {code}"),
            }
        }
        script
    }
}

/// Returns true if a value is as a page prints it: `"…"` stands for any value, at the end of an array for any
/// number of elements like those before it, as a name for more members.
fn is_as_printed(printed: &Value, value: &Value) -> bool {
    match (printed, value) {
        (Value::String(any), _) if any == "…" => true,
        (Value::Array(printed), Value::Array(values)) => match printed.as_slice() {
            [like, Value::String(any)] if any == "…" => {
                values.iter().all(|value| is_as_printed(like, value))
            }
            printed => {
                printed.len() == values.len()
                    && printed.iter().zip(values).all(|(a, b)| is_as_printed(a, b))
            }
        },
        (Value::Object(printed), Value::Object(values)) => {
            let is_there = |(name, printed): (&String, &Value)| {
                name == "…" || values.get(name).is_some_and(|v| is_as_printed(printed, v))
            };
            let has_more = printed.contains_key("…");
            printed.iter().all(is_there) && (has_more || printed.len() == values.len())
        }
        _ => printed == value,
    }
}

/// Runs every page's lines in order, with nothing in the environment but keys.
fn follow_guides(store: &Store) {
    if Command::new("jq").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no jq");
        return skipped("the lines of the guides: there is no jq");
    }
    let key = store.key("reader", &[]);
    let test_key = store.key("tester", &["--test"]);
    let server = store.serve();
    let (mut requests, mut answers) = (0, 0);
    for (path, page) in pages(&server) {
        let script = Script::of(&path, page);
        let directory = tempfile::tempdir().expect("a directory");
        let output = Command::new("sh")
            .args(["-c", &script.text])
            .current_dir(directory.path())
            .env("VITRINE_KEY", &key)
            .env("VITRINE_TEST_KEY", &test_key)
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{path}: {errors}\n{}", script.text);
        let statuses: Vec<&str> = errors
            .lines()
            .map(|line| line.trim_start_matches("STATUS "))
            .collect();
        assert_eq!(statuses, script.statuses, "{path}:\n{}", script.text);
        let printed = text(&output.stdout);
        let outputs: Vec<&str> = printed.split(SEPARATOR).collect();
        for (block, answer) in &script.answers {
            let value = serde_json::from_str(outputs[*block]);
            let value = value.unwrap_or_else(|error| panic!("{path}: {error}: {printed}"));
            assert!(
                is_as_printed(answer, &value),
                "{path}: {answer:#}\n{value:#}"
            );
        }
        requests += statuses.len();
        answers += script.answers.len();
    }
    // So that the test can't pass by finding none.
    assert!(requests > 40 && answers >= 4, "{requests}, {answers}");
}

#[test]
fn guide_lines_work_on_the_sample_catalog() {
    follow_guides(&Store::sample());
}

#[test]
fn guide_lines_work_on_the_recorded_catalog() {
    if !Path::new(RECORDED).exists() {
        return skipped("the guides on recorded products, which aren't there");
    }
    let store = Store::new();
    store.load(RECORDED);
    follow_guides(&store);
}

/// One product that can't be ordered, of a payout type added later, without countries or categories, whose texts try to
/// be taken for something else.
fn lonely() -> Value {
    let mut product = gift_card("~._-");
    product["name"] = json!("\"after\":\"NONE\" `$(exit 1)` 'name'");
    product["payout_type"] = json!("prepaid_card");
    product["prepaid_card"] = json!({"code": "NONE", "after": "NONE", "cursors": {"after": null}});
    product["is_orderable"] = json!(false);
    product["categories"] = json!([]);
    product["countries_redeemable_in"] = json!([]);
    product
        .as_object_mut()
        .expect("an object")
        .remove("gift_card");
    product
}

#[test]
fn guide_lines_work_on_one_product_without_countries() {
    follow_guides(&Store::of(&[lonely()]));
}

#[test]
fn guide_lines_work_on_a_category_of_special_characters() {
    let mut product = gift_card("ONE");
    product["categories"] = json!(["=a&b=\"c\" 'd' $(exit 1) %ZZ+é"]);
    follow_guides(&Store::of(&[product]));
}

#[test]
fn pages_without_a_key_do_not_depend_on_the_catalog() {
    let public_url = "https://catalog.example";
    let (empty, sample) = (Store::new(), Store::sample());
    empty.key("nobody", &[]);
    let (without, with) = (empty.serve_as(public_url), sample.serve_as(public_url));
    let catalog = std::fs::read_to_string(SAMPLE).expect("a catalog");
    let codes: Vec<String> = catalog
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a product")["code"].to_string())
        .map(|code| code.trim_matches('"').to_owned())
        .collect();
    assert!(codes.len() > 50);
    for (path, _) in pages(&with) {
        let html = text(&with.send("GET", &path, &[]).body);
        assert_eq!(html, text(&without.send("GET", &path, &[]).body), "{path}");
        // The examples of the reference are the OpenAPI document's.
        let named = codes.iter().find(|code| html.contains(*code));
        assert!(
            path == "/docs/reference" || named.is_none(),
            "{path}: {named:?}"
        );
    }
}
