//! Changes of the source that wait, in a temporary file, until they make a copy of one moment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use vitrine_client::{Change, Json};
use vitrine_model::code::ProductCode;

use super::NO_TEMPORARY_FILE;
use crate::load::report::shown;

/// Maximum number of products of a catalog.
pub(super) const MAX_PRODUCTS: usize = 10_000_000;
/// Maximum length of all products, in bytes.
pub(super) const MAX_CATALOG_BYTES: u64 = 64 << 30;

/// The newest change of each product.
#[derive(Debug)]
pub(super) struct Pending {
    /// Products, one a line; some may be outdated.
    file: File,
    length: u64,
    /// Places of the products in the file, without line ends; none for those that aren't visible any more.
    places: BTreeMap<Box<str>, Option<Range<u64>>>,
    /// True if the file has lines that nothing refers to.
    has_outdated: bool,
}

impl Pending {
    /// No changes yet.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile().context(NO_TEMPORARY_FILE)?,
            length: 0,
            places: BTreeMap::new(),
            has_outdated: false,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Takes the changes of an answer, which replace earlier ones of the same products.
    ///
    /// # Errors
    ///
    /// If a change isn't one of a product of its code, or all changes are too long.
    pub(super) fn take(&mut self, changes: Vec<Change<Json>>) -> anyhow::Result<()> {
        let mut lines = String::new();
        for Change { code, product, .. } in changes {
            // Removed codes are checked too: they wait in memory.
            let is_code = code.parse::<ProductCode>().is_ok();
            let is_of_code = match &product {
                Some(product) => is_code && code_of(product)? == code,
                None => is_code,
            };
            if !is_of_code {
                let code = shown(&format!("{code:?}"));
                bail!("the change of {code} isn't one of a product of that code");
            }
            let place = product.map(|product| {
                let start = self.length + lines.len() as u64;
                lines.push_str(&one_line(&product));
                lines.push('\n');
                start..self.length + lines.len() as u64 - 1
            });
            let before = self.places.insert(code.into(), place);
            self.has_outdated |= before.flatten().is_some();
        }
        let written = self.file.write_all_at(lines.as_bytes(), self.length);
        written.context(NO_TEMPORARY_FILE)?;
        self.length += lines.len() as u64;
        if self.places.len() > MAX_PRODUCTS || self.length > MAX_CATALOG_BYTES {
            bail!("more than {MAX_PRODUCTS} products or {MAX_CATALOG_BYTES} bytes have changed");
        }
        Ok(())
    }

    /// Returns the products that changed, one a line, and the codes of those that aren't visible any more.
    pub(super) fn finish(self) -> anyhow::Result<(File, Vec<String>)> {
        let gone = self.places.iter().filter(|(_, place)| place.is_none());
        let gone = gone.map(|(code, _)| code.to_string()).collect();
        let file = match self.has_outdated {
            true => self.without_outdated().context(NO_TEMPORARY_FILE)?,
            false => self.file,
        };
        Ok((file, gone))
    }

    fn without_outdated(&self) -> std::io::Result<File> {
        let mut out = BufWriter::new(tempfile::tempfile()?);
        let mut line = Vec::new();
        for place in self.places.values().flatten() {
            let length = place.end - place.start;
            line.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
            self.file.read_exact_at(&mut line, place.start)?;
            out.write_all(&line)?;
            out.write_all(b"\n")?;
        }
        out.into_inner()
            .map_err(std::io::IntoInnerError::into_error)
    }
}

/// Returns the code of a product.
pub(super) fn code_of(product: &Json) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Coded {
        code: String,
    }
    let Coded { code } = product
        .parse()
        .context("the page has a product without a code")?;
    Ok(code)
}

/// Returns a product on one line. Line breaks within strings are escaped, so these are between values.
pub(super) fn one_line(product: &Json) -> Cow<'_, str> {
    match product.get().contains(['\n', '\r']) {
        true => Cow::Owned(product.get().replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(product.get()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use super::*;

    fn changes(json: &str) -> Vec<Change<Json>> {
        serde_json::from_str(json).unwrap()
    }

    fn finished(answers: &[&str]) -> (String, Vec<String>) {
        let mut pending = Pending::new().unwrap();
        for answer in answers {
            pending.take(changes(answer)).unwrap();
        }
        let (mut file, gone) = pending.finish().unwrap();
        let mut lines = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut lines).unwrap();
        (lines, gone)
    }

    #[test]
    fn newest_change_of_each_product_remains_to_the_letter() {
        let first = r#"[{"code":"A","product":{"code":"A",
            "n":1.0E+2}},{"code":"B","product":{"code":"B"}},{"code":"C","product":null}]"#;
        let a = r#"{"code":"A",             "n":1.0E+2}"#;
        let b = r#"{"code":"B"}"#;
        assert_eq!(
            finished(&[first]),
            (format!("{a}\n{b}\n"), vec!["C".to_owned()])
        );
        let second = r#"[{"code":"A","product":{"code":"A","n":2}},{"code":"B","product":null},
            {"code":"C","product":{"code":"C"}}]"#;
        let lines = "{\"code\":\"A\",\"n\":2}\n{\"code\":\"C\"}\n";
        assert_eq!(
            finished(&[first, second]),
            (lines.to_owned(), vec!["B".to_owned()])
        );
        assert_eq!(finished(&[]), (String::new(), Vec::new()));
    }

    #[test]
    fn changes_of_other_codes_are_refused() {
        let long = "x".repeat(401);
        for (json, expected) in [
            (
                r#"[{"code":"A","product":{"code":"B"}}]"#.to_owned(),
                "isn't one of a product of that code",
            ),
            (r#"[{"code":"A","product":7}]"#.to_owned(), "without a code"),
            (
                format!(r#"[{{"code":"{long}","product":null}}]"#),
                "isn't one of a product of that code",
            ),
        ] {
            let refused = Pending::new().unwrap().take(changes(&json));
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(expected), "{json}: {refused}");
        }
    }
}
