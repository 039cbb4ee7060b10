//! New keys: their format, and the only place that knows their secrets.

use std::fmt;

use jiff::Timestamp;

use super::{KeyKind, KeyRecord, SecretHash};

/// A new key in the clear: shown once and never stored. Its `Debug` shows only the prefix.
pub struct NewKey {
    prefix: String,
    secret: String,
}

impl NewKey {
    /// Number of random bytes in a key: 64 bits name it, 256 bits are the secret.
    pub const RANDOM_BYTES: usize = 40;

    /// Start of all keys.
    pub const START: &str = "vitrine_";

    /// Creates a key from random bytes.
    #[must_use]
    pub fn from_random(kind: KeyKind, random: &[u8; Self::RANDOM_BYTES]) -> Self {
        let (name, secret) = random.split_at(8);
        Self {
            prefix: format!("{}{}{}", Self::START, kind.infix(), base62(name)),
            secret: base62(secret),
        }
    }

    /// Returns the key's name in lists and logs.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the whole key, `PREFIX.SECRET`. Show it once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.prefix, self.secret)
    }

    /// Returns the hash of the secret, the only part of the secret that is stored.
    #[must_use]
    pub fn secret_hash(&self) -> SecretHash {
        SecretHash::of(&self.secret)
    }
}

/// Minimum length of what is taken for the secret of a key; a whole one has 44 characters.
const MIN_SECRET_CHARACTERS: usize = 20;

/// Returns true if a text has a whole key in it, `PREFIX.SECRET`: it must not be stored or shown.
#[must_use]
pub fn contains_key(text: &str) -> bool {
    let alphanumeric = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric());
        end.unwrap_or(text.len())
    };
    text.match_indices(NewKey::START).any(|(at, start)| {
        let name = &text[at + start.len()..];
        let name = name.strip_prefix(KeyKind::Test.infix()).unwrap_or(name);
        let rest = &name[alphanumeric(name)..];
        let secret = rest.strip_prefix('.').unwrap_or_default();
        alphanumeric(secret) >= MIN_SECRET_CHARACTERS
    })
}

impl KeyRecord {
    /// Returns the record of a new key, which never expires and has no pinned version, quota or assortment.
    #[must_use]
    pub fn new(key: &NewKey, kind: KeyKind, label: &str, created_at: Timestamp) -> Self {
        Self {
            prefix: key.prefix().to_owned(),
            label: label.to_owned(),
            secret_hash: key.secret_hash(),
            kind,
            api_version: None,
            quota: None,
            assortment: None,
            created_at,
            expires_at: None,
            revoked_at: None,
            rotated_at: None,
            last_used_at: None,
        }
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NewKey")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Encodes a number, given by its bytes, most significant first, in base 62.
fn base62(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = bytes.to_vec();
    // log(256) / log(62) = 1.344: so many digits hold any number of these bytes.
    let length = (bytes.len() * 1344).div_ceil(1000);
    let mut digits: Vec<char> = (0..length)
        .map(|_| {
            let mut rest = 0_u32;
            for byte in &mut number {
                let value = rest * 256 + u32::from(*byte);
                *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
                rest = value % 62;
            }
            char::from(DIGITS[rest as usize])
        })
        .collect();
    digits.reverse();
    digits.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_keys_are_found_in_texts() {
        let key = |kind| NewKey::from_random(kind, &[7; NewKey::RANDOM_BYTES]);
        for kind in [KeyKind::Live, KeyKind::Test] {
            let key = key(kind);
            let whole = key.reveal();
            for text in [
                whole.clone(),
                format!("of {whole}, new"),
                format!("({whole})"),
            ] {
                assert!(contains_key(&text), "{text}");
            }
            let prefix = key.prefix();
            for text in [
                prefix.to_owned(),
                format!("{prefix}."),
                format!("{prefix}. Revoked"),
                "vitrine_default.toml".to_owned(),
                "vitrine_.".to_owned(),
            ] {
                assert!(!contains_key(&text), "{text}");
            }
        }
    }

    /// Decodes digits of [`base62`] to that many bytes.
    fn number(digits: &str, bytes: usize) -> Vec<u8> {
        let mut number = vec![0_u8; bytes];
        for digit in digits.chars() {
            let value = match digit {
                '0'..='9' => digit as u32 - '0' as u32,
                'A'..='Z' => digit as u32 - 'A' as u32 + 10,
                _ => digit as u32 - 'a' as u32 + 36,
            };
            let mut carry = value;
            for byte in number.iter_mut().rev() {
                let value = u32::from(*byte) * 62 + carry;
                *byte = (value % 256) as u8;
                carry = value / 256;
            }
            assert_eq!(carry, 0, "{digits} holds more than {bytes} bytes");
        }
        number
    }

    proptest! {
        #[test]
        fn keys_hold_all_random_bits(random in prop::array::uniform32(0_u8..), name in prop::array::uniform8(0_u8..)) {
            let mut bytes = [0; NewKey::RANDOM_BYTES];
            bytes[..8].copy_from_slice(&name);
            bytes[8..].copy_from_slice(&random);
            let key = NewKey::from_random(KeyKind::Live, &bytes).reveal();
            let (prefix, secret) = key.split_once('.').unwrap();
            prop_assert_eq!(number(prefix.strip_prefix("vitrine_").unwrap(), 8), name);
            prop_assert_eq!(number(secret, 32), random);
            prop_assert_eq!((prefix.len(), secret.len()), (19, 44));
        }
    }
}
