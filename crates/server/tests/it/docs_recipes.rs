//! The programs and parameters that the documentation prints for languages other than the shell's: each program is run as
//! printed, if its language is installed.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::docs_code::pages;
use crate::harness::{Server, Store, gift_card, skipped, text};

/// A recipe.
struct Recipe {
    /// The language of its block.
    language: &'static str,
    file: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const fn recipe(
    language: &'static str,
    file: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> Recipe {
    Recipe {
        language,
        file,
        program,
        arguments,
    }
}

/// Recipes that print the same.
const RECIPES: [Recipe; 5] = [
    recipe("js", "recipe.mjs", "node", &["recipe.mjs"]),
    recipe("python", "recipe.py", "python3", &["recipe.py"]),
    recipe("go", "recipe.go", "go", &["run", "recipe.go"]),
    recipe("php", "recipe.php", "php", &["recipe.php"]),
    recipe("ruby", "recipe.rb", "ruby", &["recipe.rb"]),
];

const JAVA: Recipe = recipe(
    "java",
    "Recipe.java",
    "java",
    &["Recipe.java", "BRIARWICK-GB"],
);

/// Languages that `ci/install` brings; `ci/recipes` brings all, and says so.
const REQUIRED_IN_CI: [&str; 2] = ["js", "python"];

mod rust {
    include!("../../docs-site/recipes/recipe.rs.in");

    pub(super) fn run() {
        if let Err(error) = main() {
            panic!("{error}");
        }
    }
}

#[test]
#[ignore = "is the Rust recipe as a process of its own, which other tests here start"]
fn rust_recipe() {
    rust::run();
}

/// Returns the program that a page prints in a language.
pub fn printed(server: &Server, path: &str, language: &str) -> String {
    let (_, page) = pages(server)
        .into_iter()
        .find(|(own, _)| own == path)
        .expect("the page");
    // Requests in this language are printed, too.
    let is_program = |(own, meta, _): &(String, Option<String>, String)| {
        own == language && meta.as_deref() != Some("request")
    };
    let block = page.code.into_iter().find(is_program);
    block.unwrap_or_else(|| panic!("no {language}")).2
}

/// Returns true if the program that runs a language is installed; says so if it isn't.
pub fn is_installed(language: &str, program: &str, what: &str) -> bool {
    let argument = match language {
        "go" => "version",
        _ => "--version",
    };
    if Command::new(program).arg(argument).output().is_ok() {
        return true;
    }
    let is = |name: &str, value: &str| std::env::var(name).as_deref() == Ok(value);
    let is_required = is("CI", "true") && REQUIRED_IN_CI.contains(&language);
    assert!(
        !is_required && !is("VITRINE_RECIPES", "all"),
        "{program} is missing"
    );
    skipped(&format!("{what} in {language}: there is no {program}"));
    false
}

/// Writes the recipes whose language is installed, as printed, and returns the commands that run them.
fn commands(server: &Server, directory: &Path, recipes: &[Recipe]) -> Vec<(&'static str, Command)> {
    let mut commands = Vec::new();
    let is_there = |recipe: &&Recipe| is_installed(recipe.language, recipe.program, "the recipe");
    for recipe in recipes.iter().filter(is_there) {
        let code = printed(server, "/docs/recipes", recipe.language);
        std::fs::write(directory.join(recipe.file), code).expect("a file");
        let mut command = Command::new(recipe.program);
        command.args(recipe.arguments);
        commands.push((recipe.language, command));
    }
    commands
}

/// Returns the command that runs the Rust recipe, which is compiled into this program.
fn rust_command(server: &Server) -> Command {
    let source = include_str!("../../docs-site/recipes/recipe.rs.in");
    assert_eq!(printed(server, "/docs/recipes", "rust"), source);
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args([
        "docs_recipes::rust_recipe",
        "--exact",
        "--ignored",
        "--nocapture",
    ]);
    command
}

fn run(mut command: Command, server: &Server, key: &str, country: &str, place: &Path) -> Output {
    command
        .current_dir(place)
        .env("VITRINE_URL", format!("http://{}/v2", server.address))
        .env("VITRINE_KEY", key)
        .env_remove("COUNTRY")
        .stdin(Stdio::null());
    if !country.is_empty() {
        command.env("COUNTRY", country);
    }
    command.output().expect("it runs")
}

/// Runs all recipes but Java's, and returns what each printed.
fn outputs(server: &Server, key: &str, country: &str) -> Vec<(&'static str, Output)> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut commands = commands(server, directory.path(), &RECIPES);
    commands.push(("rust", rust_command(server)));
    let run = |(language, command)| {
        (
            language,
            run(command, server, key, country, directory.path()),
        )
    };
    commands.into_iter().map(run).collect()
}

#[test]
fn recipes_print_what_can_be_ordered_and_one_product() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let list = "/v2/product?is_orderable=true&countries_redeemable_in=GB&limit=500";
    let page = server.get(&key, list).json();
    let known = |payout_type: &str| ["gift_card", "subscription", "payment"].contains(&payout_type);
    let lines: Vec<(String, String)> = page["catalog"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|product| product["payout_type"].as_str().is_some_and(known))
        .map(|product| {
            let start = format!("{} {} ", product["code"], product["name"]);
            (
                start.replace('"', ""),
                product["currency"].to_string().replace('"', ""),
            )
        })
        .collect();
    assert!(lines.len() > 5);
    for (language, output) in outputs(&server, &key, "GB") {
        let printed = text(&output.stdout);
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{language}: {errors}\n{printed}");
        let mut rest = printed.lines();
        for (start, end) in &lines {
            let is_line = |line: &str| line.starts_with(start) && line.ends_with(end);
            assert!(rest.any(is_line), "{language}: {start}: {printed}");
        }
        // Amounts of a gift card, plans of a subscription, the range of a payment; then the texts of the first one.
        let text_start = format!(
            "{} en_GB <p>",
            lines[0].0.split(' ').next().unwrap_or_default()
        );
        for part in ["5.00, 10.00, 20.00", "Six letters", "1.00 to", &text_start] {
            assert!(printed.contains(part), "{language}: {part}: {printed}");
        }
    }
}

#[test]
fn recipes_skip_payout_types_added_later() {
    let mut product = gift_card("LATER");
    product["payout_type"] = json!("prepaid_card");
    product["prepaid_card"] = json!({"denominations": "none"});
    product
        .as_object_mut()
        .expect("an object")
        .remove("gift_card");
    let store = Store::of(&[product]);
    let key = store.key("reader", &[]);
    let server = store.serve();
    for (language, output) in outputs(&server, &key, "") {
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{language}: {errors}");
        assert!(!text(&output.stdout).contains("LATER"), "{language}");
    }
}

#[test]
fn recipes_stop_at_an_error_with_its_type() {
    let store = Store::sample();
    store.key("reader", &[]);
    let server = store.serve();
    let directory = tempfile::tempdir().expect("a directory");
    let mut outputs = outputs(&server, "no.key", "");
    for (language, command) in commands(&server, directory.path(), &[JAVA]) {
        outputs.push((
            language,
            run(command, &server, "no.key", "", directory.path()),
        ));
    }
    for (language, output) in outputs {
        let told = text(&output.stderr) + &text(&output.stdout);
        assert!(!output.status.success(), "{language}: {told}");
        assert!(
            told.contains("invalid_api_key") || told.contains("API key is wrong"),
            "{language}: {told}"
        );
    }
}

#[test]
fn recipes_retry_after_a_429_and_finish() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let quota = ["--quota", "1/1"];
    let key = store.key("reader", &quota);
    let server = store.serve();
    for (language, output) in outputs(&server, &key, "") {
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{language}: {errors}");
        let printed = text(&output.stdout);
        assert!(
            printed.contains("A Product A 10.00, 25.00, 50.00 EUR"),
            "{language}: {printed}"
        );
        assert!(printed.contains("A en_GB"), "{language}: {printed}");
    }
    let refused = server.stdout().matches("\"status\":429").count();
    assert!(refused > 0, "no request was refused");
}

#[test]
fn java_recipe_walks_all_pages_by_links() {
    let store = Store::sample();
    let key = store.key("reader", &["--quota", "1/1"]);
    let server = store.serve();
    let directory = tempfile::tempdir().expect("a directory");
    // Pages of two, so that there are links to follow.
    for (language, command) in commands(&server, directory.path(), &[JAVA]) {
        let file = directory.path().join("Recipe.java");
        let code = std::fs::read_to_string(&file).expect("a file");
        let paged = code.replace("?is_orderable=true", "?is_orderable=true&limit=6");
        assert_ne!(code, paged);
        std::fs::write(&file, paged).expect("a file");
        let output = run(command, &server, &key, "GB", directory.path());
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{language}: {errors}");
        let printed = text(&output.stdout);
        let pages: Vec<serde_json::Value> = printed
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let (product, pages) = pages.split_last().expect("answers");
        assert_eq!(product["code"], "BRIARWICK-GB");
        assert!(product["gift_card"]["content_resources"]["description_html"].is_string());
        let codes: Vec<&str> = pages
            .iter()
            .flat_map(|page| page["catalog"].as_array().expect("a list"))
            .map(|product| product["code"].as_str().expect("a code"))
            .collect();
        let all = store.key("checker", &[]);
        let list = "/v2/product?is_orderable=true&countries_redeemable_in=GB";
        let wanted = crate::harness::wait_for("the key", || {
            let reply = server.get(&all, list);
            (reply.status == 200).then(|| reply.codes())
        });
        assert!(pages.len() > 1 && codes == wanted, "{codes:?}");
    }
}

#[test]
fn parameters_of_http_libraries_are_judged_as_the_guide_says() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let (mut refused, mut taken) = (0, 0);
    for (path, page) in pages(&server) {
        if path != "/docs/clients" {
            continue;
        }
        for (_, meta, code) in page.code {
            let (status, count) = match meta.as_deref() {
                Some("refused") => (400, &mut refused),
                Some("taken") => (200, &mut taken),
                _ => continue,
            };
            for query in code.lines() {
                let reply = server.get(&key, &format!("/v2/product{query}"));
                assert_eq!(reply.status, status, "{query}: {}", text(&reply.body));
                *count += 1;
            }
        }
    }
    assert!(refused > 5 && taken > 0, "{refused}, {taken}");
}
