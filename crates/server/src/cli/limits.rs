//! Settings of limits: the place where quotas are counted, and the limit of failed keys of an address.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::Args;
use vitrine_model::quota::Quota;

use super::{read_secret, variable};
use crate::http::access::failed_keys::FailedKeys;
use crate::http::waits::DEFAULT_MAX_WAITS;
use crate::limits::{Address, SharedLimits};

/// Environment variable of the shared limits' password, instead of a file.
const PASSWORD_VARIABLE: &str = "VITRINE_LIMITS_PASSWORD";

/// Settings of quotas and of failed keys.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
    /// Storage of quota counters: `memory`, each server for itself, or a Redis or Valkey that several servers share,
    /// such as redis://127.0.0.1:6379/0, or rediss://… for TLS. Its password belongs in --limits-password-file or the
    /// environment variable VITRINE_LIMITS_PASSWORD.
    #[arg(
        long,
        env = "VITRINE_LIMITS",
        value_name = "WHERE",
        default_value = "memory",
        hide_env_values = true
    )]
    limits: String,
    /// File that contains the password of the Redis, and nothing else.
    #[arg(long, env = "VITRINE_LIMITS_PASSWORD_FILE", value_name = "FILE")]
    limits_password_file: Option<PathBuf>,
    /// Maximum number of requests with wrong, expired or revoked keys from one address in so many seconds; further ones
    /// get 429. `off` disables the limit. Requests with a valid key are never limited by it.
    #[arg(
        long,
        env = "VITRINE_FAILED_KEYS",
        value_name = "REQUESTS/SECONDS",
        default_value = "60/60"
    )]
    failed_keys: FailedKeyLimit,
    /// Maximum number of requests that wait for changes (`GET /product/changes?wait=…`), a quarter of them for one key.
    /// Further ones are answered at once.
    #[arg(
        long,
        env = "VITRINE_MAX_WAITS",
        value_name = "COUNT",
        default_value_t = DEFAULT_MAX_WAITS as u32
    )]
    max_waits: u32,
}

#[derive(Debug, Clone, Copy)]
struct FailedKeyLimit(Option<Quota>);

impl FromStr for FailedKeyLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|quota| Self(Some(quota)))
            .map_err(|invalid| format!("expected `off`, or {invalid}"))
    }
}

impl LimitArgs {
    /// Refuses incompatible settings; returns the setting and the fault.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let checked = self.address(None);
        checked.map(drop).map_err(|wrong| ("limits", wrong))
    }

    /// Returns the address of the shared limits, if quotas are shared.
    fn address(&self, password: Option<&str>) -> Result<Option<Address>, String> {
        match self.limits.as_str() {
            "memory" => Ok(None),
            url => Address::new(url, password)
                .map(Some)
                .map_err(|wrong| format!("--limits: {wrong}")),
        }
    }

    /// Returns the shared quotas, if there are any.
    pub(super) fn shared(&self) -> anyhow::Result<Option<Arc<SharedLimits>>> {
        if self.limits == "memory" {
            return Ok(None);
        }
        let password = self.password()?;
        let address = self
            .address(password.as_deref())
            .map_err(|wrong| anyhow!(wrong))?;
        Ok(address.map(|address| Arc::new(SharedLimits::new(address))))
    }

    fn password(&self) -> anyhow::Result<Option<String>> {
        let Some(file) = &self.limits_password_file else {
            return Ok(variable(PASSWORD_VARIABLE));
        };
        let password = read_secret(file).with_context(|| {
            let file = file.display();
            format!("--limits-password-file is `{file}`, which can't be read")
        })?;
        Ok(Some(password))
    }

    /// Returns the maximum number of requests that wait for changes.
    pub(super) fn max_waits(&self) -> usize {
        self.max_waits as usize
    }

    /// Returns the limit of failed keys.
    pub(super) fn failed_keys(&self) -> FailedKeys {
        FailedKeys::new(self.failed_keys.0)
    }
}
