//! The API key, which is never shown.

use std::fmt;

use reqwest::header::HeaderValue;

/// Replacement of a key in texts.
const REDACTED: &str = "[key]";
/// Minimum length of a secret that is redacted, in bytes: shorter ones are parts of ordinary words.
const MIN_SECRET_BYTES: usize = 6;

/// An API key, `PREFIX.SECRET`. Its `Debug` shows only the prefix; there is no `Display`.
///
/// ```
/// let key = vitrine_client::Key::new("partner.s3cret")?;
/// assert_eq!(format!("{key:?}"), "Key(partner.…)");
/// # Ok::<(), vitrine_client::BadKey>(())
/// ```
#[derive(Clone)]
pub struct Key(HeaderValue);

/// Error of a malformed key, which isn't repeated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that can't be an API key; expected PREFIX.SECRET, in visible ASCII characters")]
pub struct BadKey;

impl Key {
    /// Parses a key, ignoring blanks around it, such as the end of the line in a file.
    ///
    /// # Errors
    ///
    /// If it isn't valid in a header.
    pub fn new(key: &str) -> Result<Self, BadKey> {
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadKey);
        }
        let mut value = HeaderValue::from_str(key).map_err(|_| BadKey)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Returns the header's value, marked as sensitive.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Redacts the key and its secret in an untrusted text.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let key = self.text();
        let text = text.replace(key, REDACTED);
        match key.split_once('.') {
            Some((_, secret)) if secret.len() >= MIN_SECRET_BYTES => text.replace(secret, REDACTED),
            _ => text,
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text().split_once('.') {
            Some((prefix, _)) => write!(f, "Key({prefix}.…)"),
            None => f.write_str("Key(…)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_redacted_in_debug_and_texts() {
        let key = Key::new("partner.s3cret\n").unwrap();
        assert_eq!(key.header(), "partner.s3cret");
        for shown in [format!("{key:?}"), format!("{:?}", key.header())] {
            assert!(!shown.contains("s3cret"), "{shown}");
        }
        assert_eq!(
            key.redact("a partner.s3cret b s3cret c"),
            "a [key] b [key] c"
        );
        assert_eq!(Key::new("ab.c").unwrap().redact("ab.c in c"), "[key] in c");
        for bad in ["", " ", "a b", "a\nb.c", "ümlaut.s3cret"] {
            assert_eq!(Key::new(bad).unwrap_err(), BadKey);
        }
    }
}
