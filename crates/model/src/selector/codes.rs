//! Codes of products, and patterns of codes.

use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::CodeSet;
use crate::Invalid;
use crate::code::ProductCode;

/// A product code, or a pattern of codes: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodePattern(String);

impl FromStr for CodePattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // What stands for characters may stand for those of codes.
        let filled = text.replace(['*', '?'], "A");
        match filled.parse::<ProductCode>() {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(Invalid::new(
                "code",
                "a product's code, or a pattern such as `ADIDAS-*`",
            )),
        }
    }
}

/// Codes and patterns. One product costs a lookup and, for each pattern, a step a character at most.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Codes {
    exact: CodeSet,
    patterns: Vec<Matcher>,
}

impl Codes {
    /// Returns the codes without the patterns.
    #[must_use]
    pub fn exact(&self) -> &CodeSet {
        &self.exact
    }

    /// Returns the number of patterns.
    #[must_use]
    pub fn pattern_count(&self) -> usize {
        self.patterns.len()
    }

    /// Iterates over the codes, ascending, then over the patterns, in the order in which they were given.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let patterns = self.patterns.iter().map(|one| one.pattern.0.as_str());
        self.exact.iter().chain(patterns)
    }

    /// Returns the beginning of all codes that are one of these.
    #[must_use]
    pub fn prefix(&self) -> &str {
        let mut texts = self.texts();
        match (texts.next(), texts.next()) {
            (Some(only), None) => only.split(['*', '?']).next().unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns true if there is neither a code nor a pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.patterns.is_empty()
    }

    /// Returns true if a code is one of these, or matches a pattern.
    #[must_use]
    pub fn contain(&self, code: &str) -> bool {
        self.exact.contains(code) || self.patterns.iter().any(|pattern| pattern.matches(code))
    }

    /// Returns true if all of others are here, too.
    pub(super) fn include(&self, other: &Self) -> bool {
        other.exact.iter().all(|code| self.exact.contains(code))
            && (other.patterns.iter()).all(|pattern| self.patterns.contains(pattern))
    }
}

impl FromIterator<ProductCode> for Codes {
    fn from_iter<I: IntoIterator<Item = ProductCode>>(codes: I) -> Self {
        Self {
            exact: codes.into_iter().collect(),
            patterns: Vec::new(),
        }
    }
}

impl FromIterator<CodePattern> for Codes {
    fn from_iter<I: IntoIterator<Item = CodePattern>>(given: I) -> Self {
        let mut patterns = Vec::new();
        let exact = given.into_iter().filter_map(|one| {
            let code = one.0.parse().ok();
            if code.is_none() {
                patterns.push(Matcher::of(one));
            }
            code
        });
        Self {
            exact: exact.collect(),
            patterns,
        }
    }
}

/// A pattern as a set of places that moves with each character of a text: place `n` is behind `n` characters of the pattern. So its
/// cost is that of the text's length, however many `*` it has.
#[derive(Debug, Clone)]
struct Matcher {
    pattern: CodePattern,
    /// For each ASCII character, the places from which it leads to the next one.
    steps: Box<[u128; 128]>,
    /// Places at which any character may stand: those of `*`.
    stays: u128,
    /// The place behind the whole pattern.
    end: u128,
}

impl Matcher {
    fn of(pattern: CodePattern) -> Self {
        let mut matcher = Self {
            pattern: CodePattern(String::new()),
            steps: Box::new([0; 128]),
            stays: 0,
            end: 1,
        };
        // A code has 64 characters at most.
        for byte in pattern.0.bytes() {
            let place = matcher.end;
            match byte {
                b'*' => {
                    matcher.stays |= place;
                    continue;
                }
                b'?' => matcher.steps.iter_mut().for_each(|from| *from |= place),
                byte => matcher.steps[usize::from(byte & 127)] |= place,
            }
            matcher.end <<= 1;
        }
        Self { pattern, ..matcher }
    }

    /// Returns true if it matches a text as a whole.
    fn matches(&self, text: &str) -> bool {
        let mut places = 1_u128;
        text.bytes().all(|byte| {
            let steps = self.steps[usize::from(byte & 127)];
            places = ((places & steps) << 1) | (places & self.stays);
            places != 0
        }) && places & self.end != 0
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}

impl Eq for Matcher {}

impl Hash for Matcher {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pattern.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A naive model of patterns.
    fn by_recursion(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|taken| by_recursion(rest, &text[taken..]))
            }
            ([b'?', rest @ ..], [_, others @ ..]) => by_recursion(rest, others),
            ([first, rest @ ..], [other, others @ ..]) if first == other => {
                by_recursion(rest, others)
            }
            _ => false,
        }
    }

    /// Returns all texts of these characters, up to a length.
    fn texts(characters: &[u8], length: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        let mut longest = all.clone();
        for _ in 0..length {
            longest = (longest.iter())
                .flat_map(|text| {
                    characters
                        .iter()
                        .map(move |byte| [text, &[*byte][..]].concat())
                })
                .collect();
            all.extend(longest.iter().cloned());
        }
        all
    }

    #[test]
    fn patterns_match_as_their_model_does() {
        let patterns = texts(b"AB*?", 5);
        let codes = texts(b"AB", 5);
        for pattern in &patterns {
            let text = String::from_utf8(pattern.clone()).unwrap();
            let matcher = Matcher::of(CodePattern(text));
            for code in &codes {
                let text = std::str::from_utf8(code).unwrap();
                let (found, expected) = (matcher.matches(text), by_recursion(pattern, code));
                assert_eq!(found, expected, "{pattern:?} {code:?}");
            }
        }
    }

    #[test]
    fn longest_patterns_match_the_longest_codes() {
        let code = "A".repeat(64);
        for (pattern, expected) in [
            ("?".repeat(64), true),
            ("A".repeat(64), true),
            (format!("{}B", "*A".repeat(31)), false),
            (format!("*{}", "?".repeat(63)), true),
            ("*".repeat(64), true),
        ] {
            let codes = Codes::from_iter([pattern.parse::<CodePattern>().unwrap()]);
            assert_eq!(codes.contain(&code), expected, "{pattern}");
        }
    }

    #[test]
    fn patterns_are_made_of_characters_of_codes() {
        for fine in ["ADIDAS-SE", "ADIDAS-*", "*", "?-SE", "*-SE-*"] {
            assert!(fine.parse::<CodePattern>().is_ok(), "{fine}");
        }
        for wrong in ["", "A B", "[A]", "A/B", "é*"] {
            assert!(wrong.parse::<CodePattern>().is_err(), "{wrong}");
        }
    }
}
