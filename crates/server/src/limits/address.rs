//! Address of the Redis that holds shared quotas.

use std::fmt;

use redis::{ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

/// Address of a Redis, with its credentials. `Debug` and `Display` show no password.
#[derive(Clone)]
pub struct Address(ConnectionInfo);

impl Address {
    /// Parses `redis://[USER@]HOST[:PORT][/DATABASE]`, or `rediss://…` for TLS, and adds the password.
    ///
    /// # Errors
    ///
    /// If the address has another form or contains a password: addresses are shown, passwords mustn't be. The error
    /// doesn't repeat the address.
    pub fn new(url: &str, password: Option<&str>) -> Result<Self, String> {
        let expected = "expected `memory`, or an address such as redis://127.0.0.1:6379/0, or rediss://… for TLS";
        let parsed = redis::parse_redis_url(url)
            .filter(|parsed| ["redis", "rediss"].contains(&parsed.scheme()))
            .filter(|parsed| parsed.host_str().is_some_and(|host| !host.is_empty()))
            .ok_or(expected)?;
        if parsed.password().is_some() {
            return Err(
                "the address contains a password, which others can see; remove it and use \
                 --limits-password-file or VITRINE_LIMITS_PASSWORD"
                    .to_owned(),
            );
        }
        let info = url
            .into_connection_info()
            .map_err(|error| format!("{expected}: {error}"))?;
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let mut redis: RedisConnectionInfo = info.redis_settings().clone();
        if let Some(password) = password {
            redis = redis.set_password(password);
        }
        Ok(Self(info.set_redis_settings(redis).set_tcp_settings(tcp)))
    }

    pub(super) fn connection(&self) -> ConnectionInfo {
        self.0.clone()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Host and port.
        self.0.addr().fmt(out)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let address = Address::new("redis://reader@cache.example:6380/2", Some("sesame")).unwrap();
        assert_eq!(address.to_string(), "cache.example:6380");
        assert_eq!(format!("{address:?}"), "Address(cache.example:6380)");
        let redis = address.connection().redis_settings().clone();
        assert_eq!((redis.username(), redis.db()), (Some("reader"), 2));
        assert_eq!(redis.password(), Some("sesame"));
        let refused = Address::new("redis://:sesame@cache.example", None).unwrap_err();
        assert!(!refused.contains("sesame") && refused.contains("--limits-password-file"));
    }

    #[test]
    fn addresses_other_than_redis_are_refused() {
        assert!(Address::new("rediss://cache.example", None).is_ok());
        for wrong in [
            "",
            "redis",
            "redis://",
            "http://cache.example",
            "redis://h:x",
            "redis://h/x",
        ] {
            let said = Address::new(wrong, None).unwrap_err();
            assert!(said.contains("redis://127.0.0.1:6379/0"), "{wrong}: {said}");
        }
    }
}
