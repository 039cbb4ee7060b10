//! Hides secrets in values of settings. If in doubt, it hides too much.

use clap::error::{ContextKind, ContextValue};
use vitrine_store::StoreAddress;

/// Replacement of a secret.
const HIDDEN: &str = "(hidden)";

/// Returns a value without secrets: without the password in a URL, or hidden if the setting is a password.
pub(in crate::cli) fn shown(name: &str, value: &str) -> String {
    let is_secret = ["password", "secret", "token"]
        .iter()
        .any(|word| name.contains(word));
    if is_secret && !name.ends_with("_file") {
        return HIDDEN.to_owned();
    }
    if ["store", "follow_store"].contains(&name) {
        let Ok(address) = value.parse::<StoreAddress>();
        let address = address.to_string();
        return match address == value {
            true => address,
            false => format!("{address} {HIDDEN}"),
        };
    }
    let mut value = value.to_owned();
    // `redis://user:password@host/…`. A password may contain `@`, so the last one counts.
    if let Some(start) = value.find("://").map(|scheme| scheme + 3)
        && let Some(end) = value.rfind('@').filter(|end| *end > start)
        && let Some(colon) = value[start..end].find(':')
    {
        value.replace_range(start + colon + 1..end, HIDDEN);
    }
    // `…?password=…`, `host=… password=…`, and everything after it.
    if let Some(found) = value.to_ascii_lowercase().find("password=") {
        value.replace_range(found + "password=".len().., HIDDEN);
    }
    value
}

/// Removes secrets from the value in a parser's error.
pub(in crate::cli) fn without_secrets(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let argument = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(argument)) => argument.as_str(),
            _ => "",
        };
        // `--public-url <URL>` is the setting `public_url`.
        let name = argument.split(' ').next().unwrap_or_default();
        let name = name.trim_start_matches('-').replace('-', "_");
        let value = ContextValue::String(shown(&name, value));
        error.insert(ContextKind::InvalidValue, value);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passwords_are_hidden() {
        for (name, plain) in [
            ("store", "sqlite:/var/lib/vitrine/vitrine.db"),
            (
                "store",
                "postgres://vitrine@database.internal:5432/vitrine?sslmode=verify-full",
            ),
            ("listen", "127.0.0.1:8080"),
            ("listen", "[::1]:9090"),
            ("public_url", "https://catalog.example"),
            ("access_log", "stdout"),
        ] {
            assert_eq!(shown(name, plain), plain);
        }
        for secret in [
            "postgres://vitrine:hunter2@database.internal/vitrine",
            "postgres://vitrine:p/hunter2@x?y#z@database.internal/vitrine",
            "postgres://:hunter2@database.internal",
            "postgres://database.internal/vitrine?user=vitrine&password=hunter2",
            "postgres://database.internal/vitrine?sslPassword=hunter2&a=b",
            "host=database.internal password='hun ter2 hunter2' dbname=vitrine",
            "postgres://database.internal/vitrine?passwd=hunter2",
            "postgres://vitrine:hunter2/vitrine",
        ] {
            let shown = shown("store", secret);
            assert!(!shown.contains("ter2"), "{shown}");
            assert!(shown.contains(HIDDEN), "{shown}");
        }
        for secret in [
            "redis://:hunter2@limits.internal:6379/0",
            "redis://limits.internal:6379/0?password=hunter2",
        ] {
            let shown = shown("limits", secret);
            assert!(!shown.contains("ter2"), "{shown}");
            assert!(shown.starts_with("redis://"), "{shown}");
        }
        assert_eq!(shown("store_password", "hunter2"), HIDDEN);
        assert_eq!(shown("store_password_file", "/run/secret"), "/run/secret");
    }
}
