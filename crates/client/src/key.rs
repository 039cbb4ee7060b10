//! The API key: a secret that nothing shows.

use std::fmt;

use reqwest::header::HeaderValue;

/// What stands where a key stood.
const REDACTED: &str = "[key]";
/// Parts of a key that are shorter stand in ordinary words too.
const LEAST_SECRET_BYTES: usize = 6;

/// An API key, `PREFIX.SECRET`. Its `Debug` shows the prefix alone; there is no `Display`.
///
/// ```
/// let key = vitrine_client::Key::new("partner.s3cret")?;
/// assert_eq!(format!("{key:?}"), "Key(partner.…)");
/// # Ok::<(), vitrine_client::BadKey>(())
/// ```
#[derive(Clone)]
pub struct Key(HeaderValue);

/// What was given can't be a key. It isn't repeated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that can't be an API key; expected PREFIX.SECRET, in visible ASCII characters")]
pub struct BadKey;

impl Key {
    /// A key. Blanks around it, such as the line's end in a file, don't count.
    ///
    /// # Errors
    ///
    /// Where no header can hold it.
    pub fn new(key: &str) -> Result<Self, BadKey> {
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadKey);
        }
        let mut value = HeaderValue::from_str(key).map_err(|_| BadKey)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The header's value, marked as sensitive.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// A text from outside without the key or its secret part, should it hold them.
    pub(crate) fn redact(&self, text: &str) -> String {
        let key = self.text();
        let text = text.replace(key, REDACTED);
        match key.split_once('.') {
            Some((_, secret)) if secret.len() >= LEAST_SECRET_BYTES => {
                text.replace(secret, REDACTED)
            }
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
    fn keys_are_never_shown() {
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
