//! Requests in other languages than the shell's: each program that a page prints is run, as printed, after the lines of
//! shell that make the same request, and has to print the same answer.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::docs_code::{follow_guides, lonely};
use crate::docs_recipes::{is_installed, printed};
use crate::harness::{Store, text};

/// A language that requests are shown in.
pub struct Language {
    /// Name in the class of its blocks.
    pub name: &'static str,
    ending: &'static str,
    program: &'static str,
    arguments: &'static str,
}

const LANGUAGES: [Language; 5] = [
    language("js", "mjs", "node", ""),
    language("python", "py", "python3", ""),
    language("go", "go", "go", "run "),
    language("php", "php", "php", ""),
    language("ruby", "rb", "ruby", ""),
];

const fn language(
    name: &'static str,
    ending: &'static str,
    program: &'static str,
    arguments: &'static str,
) -> Language {
    Language {
        name,
        ending,
        program,
        arguments,
    }
}

/// A program of a page, in a file.
pub struct Snippet {
    file: PathBuf,
    command: String,
    /// The file with the answer that the block of shell got, if it wrote one.
    answer: String,
}

/// Returns the path of the file for the answer that a block of shell writes into a file.
pub fn answer_file(block: usize, directory: &Path) -> String {
    let name = format!("answer-{block}");
    directory.join(name).display().to_string()
}

impl Snippet {
    /// Writes the program that makes the request of a block.
    pub fn write(language: &Language, block: usize, code: &str, directory: &Path) -> Self {
        let Language {
            ending,
            program,
            arguments,
            ..
        } = language;
        let file = directory.join(format!("snippet-{block}.{ending}"));
        std::fs::write(&file, code).expect("a file");
        let command = format!("{program} {arguments}{}", file.display());
        Self {
            file,
            command,
            answer: answer_file(block, directory),
        }
    }

    /// Returns the answer to the same request that the block of shell wrote into a file, if it did.
    pub fn kept_answer(&self) -> Option<String> {
        std::fs::read_to_string(&self.answer).ok()
    }

    /// Returns the line of shell that runs it, and keeps what it prints beside it.
    pub fn line(&self) -> String {
        let (command, file) = (&self.command, self.file.display());
        format!("if {command} >{file}.out 2>{file}.err; then : >{file}.good; fi\n")
    }

    /// Fails unless the program printed this answer, as an error if it is one.
    pub fn check(&self, path: &str, answer: &str) {
        let read = |ending: &str| {
            let file = format!("{}.{ending}", self.file.display());
            std::fs::read_to_string(file).unwrap_or_default()
        };
        let (printed, errors) = (read("out"), read("err"));
        let is_good = Path::new(&format!("{}.good", self.file.display())).exists();
        let code = std::fs::read_to_string(&self.file).unwrap_or_default();
        let told = format!("{path}: {}\n{code}\n{printed}\n{errors}", self.command);
        let expected: Result<Value, _> = serde_json::from_str(answer);
        if let Some(kind) = expected
            .as_ref()
            .ok()
            .and_then(|error| error["type"].as_str())
        {
            assert!(!is_good && errors.contains(kind), "{told}");
            return;
        }
        assert!(is_good, "{told}");
        match expected {
            Ok(expected) => {
                // Behind the status and headers, if these are printed, too.
                let start = printed.rfind("\n{").map_or(0, |at| at + 1);
                let body = if printed.starts_with('{') {
                    &*printed
                } else {
                    &printed[start..]
                };
                let body: Result<Value, _> = serde_json::from_str(body);
                let body = body.unwrap_or_else(|error| panic!("{error}: {told}"));
                assert_eq!(lasting(body), lasting(expected), "{told}");
            }
            // Markdown.
            Err(_) => assert!(printed.trim_end().ends_with(answer.trim_end()), "{told}"),
        }
    }
}

/// Returns an answer without the token of the changes feed, which may be another one each time.
fn lasting(mut answer: Value) -> Value {
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("next");
    }
    answer
}

/// Returns the languages that are installed.
fn installed() -> Vec<Language> {
    let is_there =
        |language: &Language| is_installed(language.name, language.program, "requests in guides");
    LANGUAGES.into_iter().filter(is_there).collect()
}

#[test]
fn snippets_print_the_answers_of_the_sample_catalog() {
    follow_guides(&Store::sample(), &installed());
}

#[test]
fn snippets_print_the_answers_of_one_product() {
    follow_guides(&Store::of(&[lonely()]), &installed());
}

#[test]
fn programs_that_keep_tags_get_a_304() {
    for (store, products) in [(Store::sample(), 2), (Store::of(&[lonely()]), 1)] {
        let key = store.key("reader", &[]);
        let server = store.serve();
        let directory = tempfile::tempdir().expect("a directory");
        for language in installed() {
            let code = printed(&server, "/docs/caching", language.name);
            let snippet = Snippet::write(&language, 0, &code, directory.path());
            let output = Command::new("sh")
                .args(["-c", &snippet.command])
                .env("VITRINE_URL", format!("http://{}/v2", server.address))
                .env("VITRINE_KEY", &key)
                .stdin(Stdio::null())
                .output()
                .expect("it runs");
            let expected = format!("200\n{products}\n304\n{products}\n");
            let errors = text(&output.stderr);
            assert_eq!(
                text(&output.stdout),
                expected,
                "{}: {errors}",
                language.name
            );
        }
    }
}
