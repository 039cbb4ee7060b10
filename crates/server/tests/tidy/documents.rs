//! Documents: paths, citations and links in them lead to something.

use std::path::{Component, Path, PathBuf};

use super::{ROOT, files, none, quoted};

#[test]
fn every_command_is_in_the_justfile() {
    let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).expect("a file");
    let recipes = read("justfile");
    let mut missing = Vec::new();
    for script in std::fs::read_dir(Path::new(ROOT).join("ci")).expect("a folder") {
        let name = script.expect("a file").file_name();
        let path = format!("ci/{}", name.display());
        // Parts of commands: installed by them, read by them.
        let is_part = path.contains('.') || ["ci/steps", "ci/tool"].contains(&&*path);
        let is_run = recipes
            .lines()
            .any(|line| line.split_whitespace().any(|word| word == path));
        if !is_part && !is_run {
            missing.push(path);
        }
    }
    none("commands that the justfile doesn't name", &missing);
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
    let mut documents = files("docs", "md");
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(name)).expect("a document");
        documents.push((name.to_owned(), text));
    }
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
