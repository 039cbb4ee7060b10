//! Search over all pages: sections of guides, errors, operations, parameters, headers and schemas.
//!
//! The index is `docs-site/index.json`, compiled in. `tests/it/docs_search.rs` makes it of the pages as readers get them,
//! and fails if it isn't up to date (`VITRINE_BLESS=1` writes it). A build script can't make it: errors, operations and
//! parameters are known only to the program that it would build. There is one implementation: the script of the pages
//! shows the links of the page that a search without script leads to.

use std::sync::OnceLock;

use askama::Template;
use serde::Deserialize;

use super::Context;

static INDEX: &str = include_str!("../../docs-site/index.json");

/// Words of a query that count; more would only cost time.
const MAX_WORDS: usize = 8;

/// Number of results at most.
const MAX_RESULTS: usize = 20;

/// Length of the text around the first hit, in bytes.
const EXCERPT_BYTES: usize = 150;

/// Section of a page, or a named thing on it.
#[derive(Deserialize)]
struct Section {
    /// Path of the page, from the public URL.
    path: String,
    /// Anchor; empty for the beginning of the page.
    anchor: String,
    /// Title of the page.
    page: String,
    /// Title of the section.
    title: String,
    text: String,
}

/// Section with its words for comparison. Lower case is that of ASCII, which moves no byte.
struct Indexed {
    section: Section,
    page: String,
    title: String,
    text: String,
}

fn index() -> &'static [Indexed] {
    static SECTIONS: OnceLock<Vec<Indexed>> = OnceLock::new();
    SECTIONS.get_or_init(|| {
        // A test reads it.
        let sections: Vec<Section> = serde_json::from_str(INDEX).unwrap_or_default();
        let indexed = |section: Section| Indexed {
            page: section.page.to_ascii_lowercase(),
            title: section.title.to_ascii_lowercase(),
            text: section.text.to_ascii_lowercase(),
            section,
        };
        sections.into_iter().map(indexed).collect()
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the words of a query, in lower case, each once.
fn words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in query.split(|c| !is_part(c)).filter(|word| !word.is_empty()) {
        let word = word.to_ascii_lowercase();
        if words.len() < MAX_WORDS && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Returns how well a word fits a title: 2 if it is a word of it, 1 if it begins one, else 0.
fn fit(title: &str, word: &str) -> u32 {
    let words = title.split(|c| !is_part(c));
    let fits = words.map(|own| match own.strip_prefix(word) {
        Some("") => 2,
        Some(_) => 1,
        None => 0,
    });
    fits.max().unwrap_or_default()
}

impl Indexed {
    /// Returns how well a word fits the section, 0 if not at all.
    fn score(&self, word: &str) -> u32 {
        let exact = if self.title == word { 40 } else { 0 };
        let inside = u32::from(self.text.contains(word) || self.title.contains(word));
        exact + 20 * fit(&self.title, word) + 6 * fit(&self.page, word) + 2 * inside
    }

    /// Returns the score for all words, 0 if one of them doesn't fit.
    fn total(&self, words: &[String]) -> u32 {
        let scores = words.iter().map(|word| self.score(word));
        scores
            .reduce(|a, b| if a == 0 || b == 0 { 0 } else { a + b })
            .unwrap_or_default()
    }
}

/// Returns the sections that fit best, best first.
fn find(words: &[String]) -> Vec<&'static Indexed> {
    let mut found: Vec<(u32, &Indexed)> = index()
        .iter()
        .map(|section| (section.total(words), section))
        .filter(|(score, _)| *score > 0)
        .collect();
    // Stable: sections of equal scores stay in reading order.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let sections = found.into_iter().map(|(_, section)| section);
    sections.take(MAX_RESULTS).collect()
}

/// Part of an excerpt.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    text: String,
    is_hit: bool,
}

/// Returns the text around the first hit, with all hits in it apart.
fn excerpt(section: &Indexed, words: &[String]) -> Vec<Piece> {
    let text = &section.section.text;
    let hits = words
        .iter()
        .filter_map(|word| section.text.find(word.as_str()));
    let first = hits.min().unwrap_or_default();
    let start = match text[..first].char_indices().rev().nth(EXCERPT_BYTES / 3) {
        // From the next word on.
        Some((at, _)) => text[at..]
            .find(' ')
            .map_or(first, |blank| (at + blank + 1).min(first)),
        None => 0,
    };
    let mut end = (start + EXCERPT_BYTES).min(text.len());
    // Up to the end of the word.
    while !text.is_char_boundary(end) || text[end..].starts_with(is_part) {
        end += 1;
    }
    let mut pieces = Vec::new();
    let mut push = |text: &str, is_hit: bool| {
        if !text.is_empty() {
            let text = text.to_owned();
            pieces.push(Piece { text, is_hit });
        }
    };
    if start > 0 {
        push("… ", false);
    }
    let mut at = start;
    while at < end {
        let rest = &section.text[at..end];
        let hits = words
            .iter()
            .filter_map(|word| Some((rest.find(word.as_str())?, word.len())));
        // The earliest, and of these the longest.
        let hit = hits.min_by_key(|(place, length)| (*place, usize::MAX - length));
        let (place, length) = hit.unwrap_or((end - at, 0));
        push(&text[at..at + place], false);
        push(&text[at + place..at + place + length], true);
        at += place + length;
    }
    if end < text.len() {
        push(" …", false);
    }
    pieces
}

/// Result as the page shows it.
struct Found {
    href: String,
    title: &'static str,
    /// Title of the page, unless the result is the page itself.
    page: Option<&'static str>,
    excerpt: Vec<Piece>,
}

#[derive(Template)]
#[template(path = "docs/search.html")]
struct SearchTemplate<'p> {
    up: &'p str,
    query: &'p str,
    results: Vec<Found>,
}

/// Renders the page of a search.
pub(super) fn render(query: &str, context: &Context<'_>) -> Result<String, askama::Error> {
    let words = words(query);
    let result = |found: &'static Indexed| {
        let section = &found.section;
        let anchor = match section.anchor.as_str() {
            "" => String::new(),
            anchor => format!("#{anchor}"),
        };
        Found {
            href: format!("{}{anchor}", context.href(&section.path)),
            title: &section.title,
            page: (section.title != section.page).then_some(&*section.page),
            excerpt: excerpt(found, &words),
        }
    };
    let results = find(&words).into_iter().map(result).collect();
    let body = SearchTemplate {
        up: &context.up,
        query,
        results,
    }
    .render()?;
    let lead = "In guides, errors, operations and their parameters.";
    context.page("Search", lead, Vec::new(), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the addresses of the first results.
    fn first(query: &str) -> Vec<String> {
        let found = find(&words(query));
        let address = |found: &&Indexed| format!("{}#{}", found.section.path, found.section.anchor);
        found.iter().take(3).map(address).collect()
    }

    #[test]
    fn searches_find_sections_errors_operations_and_parameters() {
        for (query, expected) in [
            (
                "countries_redeemable_in",
                "/docs/reference/listProducts#parameter-countries_redeemable_in",
            ),
            ("rate_limited", "/docs/errors/rate_limited#"),
            ("List Products", "/docs/reference/listProducts#"),
            ("test keys", "/docs/keys#test-keys"),
            ("  quick   start ", "/docs/quick-start#"),
        ] {
            let found = first(query);
            assert!(
                found.iter().any(|address| address == expected),
                "{query}: {found:?}"
            );
        }
        assert!(first("xyzzy").is_empty() && first("").is_empty() && first("&&&").is_empty());
        assert!(first("cart xyzzy").is_empty());
    }

    #[test]
    fn excerpts_mark_hits_and_keep_characters_whole() {
        let section = |text: &str| Indexed {
            page: String::new(),
            title: String::new(),
            text: text.to_ascii_lowercase(),
            section: Section {
                path: String::new(),
                anchor: String::new(),
                page: String::new(),
                title: String::new(),
                text: text.to_owned(),
            },
        };
        let shown = |text: &str, query: &str| {
            let pieces = excerpt(&section(text), &words(query));
            let shown = pieces.iter().map(|piece| match piece.is_hit {
                true => format!("[{}]", piece.text),
                false => piece.text.clone(),
            });
            shown.collect::<String>()
        };
        assert_eq!(shown("A Cart of codes", "CART code"), "A [Cart] of [code]s");
        assert_eq!(shown("é…é", "x"), "é…é");
        let long = format!("{}needle{}", "é… ".repeat(300), " ü".repeat(300));
        let text = shown(&long, "needle");
        assert!(text.starts_with("… ") && text.contains("[needle]") && text.ends_with('…'));
        assert!(text.len() < 2 * EXCERPT_BYTES, "{text}");
    }
}
