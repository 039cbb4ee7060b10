//! Secrets of webhook endpoints: derived from a key file, so that no dump or backup of the store has one
//! (docs/contract/webhooks.md#secrets).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use vitrine_model::hexadecimal::Hexadecimal;

/// Length of a key and of a secret, in bytes.
const LENGTH: usize = 32;

/// Maximum length of a key file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256;

/// Prefix of secrets (Standard Webhooks 1.0).
const PREFIX: &str = "whsec_";

/// Key from which the secrets of all endpoints are derived.
pub struct KeyFile(Key);

/// Error of a key file.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file can't be read or created.
    #[error("can't read or make {}, the webhook key file; check that it exists and that this user may read it", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Others may read the file.
    #[error(
        "{}, the webhook key file, can be read or written by others than its owner (mode {mode:03o}); `chmod 600` it",
        path.display()
    )]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Permissions.
        mode: u32,
    },
    /// The file isn't of this kind.
    #[error("{} is no webhook key file: it must hold 32 bytes in base64, as the first `vitrine webhooks create` writes them", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
}

impl KeyFile {
    /// Reads a key file.
    ///
    /// # Errors
    ///
    /// If it can't be read, others than its owner may read it, or it holds something else.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let failed = |source| KeyFileError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Permissions {
                path: path.to_owned(),
                mode,
            });
        }
        let mut text = String::new();
        let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
        read.map_err(failed)?;
        let key = STANDARD.decode(text.trim()).unwrap_or_default();
        match key.len() == LENGTH {
            true => Ok(Self(Key::new(HMAC_SHA256, &key))),
            false => Err(KeyFileError::Content {
                path: path.to_owned(),
            }),
        }
    }

    /// Creates a key file with a random key, which only its owner can read.
    ///
    /// # Errors
    ///
    /// If it exists or can't be written.
    pub fn create(path: &Path) -> Result<Self, KeyFileError> {
        let write = || -> io::Result<()> {
            let mut key = [0; LENGTH];
            getrandom::fill(&mut key).map_err(io::Error::other)?;
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            file.write_all(format!("{}\n", STANDARD.encode(key)).as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| KeyFileError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::read(path)
    }

    /// Returns a fingerprint, from which the key can't be found.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let tag = sign(&self.0, b"vitrine webhook key fingerprint");
        let first = tag.as_ref().get(..16).unwrap_or_default();
        Hexadecimal(first).to_string()
    }

    /// Returns the secret of an endpoint's generation.
    #[must_use]
    pub fn secret(&self, endpoint: &str, salt: &[u8; 16]) -> Secret {
        let message = [
            b"vitrine webhook secret",
            salt.as_slice(),
            endpoint.as_bytes(),
        ]
        .concat();
        let tag = sign(&self.0, &message);
        Secret(tag.as_ref().to_vec())
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KeyFile")
    }
}

/// Secret by which a receiver verifies events.
pub struct Secret(Vec<u8>);

impl Secret {
    /// Reads a secret as receivers are given it; `None` if it isn't one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let secret = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (!secret.is_empty()).then_some(Self(secret))
    }

    /// Returns true if one of the signatures of an attempt is by this secret.
    #[must_use]
    pub fn verifies(&self, id: &str, timestamp: i64, body: &[u8], signatures: &str) -> bool {
        let key = Key::new(HMAC_SHA256, &self.0);
        let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let mut signatures = signatures
            .split(' ')
            .filter_map(|one| one.strip_prefix("v1,"));
        signatures.any(|one| {
            let tag = STANDARD.decode(one).unwrap_or_default();
            verify(&key, &signed, &tag).is_ok()
        })
    }

    /// Returns it as receivers are given it.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Returns the signature of an attempt (Standard Webhooks 1.0): of id, time in seconds since 1970, and body.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let key = Key::new(HMAC_SHA256, &self.0);
        let tag = sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_that_of_the_specification() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let secret = Secret(secret);
        assert_eq!(secret.reveal(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signature = secret.sign(id, 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret");
        let read = Secret::read(&secret.reveal()).unwrap();
        let body = br#"{"test": 2432232314}"#;
        let both = format!("v1,other {signature}");
        assert!(read.verifies(id, 1_614_265_330, body, &both));
        assert!(!read.verifies(id, 1_614_265_331, body, &both));
        assert!(!read.verifies(id, 1_614_265_330, b"{}", &both));
        assert!(Secret::read("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_none());
    }

    #[test]
    fn key_file_is_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("webhook.key");
        assert!(matches!(KeyFile::read(&path), Err(KeyFileError::Io { .. })));
        let created = KeyFile::create(&path).unwrap();
        assert!(KeyFile::create(&path).is_err(), "never overwritten");
        let read = KeyFile::read(&path).unwrap();
        assert_eq!(read.fingerprint(), created.fingerprint());
        let secret = |salt| read.secret("wh_1", &[salt; 16]).reveal();
        assert_eq!(secret(1), created.secret("wh_1", &[1; 16]).reveal());
        assert_ne!(secret(1), secret(2));
        assert_ne!(secret(1), read.secret("wh_2", &[1; 16]).reveal());
        assert_eq!(format!("{read:?}"), "KeyFile");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = KeyFile::read(&path).unwrap_err().to_string();
        assert!(
            refused.contains("640") && refused.contains("chmod 600"),
            "{refused}"
        );
        let other = directory.path().join("other");
        std::fs::write(&other, "short").unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(
            KeyFile::read(&other),
            Err(KeyFileError::Content { .. })
        ));
    }
}
