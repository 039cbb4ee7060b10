//! The code blocks of the documentation: every line of shell is run, and every printed answer compared, on the sample
//! catalog and on others.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use vitrine_wire::error::ErrorType;

use crate::docs_site::{Page, page};
use crate::docs_snippets::{Language, Snippet, answer_file};
use crate::harness::{SAMPLE, Server, Store, gift_card, skipped, text};
use crate::walks::RECORDED;

/// Paths of guides, errors and reference below `/docs`, in reading order.
const GUIDES: [&str; 17] = [
    "",
    "/quick-start",
    "/recipes",
    "/products",
    "/filters",
    "/paging",
    "/texts",
    "/assortments",
    "/caching",
    "/changes",
    "/webhooks",
    "/keys",
    "/errors",
    "/limits",
    "/clients",
    "/versions",
    "/reference",
];

/// Operations of the reference.
const OPERATIONS: [&str; 7] = [
    "listProducts",
    "listChanges",
    "listCategories",
    "listCountries",
    "getProduct",
    "ping",
    "getText",
];

/// All pages with their addresses.
pub fn pages(server: &Server) -> Vec<(String, Page)> {
    let guides = GUIDES.iter().map(|guide| format!("/docs{guide}"));
    let operations = OPERATIONS.iter().map(|id| format!("/docs/reference/{id}"));
    let errors = ErrorType::ALL.iter();
    let errors = errors.map(|kind| format!("/docs/errors/{}", kind.as_str()));
    let paths = guides.chain(operations).chain(errors);
    let read = |path: String| {
        let reply = server.send("GET", &path, &[]);
        assert_eq!(reply.status, 200, "{path}");
        (path, page(&text(&reply.body)))
    };
    paths.map(read).collect()
}

/// Separates the output of blocks.
const SEPARATOR: &str = "=== next block ===\n";

/// Makes `curl` print the status of each request to standard error, and nothing else there.
const SHELL: &str = "set -eu\ncurl() { command curl --silent --show-error --write-out '%{stderr}STATUS %{http_code}\\n' \"$@\"; }\n";

/// A page as a script, with the outcome that it promises.
#[derive(Default)]
struct Script {
    text: String,
    /// Statuses of all requests; alternatives are separated by `/`.
    statuses: Vec<String>,
    /// Printed answers by the number of their block of shell.
    answers: Vec<(usize, Value)>,
    /// Programs that make the request of a block of shell, by its number.
    programs: Vec<(usize, Snippet)>,
}

impl Script {
    /// Reads a page. Programs in these languages become files in a directory, and run after the block whose request they
    /// make, with the variables that it has.
    fn of(path: &str, page: Page, languages: &[Language], directory: &Path) -> Self {
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
                    if let Some(file) = written_file(&code) {
                        script.text += &format!("cp {file} {}\n", answer_file(blocks, directory));
                    }
                    blocks += 1;
                }
                ("json", Some("answer")) => {
                    let answer = serde_json::from_str(&code);
                    let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}: {code}"));
                    script.answers.push((blocks - 1, answer));
                }
                (_, Some("request")) => {
                    assert!(
                        !code.contains("{base}") && !code.contains("VITRINE_URL"),
                        "{code}"
                    );
                    if let Some(language) = languages.iter().find(|own| own.name == language) {
                        let snippet = Snippet::write(language, blocks - 1, &code, directory);
                        script.text += &snippet.line();
                        script.programs.push((blocks - 1, snippet));
                    }
                }
                _ => assert!(!code.contains("curl "), "{path}: not run: {code}"),
            }
        }
        script
    }

    /// Fails unless the programs printed the answers that the blocks of shell got.
    fn check_programs(&self, path: &str, outputs: &[&str]) {
        for (block, snippet) in &self.programs {
            match snippet.kept_answer() {
                Some(answer) => snippet.check(path, &answer),
                None => snippet.check(path, body(outputs[*block])),
            }
        }
    }
}

/// Returns the file that a block writes an answer into.
fn written_file(code: &str) -> Option<&str> {
    code.split(" -o ").nth(1)?.split_whitespace().next()
}

/// Returns the body in what `curl` printed, perhaps with headers before it.
fn body(output: &str) -> &str {
    let body = output.split_once("\r\n\r\n").map(|(_, body)| body);
    body.unwrap_or(output)
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

/// Runs every page's lines in order, with nothing in the environment but keys, and the programs that make the same requests
/// in these languages.
pub fn follow_guides(store: &Store, languages: &[Language]) {
    if Command::new("jq").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no jq");
        return skipped("the lines of the guides: there is no jq");
    }
    let key = store.key("reader", &[]);
    let test_key = store.key("tester", &["--test"]);
    let server = store.serve();
    let (mut requests, mut answers, mut programs) = (0, 0, 0);
    for (path, page) in pages(&server) {
        let directory = tempfile::tempdir().expect("a directory");
        let script = Script::of(&path, page, languages, directory.path());
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
        let is_promised =
            |(promised, status): (&String, &&str)| promised.split('/').any(|one| one == *status);
        assert!(
            statuses.len() == script.statuses.len()
                && script.statuses.iter().zip(&statuses).all(is_promised),
            "{path}: {statuses:?}:\n{}",
            script.text
        );
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
        script.check_programs(&path, &outputs);
        programs += script.programs.len();
        requests += statuses.len();
        answers += script.answers.len();
    }
    // So that the test can't pass by finding none.
    assert!(requests > 40 && answers >= 4, "{requests}, {answers}");
    assert!(programs >= 40 * languages.len(), "{programs}");
}

#[test]
fn guide_lines_work_on_the_sample_catalog() {
    follow_guides(&Store::sample(), &[]);
}

#[test]
fn guide_lines_work_on_the_recorded_catalog() {
    if !Path::new(RECORDED).exists() {
        return skipped("the guides on recorded products, which aren't there");
    }
    let store = Store::new();
    store.load(RECORDED);
    follow_guides(&store, &[]);
}

/// One product that can't be ordered, of a payout type added later, without countries or categories, whose texts try to
/// be taken for something else.
pub fn lonely() -> Value {
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
    follow_guides(&Store::of(&[lonely()]), &[]);
}

#[test]
fn guide_lines_work_on_a_category_of_special_characters() {
    let mut product = gift_card("ONE");
    product["categories"] = json!(["=a&b=\"c\" 'd' $(exit 1) %ZZ+é"]);
    follow_guides(&Store::of(&[product]), &[]);
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
            path.starts_with("/docs/reference") || named.is_none(),
            "{path}: {named:?}"
        );
    }
}
