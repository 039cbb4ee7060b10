//! Searches: the words of a product, and those that a client looks for (docs/contract/listing.md#search).
//!
//! Both are folded: without diacritics, cases and compatible forms (Unicode NFKD, without marks, then full case folding).
//! The words of a product are one text, for a search by `memchr`: a mark begins each word, and another one each character
//! within a word that a match may begin with as well.

use caseless::Caseless as _;
use memchr::memmem;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Mark at the beginning of a word.
const WORD: char = ' ';

/// Mark within a word, before a character with which a match may begin.
const WITHIN: char = '\t';

/// Maximum length of a search, in characters.
const MAX_CHARACTERS: usize = 100;

/// Maximum number of words of a search.
const MAX_WORDS: usize = 8;

/// Characters of scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, Hiragana, Katakana and Han.
const WITHOUT_SPACES: [(char, char); 17] = [
    ('\u{0e00}', '\u{0eff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{19e0}', '\u{19ff}'),
    ('\u{2e80}', '\u{2fdf}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3021}', '\u{3029}'),
    ('\u{3038}', '\u{303b}'),
    ('\u{3041}', '\u{30ff}'),
    ('\u{31f0}', '\u{31ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{a9e0}', '\u{a9ff}'),
    ('\u{aa60}', '\u{aa7f}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{1b000}', '\u{1b16f}'),
    ('\u{20000}', '\u{323af}'),
];

/// Words that a client looks for: a product matches if a word of its name or a part of its code begins with each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search(Vec<String>);

impl Search {
    /// Reads the words of a text; `None` if it is empty, or has more than 100 characters or 8 words. Without words, a search
    /// matches nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let words = words(text);
        let words: Vec<String> = words.split(WORD).skip(1).map(str::to_owned).collect();
        let is_long = text.chars().count() > MAX_CHARACTERS || words.len() > MAX_WORDS;
        (!text.is_empty() && !is_long).then_some(Self(words))
    }

    /// Returns true if a product with these [`words_of`] matches.
    #[must_use]
    pub fn matches(&self, words: &str) -> bool {
        let mut wanted = self.0.iter();
        !self.0.is_empty() && wanted.all(|word| places(words.as_bytes(), word).next().is_some())
    }

    /// Iterates over the wanted words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Returns the places in the words of products at which a wanted word matches.
pub(crate) fn places<'w>(words: &'w [u8], wanted: &'w str) -> impl Iterator<Item = usize> + 'w {
    let found = memmem::find_iter(words, wanted.as_bytes());
    let marks = [WORD as u8, WITHIN as u8];
    found.filter(move |place| {
        let before = place.checked_sub(1).map(|before| words[before]);
        before.is_some_and(|before| marks.contains(&before))
    })
}

/// Returns the words of a product, by which it is found.
#[must_use]
pub fn words_of(name: &str, code: &str) -> String {
    words(name) + &words(code)
}

/// Returns the folded words of a text, each with its mark.
fn words(text: &str) -> String {
    let unmarked = text.nfkd().filter(|letter| !is_combining_mark(*letter));
    let folded = unmarked.default_case_fold();
    let mut letters = folded.filter(|letter| !is_apostrophe(*letter)).peekable();
    let mut words = String::with_capacity(text.len() + 1);
    // The letter before, within a word.
    let mut before: Option<char> = None;
    while let Some(letter) = letters.next() {
        let is_letter = |letter: &char| letter.is_alphabetic();
        let joins = letter == '&'
            && before.as_ref().is_some_and(is_letter)
            && letters.peek().is_some_and(is_letter);
        if !joins && !letter.is_alphanumeric() {
            before = None;
            continue;
        }
        match before.replace(letter) {
            None => words.push(WORD),
            Some(_) if is_without_spaces(letter) => words.push(WITHIN),
            Some(_) => {}
        }
        words.push(letter);
    }
    words
}

fn is_apostrophe(letter: char) -> bool {
    matches!(letter, '\'' | '’' | 'ʼ')
}

fn is_without_spaces(letter: char) -> bool {
    WITHOUT_SPACES
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_search_begin_words_of_the_product() {
        for (name, search, expected) in [
            ("Café Crème", "cafe", true),
            ("Cafe\u{301}", "café", true),
            ("Café", "CAF", true),
            ("Café", "afe", false),
            ("Café Crème", "cre caf", true),
            ("Café Crème", "cafe tea", false),
            ("McDonald's", "mcdonalds", true),
            ("McDonald’s", "mcdonald's", true),
            ("H&M", "h&m", true),
            ("H&M", "m", false),
            ("H & M", "h&m", false),
            ("H & M", "m h", true),
            ("Straße", "STRASSE", true),
            ("STRASSE", "straße", true),
            ("İstanbul", "istanbul", true),
            ("ΟΔΟΣ", "οδος", true),
            ("οδός", "ΟΔΌΣ", true),
            ("礼品卡", "品卡", true),
            ("礼品卡", "卡品", false),
            ("礼品 卡片", "品卡", false),
            ("iPhone手机", "手机", true),
            ("iPhone手机", "phone手", false),
            ("iPhone手机", "iphone手", true),
            ("บัตรของขวัญ", "ของ", true),
            ("カード", "ード", true),
            ("ｶﾞｲﾄﾞ", "ガイド", true),
            ("بطاقة هدية", "هدية", true),
            ("כרטיס מתנה", "מתנ", true),
            ("Gift 🎁 card", "🎁", false),
            ("Gift 🎁 card", "gift card", true),
            ("Ⓐ plus ½", "a 1", true),
        ] {
            let found = Search::parse(search).unwrap().matches(&words_of(name, "X"));
            assert_eq!(found, expected, "{search} in {name}");
        }
    }

    #[test]
    fn parts_of_codes_are_words() {
        let words = words_of("Shoes", "BRIARWICK-GB_2.x~y");
        for (search, expected) in [
            ("gb", true),
            ("briar", true),
            ("briarwick-gb", true),
            ("x y 2", true),
            ("wick", false),
            ("shoesb", false),
        ] {
            assert_eq!(Search::parse(search).unwrap().matches(&words), expected);
        }
    }

    #[test]
    fn searches_that_are_empty_or_long_are_refused() {
        for text in ["", "  ", &"x".repeat(101), "a b c d e f g h i"] {
            assert!(Search::parse(text).is_none(), "{text}");
        }
        for text in [&"x".repeat(100), "a b c d e f g h", " x "] {
            assert!(Search::parse(text).is_some(), "{text}");
        }
        let nothing = Search::parse("-- '").unwrap();
        assert!(!nothing.matches(&words_of("-- '", "A")));
    }
}
