//! Settings of the store: its address, and the time to wait for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tempfile::TempDir;
use vitrine_store::{IfMissing, Store, StoreAddress, StoreError};

use super::read_secret;

/// Address of the store, and the time to wait for others there.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(super) struct StoreArgs {
    /// The store's address: sqlite:PATH, or postgres://USER@HOST/DATABASE.
    // The environment's value isn't shown in the help: it may contain a password.
    #[arg(
        long = "store",
        global = true,
        env = "VITRINE_STORE",
        hide_env_values = true,
        value_name = "URL",
        default_value = "sqlite:vitrine.db"
    )]
    pub(super) url: StoreAddress,
    /// File that contains the password of a PostgreSQL store. Without it, and without one in the address, the password
    /// is found as by PostgreSQL's own programs: PGPASSWORD, PGPASSFILE, ~/.pgpass.
    #[arg(
        long = "store-password-file",
        global = true,
        env = "VITRINE_STORE_PASSWORD_FILE",
        value_name = "FILE"
    )]
    password_file: Option<PathBuf>,
    /// Time to wait for another process that is writing to the store.
    #[arg(
        long = "wait",
        global = true,
        env = "VITRINE_WAIT",
        value_name = "SECONDS",
        default_value_t = vitrine_store::DEFAULT_LOCK_WAIT.as_secs(),
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    wait_seconds: u64,
}

/// Maximum time that an act of an operator waits for another writer.
const ACT_WAIT: Duration = Duration::from_secs(10);

impl StoreArgs {
    /// Opens the store.
    pub(super) fn open(&self, if_missing: IfMissing) -> Result<Arc<Store>, StoreError> {
        self.address()?.open(if_missing, self.patience())
    }

    /// Opens the store as it is, for a check.
    pub(super) fn open_to_check(&self) -> Result<Arc<Store>, StoreError> {
        self.address()?.open_to_check(self.patience())
    }

    /// Opens the store for a server, which also starts if the database can't be reached.
    pub(super) fn open_to_follow(&self, if_missing: IfMissing) -> Result<Arc<Store>, StoreError> {
        self.address()?.open_to_follow(if_missing, self.patience())
    }

    /// Opens the store for acts of operators on a server, who wait for other writers for a moment only.
    pub(super) fn open_for_acts(&self) -> Result<Arc<Store>, StoreError> {
        let wait = self.patience().min(ACT_WAIT);
        self.address()?.open_for_acts(wait)
    }

    /// Returns the store's address with its password.
    pub(super) fn address(&self) -> Result<StoreAddress, StoreError> {
        self.with_password(&self.url)
    }

    /// Returns another address, of a replica, with the store's password.
    pub(super) fn with_password(&self, url: &StoreAddress) -> Result<StoreAddress, StoreError> {
        let Some(path) = &self.password_file else {
            return Ok(url.clone());
        };
        let password = read_secret(path).map_err(|source| StoreError::File {
            doing: "open",
            path: path.clone(),
            source,
        })?;
        Ok(url.clone().with_password(password))
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.wait_seconds)
    }
}

/// Returns an empty store in a temporary directory.
pub(super) fn temporary() -> anyhow::Result<(Arc<Store>, TempDir)> {
    let directory = tempfile::tempdir().context("can't create a temporary directory")?;
    let path = directory.path().join("vitrine.db");
    let store = vitrine_store::open(&format!("sqlite:{}", path.display()), IfMissing::Create)?;
    Ok((store, directory))
}
