//! The settings of following: which store is read, and what holds while it is away.

use std::time::Duration;

use clap::Args;
use vitrine_store::{IfMissing, StoreAddress, StoreError};

use super::store_args::StoreArgs;
use super::time;
use crate::live::{StateDirectory, Stores};

/// Which store is read, and what holds while it is away.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Following the store")]
pub(super) struct FollowArgs {
    /// Read the catalog and the keys from this replica of the store (postgres://USER@HOST/DATABASE), with the store's
    /// password where that is in a file. Only when keys were last used is still written to --store.
    #[arg(
        long,
        env = "VITRINE_FOLLOW_STORE",
        hide_env_values = true,
        value_name = "URL"
    )]
    follow_store: Option<StoreAddress>,
    /// How long keys are trusted since the store was last read: while it is away, nobody sees a revocation.
    /// Past that, requests that need a key are answered with 503, and /readyz fails.
    #[arg(
        long,
        env = "VITRINE_MAX_STALE_KEYS",
        value_name = "SPAN",
        default_value = "1h",
        value_parser = time::pause
    )]
    pub(super) max_stale_keys: Duration,
}

impl FollowArgs {
    /// What is wrong with the settings together.
    pub(super) fn check(&self, store: &StoreArgs) -> Result<(), (&'static str, String)> {
        match &self.follow_store {
            Some(_) if !store.url.is_postgres() => Err((
                "follow_store",
                "--follow-store needs --store, the PostgreSQL store that it is a replica of: \
                 when keys were last used is written there"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// The address of the store that is read.
    pub(super) fn followed<'a>(&'a self, store: &'a StoreArgs) -> &'a StoreAddress {
        self.follow_store.as_ref().unwrap_or(&store.url)
    }

    /// Opens the store or stores. Where `state` holds a catalog of the store, there was one: should it be gone, it
    /// isn't made anew, which might be in the way of who brings it back.
    pub(super) fn open(
        &self,
        store: &StoreArgs,
        state: Option<&StateDirectory>,
    ) -> Result<Stores, StoreError> {
        let if_missing = match state.is_some_and(StateDirectory::holds_catalog) {
            true => IfMissing::Refuse,
            false => IfMissing::Create,
        };
        let written = store.open_to_follow(if_missing)?;
        match &self.follow_store {
            None => Ok(Stores::one(written)),
            Some(replica) => Ok(Stores {
                followed: store.with_password(replica)?.open_replica()?,
                written,
            }),
        }
    }
}
