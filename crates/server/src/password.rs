//! Passwords of operators: Argon2id, with the parameters that OWASP recommends. A hash takes some 10 ms and 19 MiB, so callers
//! that others can reach bound how many are made at once.

use std::sync::OnceLock;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use vitrine_store::operators::PasswordHash;

/// Memory of a hash, in KiB.
const MEMORY_KIB: u32 = 19 * 1024;

/// Passes over the memory.
const PASSES: u32 = 2;

/// Minimum length of a password, in characters.
const MIN_CHARACTERS: usize = 12;

/// Maximum length of a password, in bytes.
pub(crate) const MAX_BYTES: usize = 1_024;

fn argon2() -> anyhow::Result<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None);
    let params = params.map_err(|error| anyhow::anyhow!("can't hash passwords: {error}"))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Checks a new password.
///
/// # Errors
///
/// If it is too short or too long; the text says so.
pub(crate) fn check(password: &str) -> Result<(), String> {
    if password.chars().count() < MIN_CHARACTERS {
        return Err(format!(
            "the password is shorter than {MIN_CHARACTERS} characters; take a longer one"
        ));
    }
    match password.len() > MAX_BYTES {
        true => Err(format!("the password is longer than {MAX_BYTES} bytes")),
        false => Ok(()),
    }
}

/// Returns a random password of 128 bits.
///
/// # Errors
///
/// If the system has no random numbers.
pub(crate) fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the hash of a password, with a new salt.
///
/// # Errors
///
/// If there is no memory, or the system has no random numbers.
pub(crate) fn hash(password: &str) -> anyhow::Result<PasswordHash> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt)?;
    let hash = argon2()?.hash_password_with_salt(password.as_bytes(), &salt);
    let hash = hash.map_err(|error| anyhow::anyhow!("can't hash the password: {error}"))?;
    Ok(PasswordHash::new(hash.to_string()))
}

/// Returns true if a password is that of the hash. Takes the same time without a hash, so that nobody learns which operators
/// exist.
pub(crate) fn verify(hash: Option<&PasswordHash>, password: &str) -> bool {
    static NOBODY: OnceLock<Option<PasswordHash>> = OnceLock::new();
    let nobody = NOBODY.get_or_init(|| self::hash("nobody has this password").ok());
    let (Some(checked), Ok(argon2)) = (hash.or(nobody.as_ref()), argon2()) else {
        return false;
    };
    let fits = argon2.verify_password(password.as_bytes(), checked.as_str());
    fits.is_ok() && hash.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_of_the_hash_fits() {
        let made = hash("correct horse battery").unwrap();
        assert!(made.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify(Some(&made), "correct horse battery"));
        assert!(!verify(Some(&made), "correct horse batterz"));
        assert!(!verify(None, "nobody has this password"));
        assert_ne!(hash("correct horse battery").unwrap(), made);
    }

    #[test]
    fn short_passwords_are_refused() {
        assert!(check("eleven char").is_err());
        assert!(check("twelve chars").is_ok());
        assert!(check(&"a".repeat(1_025)).is_err());
        assert!(check(&random().unwrap()).is_ok());
    }
}
