//! Rules of language that a machine can hold: how doc comments begin, and how long test names are.

use super::{files, none};

/// Folders with sources, those of other workspaces included.
const SOURCES: [&str; 5] = [
    "crates",
    "fuzz/src",
    "fuzz/targets",
    "bench/runner/src",
    "bench/axum-services/src",
];

/// Maximum length of a test's name, in characters.
const MAX_TEST_NAME: usize = 60;

/// First words that a doc comment must not have: it begins with a verb or a noun phrase.
const QUESTION_WORDS: [&str; 11] = [
    "What", "Where", "Whether", "How", "Who", "Which", "Whose", "Whom", "Why", "When", "That",
];

/// Returns all source files.
fn sources() -> impl Iterator<Item = (String, String)> {
    SOURCES.into_iter().flat_map(|folder| files(folder, "rs"))
}

/// Returns the text of a line that is part of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then(|| text.trim())
}

/// Returns the line numbers at which a doc comment, or its section of errors or panics, begins with a question word.
fn question_lines(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_start = true;
    for (number, line) in (1..).zip(source.lines()) {
        let Some(text) = doc_text(line) else {
            is_start = true;
            continue;
        };
        let is_heading = ["# Errors", "# Panics"].contains(&text);
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next();
        if is_start && word.is_some_and(|word| QUESTION_WORDS.contains(&word)) {
            found.push(number);
        }
        is_start = is_heading || (is_start && text.is_empty());
    }
    found
}

#[test]
fn doc_comments_begin_with_no_question_word() {
    let broken: Vec<String> = sources()
        .flat_map(|(name, text)| {
            let lines = question_lines(&text).into_iter();
            lines.map(move |line| format!("{name}:{line}"))
        })
        .collect();
    none(
        "doc comments begin with a verb or a noun phrase, and errors with `If`",
        &broken,
    );
}

/// Returns the names of all tests in a source file.
fn test_names(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let code = line.trim_start_matches("async ");
        if let Some(rest) = code.strip_prefix("fn ") {
            if is_test {
                found.extend(rest.split(['(', '<']).next());
            }
            is_test = false;
        }
    }
    found
}

#[test]
fn test_names_have_at_most_60_characters() {
    let broken: Vec<String> = sources()
        .flat_map(|(name, text)| {
            let long = test_names(&text).into_iter();
            let long = long.filter(|test| test.len() > MAX_TEST_NAME);
            long.map(|test| format!("{name}: {test}"))
                .collect::<Vec<_>>()
        })
        .collect();
    none("a test's name is subject, condition and result", &broken);
}

#[test]
fn breaches_of_language_rules_are_found() {
    let source = "//! What it is.\n\n/// How long.\nfn a() {}\n/// Returns it.\n///\n/// # Errors\n///\n/// Where it fails.\n\
        fn b() {}\n/// Returns it.\n/// What follows is no start.\n";
    assert_eq!(question_lines(source), [1, 3, 9]);
    let tests = "#[test]\nfn one() {}\nfn helper() {}\n#[tokio::test(flavor = \"current_thread\")]\nasync fn two() {}\n";
    assert_eq!(test_names(tests), ["one", "two"]);
}
