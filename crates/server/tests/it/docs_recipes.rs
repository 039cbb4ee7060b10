//! The programs and parameters that the documentation prints for languages other than the shell's: each program is run as
//! printed, if its language is installed.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::docs_code::pages;
use crate::docs_site::Page;
use crate::harness::{Server, Store, gift_card, skipped, text};

/// A recipe.
struct Recipe {
    /// The language of its block.
    language: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const fn recipe(
    language: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> Recipe {
    Recipe {
        language,
        program,
        arguments,
    }
}

/// Recipes that print the same.
const RECIPES: [Recipe; 5] = [
    recipe("js", "node", &["recipe.mjs"]),
    recipe("python", "python3", &["recipe.py"]),
    recipe("go", "go", &["run", "recipe.go"]),
    recipe("php", "php", &["recipe.php"]),
    recipe("ruby", "ruby", &["recipe.rb"]),
];

const JAVA: Recipe = recipe("java", "java", &["Recipe.java", "BRIARWICK-GB"]);

/// Programs of the guides: page, language of the block, and file. Rust's are compiled into this program.
const PROGRAMS: [(&str, &str, &str); 16] = [
    ("/docs/recipes", "js", "recipe.mjs"),
    ("/docs/recipes", "python", "recipe.py"),
    ("/docs/recipes", "go", "recipe.go"),
    ("/docs/recipes", "php", "recipe.php"),
    ("/docs/recipes", "ruby", "recipe.rb"),
    ("/docs/recipes", "java", "Recipe.java"),
    ("/docs/caching", "js", "revalidate.mjs"),
    ("/docs/caching", "python", "revalidate.py"),
    ("/docs/caching", "go", "revalidate.go"),
    ("/docs/caching", "php", "revalidate.php"),
    ("/docs/caching", "ruby", "revalidate.rb"),
    ("/docs/changes", "js", "keep_copy.mjs"),
    ("/docs/changes", "python", "keep_copy.py"),
    ("/docs/webhooks", "js", "receive.mjs"),
    ("/docs/webhooks", "python", "receive.py"),
    ("/docs/webhooks", "ruby", "receive.rb"),
];

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
    printed_in(&pages(server), path, language).to_owned()
}

fn printed_in<'p>(pages: &'p [(String, Page)], path: &str, language: &str) -> &'p str {
    let page = pages.iter().find(|(own, _)| own == path);
    let (_, page) = page.expect("the page");
    // Requests in this language are printed, too.
    let is_program = |(own, meta, _): &&(String, Option<String>, String)| {
        own == language && meta.as_deref() != Some("request")
    };
    let block = page.code.iter().find(is_program);
    &block.unwrap_or_else(|| panic!("{path}: no {language}")).2
}

/// Writes all programs of the guides, as printed, into one folder, as readers do: none may hide a module that another imports.
pub fn write_programs(server: &Server, directory: &Path) {
    let pages = pages(server);
    for (path, language, file) in PROGRAMS {
        let code = printed_in(&pages, path, language);
        std::fs::write(directory.join(file), code).expect("a file");
    }
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

/// Writes all programs, and returns the commands that run the recipes whose language is installed.
fn commands(server: &Server, directory: &Path, recipes: &[Recipe]) -> Vec<(&'static str, Command)> {
    write_programs(server, directory);
    let is_there = |recipe: &&Recipe| is_installed(recipe.language, recipe.program, "the recipe");
    let command = |recipe: &Recipe| {
        let mut command = Command::new(recipe.program);
        command.args(recipe.arguments);
        (recipe.language, command)
    };
    recipes.iter().filter(is_there).map(command).collect()
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
fn python_programs_hide_no_standard_module() {
    if !is_installed("python", "python3", "the names of programs") {
        return;
    }
    // Since Python 3.10.
    let names = "import sys; print(*getattr(sys, 'stdlib_module_names', sys.builtin_module_names))";
    let output = Command::new("python3").args(["-c", names]).output();
    let modules = text(&output.expect("it runs").stdout);
    let modules: Vec<&str> = modules.split_whitespace().collect();
    assert!(modules.contains(&"sys"), "{modules:?}");
    let files = PROGRAMS.iter().map(|(_, _, file)| *file);
    let mut names = files.filter_map(|file| file.strip_suffix(".py"));
    let hidden = names.find(|name| modules.contains(name));
    assert!(hidden.is_none(), "{hidden:?} is a module of Python's own");
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
