//! Documents: paths, citations and links in them lead to something.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use super::{ROOT, files, none, quoted};

/// Returns all documents with their names: those of the root, and those below `docs`.
fn documents() -> Vec<(String, String)> {
    let mut documents = files("docs", "md");
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(name)).expect("a document");
        documents.push((name.to_owned(), text));
    }
    documents
}

/// Maximum lengths in lines: a stranger reads these first.
const MAX_DOCUMENT_LINES: &[(&str, usize)] = &[
    ("README.md", 70),
    ("ARCHITECTURE.md", 140),
    ("CONTRIBUTING.md", 100),
    ("docs", 2_400),
];

#[test]
fn documents_stay_within_their_length() {
    let documents = documents();
    let mut broken = Vec::new();
    for (place, max) in MAX_DOCUMENT_LINES {
        let below = documents.iter().filter(|(name, _)| name.starts_with(place));
        let lines: usize = below.map(|(_, text)| text.lines().count()).sum();
        if lines > *max {
            broken.push(format!("{place} has {lines} lines, and may have {max}"));
        }
    }
    none("documents that grew", &broken);
}

#[test]
fn documents_were_merged_to_their_end() {
    let is_mark = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    let merged = documents().into_iter();
    let broken = merged.filter(|(_, text)| text.lines().any(is_mark));
    none(
        "documents with marks of a merge",
        &broken.map(|(name, _)| name).collect::<Vec<_>>(),
    );
}

/// Maximum length of a line of prose, in characters; rows of tables and code may be longer.
const MAX_PROSE: usize = 120;

#[test]
fn prose_wraps_at_120_characters() {
    let mut broken = Vec::new();
    for (name, text) in documents() {
        let mut is_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            is_code ^= line.starts_with("```");
            let is_prose = !is_code && !line.starts_with("    ") && !line.starts_with(['|', '<']);
            if is_prose && line.chars().count() > MAX_PROSE {
                broken.push(format!("{name}:{number}"));
            }
        }
    }
    none("lines of prose that are too long", &broken);
}

#[test]
fn documents_name_only_what_is_there() {
    let mut broken = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(document)).expect("a document");
        for quoted in quoted(&text) {
            let is_path = [
                "crates/",
                "fixtures/",
                "openapi/",
                "ci/",
                "docs/",
                "deploy/",
                "fuzz/",
                ".ci/",
            ]
            .iter()
            .any(|folder| quoted.starts_with(folder));
            let path = quoted.split([' ', '*', '\n']).next().unwrap_or_default();
            if is_path && !Path::new(ROOT).join(path).exists() {
                broken.push(format!("{document} names {path}"));
            }
        }
    }
    none("documents that name what is gone", &broken);
}

/// Returns true if a quoted text looks like the path of a module or folder without its root: `http/versions`.
fn is_short_path(quoted: &str) -> bool {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        !name.is_empty() && name.chars().all(is_part)
    };
    // What is built lies in `target`.
    quoted.contains('/') && !quoted.starts_with("target/") && quoted.split('/').all(is_name)
}

/// Returns the identifiers in a quoted text: `a_name`, or the parts of `Type::a_name`.
fn identifiers(quoted: &str) -> Vec<&str> {
    let is_identifier = |name: &&str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_part)
    };
    let parts: Vec<&str> = quoted.split("::").collect();
    let is_code = parts.len() > 1 || quoted.contains('_');
    match is_code && parts.iter().all(is_identifier) {
        true => parts,
        false => Vec::new(),
    }
}

#[test]
fn code_named_by_documents_exists() {
    let sources: Vec<_> = ["crates", "fuzz"]
        .into_iter()
        .flat_map(|folder| files(folder, "rs"))
        .collect();
    let is_path = |path: &str| {
        let is_at = |source: &str, end: &str| source.contains(&format!("/{path}{end}"));
        Path::new(ROOT).join(path).exists()
            || sources
                .iter()
                .any(|(source, _)| is_at(source, ".rs") || is_at(source, "/"))
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: HashSet<&str> = sources
        .iter()
        .filter(|(source, _)| !source.ends_with("tidy/documents.rs"))
        .flat_map(|(_, text)| text.split(|c| !is_part(c)))
        .collect();
    let is_function = |name: &str| {
        let heads = ["(", "<"].map(|end| format!("fn {name}{end}"));
        let has = |text: &str| heads.iter().any(|head| text.contains(head));
        sources.iter().any(|(_, text)| has(text))
    };
    let mut broken = Vec::new();
    let mut found = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(document)).expect("a document");
        for quoted in quoted(&text) {
            let parts = identifiers(quoted);
            let is_gone = match (is_short_path(quoted), &parts[..]) {
                (true, _) => !is_path(quoted),
                (false, [of, function]) if function.starts_with(char::is_lowercase) => {
                    !words.contains(of) || !is_function(function)
                }
                (false, parts) => parts.iter().any(|part| !words.contains(part)),
            };
            found += usize::from(is_short_path(quoted) || !parts.is_empty());
            if is_gone {
                broken.push(format!("{document} names {quoted}"));
            }
        }
    }
    none("documents that name code that is gone", &broken);
    assert!(found > 40, "{found}");
}

#[test]
fn code_in_quoted_texts_is_recognised() {
    assert!(is_short_path("http/versions") && is_short_path("live/follow_catalog"));
    for other in [
        "http",
        "/readyz",
        "texts/DIGEST.md",
        "ci/fuzz minimise",
        "//!",
    ] {
        assert!(!is_short_path(other), "{other}");
    }
    assert_eq!(identifiers("checkpoint_log"), ["checkpoint_log"]);
    assert_eq!(identifiers("Serve::faults"), ["Serve", "faults"]);
    for other in ["load", "Debug", "a_b c", "VITRINE_SEED=N", "x-y_z"] {
        assert!(identifiers(other).is_empty(), "{other}");
    }
}

#[test]
fn code_named_with_its_file_is_in_that_file() {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut broken = Vec::new();
    let mut found = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(document)).expect("a document");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts: Vec<&str> = text.split('`').collect();
        // `name` in `file`
        for three in parts.windows(3) {
            let [name, " in ", path] = three else {
                continue;
            };
            let name = name.rsplit("::").next().unwrap_or_default();
            if !path.starts_with("crates/") || !path.ends_with(".rs") || !name.chars().all(is_part)
            {
                continue;
            }
            let source = std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_default();
            found += 1;
            if !source.split(|c| !is_part(c)).any(|word| word == name) {
                broken.push(format!("{document} names {name} in {path}"));
            }
        }
    }
    none("documents that name code in the wrong file", &broken);
    assert!(found >= 3, "{found}");
}

/// Returns the anchor of a Markdown heading, as code hosts make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || "-_".contains(c) => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[test]
fn contract_citations_resolve() {
    let chapters = files("docs/contract", "md");
    let is_there = |citation: &str| {
        let (path, section) = citation.split_once('#').unwrap_or((citation, ""));
        let chapter = chapters.iter().find(|(name, _)| name == path);
        chapter.is_some_and(|(_, text)| {
            let headings = text.lines().filter(|line| line.starts_with("## "));
            section.is_empty()
                || headings
                    .into_iter()
                    .any(|line| anchor(&line[3..]) == section)
        })
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "./#-_".contains(c);
    let mut broken = Vec::new();
    let mut resolved = 0;
    for (name, text) in ["crates", "fuzz/src"]
        .into_iter()
        .flat_map(|folder| files(folder, "rs"))
    {
        for rest in text.split(concat!("(", "docs/contract/")).skip(1) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let citation = format!("docs/contract/{}", rest[..end].trim_end_matches('.'));
            match is_there(&citation) {
                true => resolved += 1,
                false => broken.push(format!("{name} cites {citation}")),
            }
        }
        // Documents outside the repository: a reader can't follow the citation.
        for gone in ["specification", "decisions"] {
            let cited = [" ", ", "].map(|end| format!("({gone}{end}"));
            if cited.iter().any(|citation| text.contains(citation)) {
                broken.push(format!("{name} cites the {gone}"));
            }
        }
    }
    none("citations of the contract that lead nowhere", &broken);
    assert!(resolved > 40, "{resolved}");
}

/// Returns the targets of all links in a Markdown text that lead into the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains([' ', ':']))
}

/// Returns `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn links_between_documents_lead_to_a_file_and_heading() {
    let documents = documents();
    let headings = |path: &str| {
        let (_, text) = documents.iter().find(|(name, _)| name == path)?;
        let lines = text.lines().filter(|line| line.starts_with('#'));
        let anchors = lines.map(|line| anchor(line.trim_start_matches('#').trim()));
        Some(anchors.collect::<Vec<_>>())
    };
    let mut broken = Vec::new();
    let mut resolved = 0;
    for (name, text) in &documents {
        for link in links(text) {
            let (path, section) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(name).parent().expect("a folder");
            let target = match path {
                "" => name.clone(),
                path => normal(&folder.join(path)).display().to_string(),
            };
            let exists = Path::new(ROOT).join(&target).exists();
            let known = headings(&target).is_none_or(|anchors| {
                section.is_empty() || anchors.iter().any(|anchor| anchor == section)
            });
            match exists && known {
                true => resolved += 1,
                false => broken.push(format!("{name} links to {link}")),
            }
        }
    }
    none("links that lead nowhere", &broken);
    assert!(resolved > 50, "{resolved}");
}
