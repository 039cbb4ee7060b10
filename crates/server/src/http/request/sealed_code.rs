//! A product code in a token that the client can't read: a walk may stop at a product that the key never sees.
//!
//! The key is the store's id, which all servers of the store have and no client. Equal codes in equal tokens are sealed alike;
//! a changed token, or one of another store, isn't opened.

use ring::hmac::{Context, HMAC_SHA256, Key};
use vitrine_model::code::ProductCode;

/// Length of the tag, in bytes.
const TAG_BYTES: usize = 16;

/// Length of a code behind its length, padded.
const PADDED_BYTES: usize = 1 + ProductCode::MAX_LENGTH_BYTES;

/// A sealed code: the tag, by which it is checked, then the padded code, encrypted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealedCode {
    tag: [u8; TAG_BYTES],
    code: [u8; PADDED_BYTES],
}

impl SealedCode {
    /// Seals a code for one token, of which `token` is the rest.
    pub(super) fn new(code: &ProductCode, token: &[u8], store_id: &str) -> Self {
        let text = code.as_str().as_bytes();
        let mut padded = [0; PADDED_BYTES];
        // A code has at most 64 bytes.
        padded[0] = u8::try_from(text.len()).unwrap_or(u8::MAX);
        for (place, byte) in padded[1..].iter_mut().zip(text) {
            *place = *byte;
        }
        let key = key(store_id);
        let tag = tag(&key, token, &padded);
        Self {
            tag,
            code: masked(&key, tag, padded),
        }
    }

    /// Returns the code; `None` if it wasn't sealed for this token by a server of this store.
    pub(super) fn open(&self, token: &[u8], store_id: &str) -> Option<ProductCode> {
        let key = key(store_id);
        let padded = masked(&key, self.tag, self.code);
        // Not in constant time: whoever guesses a tag learns no code by it.
        if tag(&key, token, &padded) != self.tag {
            return None;
        }
        let (length, text) = padded.split_first()?;
        let text = text.get(..usize::from(*length))?;
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    /// Returns the parts, in order.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.tag, &self.code]
    }

    /// Returns the code with these parts.
    pub(super) fn from_parts(tag: [u8; TAG_BYTES], code: [u8; PADDED_BYTES]) -> Self {
        Self { tag, code }
    }
}

fn key(store_id: &str) -> Key {
    Key::new(HMAC_SHA256, store_id.as_bytes())
}

fn tag(key: &Key, token: &[u8], padded: &[u8; PADDED_BYTES]) -> [u8; TAG_BYTES] {
    first(key, [&b"tag"[..], padded, token])
}

/// Encrypts or decrypts a padded code.
fn masked(key: &Key, tag: [u8; TAG_BYTES], mut padded: [u8; PADDED_BYTES]) -> [u8; PADDED_BYTES] {
    for (number, part) in (0_u8..).zip(padded.chunks_mut(TAG_BYTES)) {
        let mask = first(key, [&b"mask"[..], &[number], &tag]);
        part.iter_mut()
            .zip(mask)
            .for_each(|(byte, mask)| *byte ^= mask);
    }
    padded
}

fn first(key: &Key, parts: [&[u8]; 3]) -> [u8; TAG_BYTES] {
    let mut context = Context::with_key(key);
    parts.iter().for_each(|part| context.update(part));
    let signature = context.sign();
    std::array::from_fn(|at| signature.as_ref().get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_codes_are_opened_for_their_token_and_store_only() {
        for code in ["A", "BRIARWICK-GB", &"x".repeat(64)] {
            let code: ProductCode = code.parse().unwrap();
            let sealed = SealedCode::new(&code, b"token", "store");
            assert_eq!(sealed.open(b"token", "store"), Some(code));
            assert_eq!(sealed.open(b"other", "store"), None);
            assert_eq!(sealed.open(b"token", "other"), None);
            let mut damaged = sealed;
            damaged.code[1] ^= 1;
            assert_eq!(damaged.open(b"token", "store"), None);
        }
    }

    #[test]
    fn sealed_codes_show_neither_text_nor_length() {
        let sealed = |code: &str, token: &[u8]| {
            SealedCode::new(&code.parse().unwrap(), token, "store")
                .parts()
                .concat()
        };
        let code = "SECRET-PRODUCT-GB";
        let [one, other] = [&b"1"[..], b"2"].map(|token| sealed(code, token));
        assert_eq!(one.len(), sealed("A", b"1").len());
        assert!(
            one.iter()
                .zip(&other)
                .filter(|(one, other)| one == other)
                .count()
                < 16
        );
        assert!(
            !one.windows(4)
                .any(|part| code.as_bytes().windows(4).any(|of| of == part))
        );
    }
}
