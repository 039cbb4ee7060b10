//! Replays the corpora and seeded mutations of them: the same inputs in every run, so that only a change of the program
//! changes the outcome. `ci/fuzz` searches for new inputs.
//!
//! `markdown_time` measures time, which parallel tests disturb, so only `ci/fuzz` runs it.

use std::path::{Path, PathBuf};

const SEED: u64 = 24;

/// Number of inputs generated for each target.
const GENERATED: usize = 2_000;

/// Maximum length of a generated input, in bytes.
const MAX_BYTES: usize = 1_500;

#[test]
fn assortments() {
    replay("assortments", vitrine_fuzz::assortments::check);
}

#[test]
fn compressed() {
    replay("compressed", vitrine_fuzz::compressed::check);
}

#[test]
fn cursor() {
    replay("cursor", vitrine_fuzz::cursor::check);
}

#[test]
fn headers() {
    replay("headers", vitrine_fuzz::headers::check);
}

#[test]
fn load() {
    replay("load", vitrine_fuzz::load::check);
}

#[test]
fn markdown() {
    replay("markdown", vitrine_fuzz::markdown::check);
}

#[test]
fn query() {
    replay("query", vitrine_fuzz::query::check);
}

#[test]
fn records() {
    replay("records", vitrine_fuzz::records::check);
}

#[test]
fn settings() {
    replay("settings", vitrine_fuzz::settings::check);
}

#[test]
fn snapshot() {
    replay("snapshot", vitrine_fuzz::snapshot::check);
}

#[test]
fn workbook() {
    replay("workbook", vitrine_fuzz::workbook::check);
}

#[test]
fn every_target_is_replayed() {
    let replayed = include_str!("replay.rs");
    for target in std::fs::read_dir(folder("targets")).expect("targets") {
        let path = target.expect("a target").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let is_replayed = replayed.contains(&format!("vitrine_fuzz::{name}::check"));
        assert!(is_replayed || name == "markdown_time", "{name}");
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn replay(target: &str, check: fn(&[u8])) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder("corpus").join(target))
        .expect("a corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let corpus: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).expect("an input"))
        .collect();
    assert!(!corpus.is_empty(), "{target} has no corpus");
    for input in &corpus {
        run(check, input);
    }
    let words = words(target);
    let mut random = Random(SEED);
    for _ in 0..GENERATED {
        run(check, &random.input(&corpus, &words));
    }
    println!(
        "{target}: {} inputs replayed, {GENERATED} generated",
        corpus.len()
    );
}

fn run(check: fn(&[u8]), input: &[u8]) {
    let _shown = ShownOnPanic(input);
    check(input);
}

/// Guard that prints the input of a check that panics.
struct ShownOnPanic<'i>(&'i [u8]);

impl Drop for ShownOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input, as printf reads it: {}", self.0.escape_ascii());
        }
    }
}

/// Returns the words of a target's dictionary, if it has one.
fn words(target: &str) -> Vec<Vec<u8>> {
    let Ok(dictionary) = std::fs::read_to_string(folder("dictionaries").join(target)) else {
        return Vec::new();
    };
    let quoted = dictionary
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescaped).collect()
}

/// Decodes libFuzzer's escapes: `\xAB`, `\\` and `\"`.
fn unescaped(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word.bytes();
    while let Some(byte) = rest.next() {
        match byte == b'\\' {
            false => bytes.push(byte),
            true => match rest.next().expect("an escape") {
                b'x' => {
                    let digits = [rest.next(), rest.next()].map(|digit| digit.expect("a digit"));
                    let digits = std::str::from_utf8(&digits).expect("digits");
                    bytes.push(u8::from_str_radix(digits, 16).expect("digits"));
                }
                escaped => bytes.push(escaped),
            },
        }
    }
    bytes
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("64 bits");
        usize::try_from(self.next() % end).expect("below a length")
    }

    fn one<'o>(&mut self, of: &'o [Vec<u8>]) -> &'o [u8] {
        &of[self.below(of.len())]
    }

    /// Returns an input of the corpus, changed in one to four places.
    fn input(&mut self, corpus: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one(corpus).to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut input, corpus, words);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below(input.len() - at + 1).min(16);
        match self.below(6) {
            0 => {
                input.drain(at..end);
            }
            1 => input.extend_from_within(at..end),
            2 if !words.is_empty() => {
                input.splice(at..at, self.one(words).iter().copied());
            }
            3 => {
                let other = self.one(corpus);
                let from = self.below(other.len() + 1);
                input.splice(at.., other[from..].iter().copied());
            }
            4 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            _ => input.insert(at, self.next().to_le_bytes()[0]),
        }
    }
}
