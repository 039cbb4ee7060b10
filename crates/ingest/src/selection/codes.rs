//! Codes of products, and patterns of codes.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;

use crate::as_texts;

/// A product code, or a pattern of codes: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePattern(String);

impl CodePattern {
    /// Returns true if this has a `*` or a `?`.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// Returns the beginning of all codes that it matches.
    pub(crate) fn prefix(&self) -> &str {
        let end = self.0.find(['*', '?']).unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// Returns the text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CodePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

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

/// Codes and patterns, in the order in which they were given. One product costs a lookup and, for each pattern, a step a character
/// at most.
#[derive(Debug, Clone, Default)]
pub struct Codes {
    given: Vec<CodePattern>,
    codes: HashSet<String>,
    patterns: Vec<Matcher>,
}

impl Codes {
    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Returns the number of patterns.
    #[must_use]
    pub fn pattern_count(&self) -> usize {
        self.patterns.len()
    }

    /// Returns true if a code is one of these, or matches a pattern.
    #[must_use]
    pub fn contain(&self, code: &ProductCode) -> bool {
        let text = code.as_str();
        self.codes.contains(text) || self.patterns.iter().any(|pattern| pattern.matches(text))
    }
}

impl From<Vec<CodePattern>> for Codes {
    fn from(given: Vec<CodePattern>) -> Self {
        let (patterns, codes): (Vec<&CodePattern>, Vec<&CodePattern>) =
            given.iter().partition(|code| code.is_pattern());
        Self {
            codes: codes.into_iter().map(ToString::to_string).collect(),
            patterns: patterns.into_iter().map(Matcher::of).collect(),
            given,
        }
    }
}

impl Deref for Codes {
    type Target = [CodePattern];

    fn deref(&self) -> &[CodePattern] {
        &self.given
    }
}

impl PartialEq for Codes {
    fn eq(&self, other: &Self) -> bool {
        self.given == other.given
    }
}

impl Eq for Codes {}

impl Serialize for Codes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_texts::serialize(&self.given, serializer)
    }
}

impl<'de> Deserialize<'de> for Codes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        as_texts::deserialize(deserializer).map(Self::from)
    }
}

/// A pattern as a set of places that moves with each character of a text: place `n` is behind `n` characters of the pattern. So its
/// cost is that of the text's length, however many `*` it has.
#[derive(Debug, Clone)]
struct Matcher {
    /// Beginning of all texts that it matches.
    prefix: String,
    /// For each ASCII character, the places from which it leads to the next one.
    steps: Box<[u128; 128]>,
    /// Places at which any character may stand: those of `*`.
    stays: u128,
    /// The place behind the whole pattern.
    end: u128,
}

impl Matcher {
    fn of(pattern: &CodePattern) -> Self {
        let mut matcher = Self {
            prefix: pattern.prefix().to_owned(),
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
        matcher
    }

    /// Returns true if it matches a text as a whole.
    fn matches(&self, text: &str) -> bool {
        let mut places = 1_u128;
        text.starts_with(&self.prefix)
            && text.bytes().all(|byte| {
                let steps = self.steps[usize::from(byte & 127)];
                places = ((places & steps) << 1) | (places & self.stays);
                places != 0
            })
            && places & self.end != 0
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
            let matcher = Matcher::of(&CodePattern(text));
            for code in &codes {
                let text = std::str::from_utf8(code).unwrap();
                let (found, expected) = (matcher.matches(text), by_recursion(pattern, code));
                assert_eq!(found, expected, "{pattern:?} {code:?}");
            }
        }
    }

    #[test]
    fn longest_patterns_match_the_longest_codes() {
        let code: ProductCode = "A".repeat(64).parse().unwrap();
        for (pattern, expected) in [
            ("?".repeat(64), true),
            ("A".repeat(64), true),
            (format!("{}B", "*A".repeat(31)), false),
            (format!("*{}", "?".repeat(63)), true),
            ("*".repeat(64), true),
        ] {
            let codes = Codes::from(vec![pattern.parse().unwrap()]);
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
