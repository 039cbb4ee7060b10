//! Pages that resemble a path which doesn't exist, by the words of both.

use percent_encoding::percent_decode_str;

use super::Page;

/// Maximum length of a path that is compared, in bytes, and of its words: comparing takes time in proportion.
const MAX_PATH_BYTES: usize = 200;
const MAX_WORDS: usize = 8;

/// Number of suggestions at most.
const MAX_PAGES: usize = 4;

/// Minimum similarity of two words, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.75;

/// Length of a common beginning from which words count as related, such as `paging` and `pagination`; and their similarity.
const RELATED_BYTES: usize = 4;
const RELATED_SIMILARITY: f64 = 0.6;

/// Cost of a word of a page that the path doesn't have.
const OTHER_WORD: f64 = 0.2;

/// Words that say nothing about what was looked for.
const EMPTY_WORDS: [&str; 8] = ["docs", "doc", "api", "v2", "html", "htm", "md", "index"];

/// Returns the words of a path.
pub(super) fn words(path: &str) -> Vec<String> {
    if path.len() > MAX_PATH_BYTES {
        return Vec::new();
    }
    split(&percent_decode_str(path).decode_utf8_lossy())
        .filter(|word| !EMPTY_WORDS.contains(&word.as_str()))
        .take(MAX_WORDS)
        .collect()
}

/// Returns the words of a text in lower case; `listProducts` has two.
fn split(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::new();
    for c in text.chars() {
        if c.is_ascii_uppercase() {
            spaced.push(' ');
        }
        spaced.push(c.to_ascii_lowercase());
    }
    let words: Vec<String> = spaced
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

/// Returns the pages whose words resemble these most, best first.
pub(super) fn nearest(words: &[String], pages: impl Iterator<Item = Page>) -> Vec<Page> {
    let score = |page: Page| {
        let address = page.address();
        let name = address.rsplit('/').next().unwrap_or_default();
        let mut known: Vec<String> = split(name).chain(split(page.title())).collect();
        known.sort();
        known.dedup();
        let best = |word: &String, others: &[String]| {
            let similarities = others.iter().map(|other| similarity(word, other));
            similarities.fold(0.0, f64::max)
        };
        let alike: f64 = words.iter().map(|word| best(word, &known)).sum();
        let others = known.iter().filter(|word| best(word, words) == 0.0).count();
        match alike > 0.0 {
            // Of pages with the same word, the one that has no other is first.
            true => alike - OTHER_WORD * others as f64,
            false => f64::NEG_INFINITY,
        }
    };
    let mut scored: Vec<(f64, Page)> = pages
        .map(|page| (score(page), page))
        .filter(|(score, _)| score.is_finite())
        .collect();
    // Stable: pages of equal scores stay in reading order.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let pages = scored.into_iter().map(|(_, page)| page);
    pages.take(MAX_PAGES).collect()
}

/// Returns the similarity of two words, or 0 if it is small.
fn similarity(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    // The distance is at least the difference of lengths.
    if one.len().abs_diff(other.len()) <= 2 {
        let similarity = strsim::normalized_levenshtein(one, other);
        if similarity >= MIN_SIMILARITY {
            return similarity;
        }
    }
    let pairs = one.bytes().zip(other.bytes());
    let common = pairs.take_while(|(a, b)| a == b).count();
    match common >= RELATED_BYTES {
        true => RELATED_SIMILARITY,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::OperationName;

    #[test]
    fn paths_lead_to_the_pages_that_resemble_them() {
        let operations = [
            ("listProducts", "List products"),
            ("getProduct", "Get a product"),
        ];
        let operations = operations.map(|(id, title)| OperationName { id, title });
        for (path, expected) in [
            ("/docs/pagination", Some("/docs/errors/pagination_error")),
            ("/docs/pageing", Some("/docs/paging")),
            ("/docs/paging/", Some("/docs/paging")),
            ("/docs/webhook", Some("/docs/webhooks")),
            ("/docs/guides/quickstart.html", Some("/docs/quick-start")),
            ("/docs/quick_start.md", Some("/docs/quick-start")),
            (
                "/docs/errors/rate-limited",
                Some("/docs/errors/rate_limited"),
            ),
            (
                "/docs/reference/list-products",
                Some("/docs/reference/listProducts"),
            ),
            ("/docs/error", Some("/docs/errors")),
            ("/docs/%3Cscript%3E", None),
            ("/docs", None),
            ("/", None),
        ] {
            let pages = nearest(&words(path), Page::all(&operations));
            let first = pages.first().map(|page| page.address());
            assert_eq!(first.as_deref(), expected, "{path}");
        }
        assert!(words(&"/docs/paging".repeat(50)).is_empty());
    }
}
