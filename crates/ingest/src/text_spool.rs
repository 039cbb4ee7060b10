//! Texts from other servers, until they are published: in memory or, if they are many, in an unnamed temporary file.

use std::collections::HashMap;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use tempfile::SpooledTempFile;
use vitrine_model::content::TextDigest;

/// Maximum length kept in memory, in bytes.
const MAX_IN_MEMORY_BYTES: usize = 8 << 20;

/// Texts by their digests.
pub(crate) struct TextSpool {
    file: SpooledTempFile,
    end: u64,
    /// Offset and length of each text.
    places: HashMap<TextDigest, (u64, usize)>,
}

impl TextSpool {
    pub(crate) fn new() -> Self {
        Self {
            file: SpooledTempFile::new(MAX_IN_MEMORY_BYTES),
            end: 0,
            places: HashMap::new(),
        }
    }

    /// Stores a text, once.
    pub(crate) fn put(&mut self, markdown: &str) -> io::Result<TextDigest> {
        let digest = TextDigest::of(markdown);
        if !self.places.contains_key(&digest) {
            self.file.seek(SeekFrom::Start(self.end))?;
            self.file.write_all(markdown.as_bytes())?;
            self.places.insert(digest, (self.end, markdown.len()));
            self.end += markdown.len() as u64;
        }
        Ok(digest)
    }

    /// Returns a stored text.
    pub(crate) fn get(&mut self, digest: &TextDigest) -> io::Result<Option<String>> {
        let Some((start, length)) = self.places.get(digest) else {
            return Ok(None);
        };
        let mut bytes = vec![0; *length];
        self.file.seek(SeekFrom::Start(*start))?;
        self.file.read_exact(&mut bytes)?;
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_memory_and_from_the_file() {
        let mut spool = TextSpool::new();
        let text = |number: usize| format!("{number} ü ").repeat(300_000);
        let digests: Vec<_> = (0..7).map(|n| spool.put(&text(n)).unwrap()).collect();
        assert!(spool.file.is_rolled());
        let end = spool.end;
        spool.put(&text(3)).unwrap();
        assert_eq!(spool.end, end, "a text is kept once");
        for (number, digest) in digests.iter().enumerate().rev() {
            assert_eq!(spool.get(digest).unwrap(), Some(text(number)));
        }
        assert_eq!(spool.get(&TextDigest::of("other")).unwrap(), None);
    }
}
