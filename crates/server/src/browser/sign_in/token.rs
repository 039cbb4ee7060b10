//! Tokens of sessions, and of forms. A form's token is derived from a secret that other origins can't read, and binds the form to the
//! session, or behind a proxy to the operator as it is.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::operators::{Operator, TokenHash};

/// Length of a session's token, in bytes.
const BYTES: usize = 32;

/// Secret of a session. `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token([u8; BYTES]);

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(…)")
    }
}

impl Token {
    /// Returns a new one.
    pub(super) fn random() -> anyhow::Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads a token as it stands in a cookie.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Returns the token as it stands in a cookie.
    pub(super) fn reveal(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the hash that is stored. A fast one is enough: there are 256 random bits.
    pub(super) fn hash(&self) -> TokenHash {
        Sha256::digest(self.0).into()
    }
}

/// Returns the token of the forms of a session.
pub(super) fn of_session(token: &Token) -> String {
    derived(&[b"vitrine form of a session", &token.0])
}

/// Returns the token of the forms of an operator whom a proxy signed in.
pub(super) fn of_operator(operator: &Operator) -> String {
    let name = operator.name.as_str().as_bytes();
    derived(&[
        b"vitrine form of an operator",
        operator.stamp.as_bytes(),
        name,
    ])
}

fn derived(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    Hexadecimal(&digest).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_read_as_it_was_written_and_not_shown() {
        let token = Token::random().unwrap();
        let text = token.reveal();
        assert_eq!(Token::parse(&text), Some(token.clone()));
        assert!(!format!("{token:?}").contains(&text));
        for wrong in ["", "a", &text[1..], &format!("{text}A")] {
            assert_eq!(Token::parse(wrong), None, "{wrong}");
        }
        assert_ne!(of_session(&token), of_session(&Token::random().unwrap()));
        assert!(!of_session(&token).contains(&text));
    }
}
