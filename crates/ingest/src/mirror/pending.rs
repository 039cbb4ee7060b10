//! Changes of the source that wait, in a temporary file, until they make a copy of one moment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use anyhow::{Context as _, bail};

use super::NO_TEMPORARY_FILE;
use super::feed::Change;
use super::pages::{MAX_CATALOG_BYTES, MAX_PRODUCTS};

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
    pub(super) fn take(&mut self, changes: Vec<Change>) -> anyhow::Result<()> {
        let mut lines = String::new();
        for Change { code, product } in changes {
            let place = product.map(|product| {
                let start = self.length + lines.len() as u64;
                lines.push_str(&product);
                lines.push('\n');
                start..start + product.len() as u64
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use super::*;

    fn change(code: &str, product: Option<&str>) -> Change {
        Change {
            code: code.to_owned(),
            product: product.map(str::to_owned),
        }
    }

    fn finished(answers: Vec<Vec<Change>>) -> (String, Vec<String>) {
        let mut pending = Pending::new().unwrap();
        for changes in answers {
            pending.take(changes).unwrap();
        }
        let (mut file, gone) = pending.finish().unwrap();
        let mut lines = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut lines).unwrap();
        (lines, gone)
    }

    #[test]
    fn newest_change_of_each_product_remains() {
        let first = || {
            vec![
                change("A", Some("a1")),
                change("B", Some("b1")),
                change("C", None),
            ]
        };
        let gone = |codes: &[&str]| codes.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            finished(vec![first()]),
            ("a1\nb1\n".to_owned(), gone(&["C"]))
        );
        let second = vec![
            change("A", Some("a22")),
            change("B", None),
            change("C", Some("c")),
        ];
        assert_eq!(
            finished(vec![first(), second]),
            ("a22\nc\n".to_owned(), gone(&["B"]))
        );
        assert_eq!(finished(Vec::new()), (String::new(), Vec::new()));
    }
}
