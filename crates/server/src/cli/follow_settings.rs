//! Settings of a server's store: what it follows, and how long it trusts keys without it.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use clap::builder::BoolishValueParser;
use vitrine_store::{IfMissing, StoreAddress, StoreError};

use super::store_args::StoreArgs;
use super::time;
use crate::live::{JournalLimits, StateDirectory, Stores};

/// Settings of following the store, and of its absence.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Following the store")]
pub(super) struct FollowArgs {
    /// Replica of the store to read the catalog and the keys from (postgres://USER@HOST/DATABASE), with the password of
    /// --store-password-file. What servers write still goes to --store: the use of keys, sign-ins and acts of the console,
    /// deliveries of webhooks.
    #[arg(
        long,
        env = "VITRINE_FOLLOW_STORE",
        hide_env_values = true,
        value_name = "URL"
    )]
    follow_store: Option<StoreAddress>,
    /// Create an empty store if there is none, and serve it: reads get 503 until the first load. Otherwise a missing
    /// store ends the server; `vitrine load`, `keys create`, `mirror` and `restore` create one.
    #[arg(long, env = "VITRINE_CREATE", value_parser = BoolishValueParser::new())]
    create: bool,
    /// Time for which keys are trusted since the store was last read: no revocation is seen while it is unreachable.
    /// After that, requests that need a key get 503, and /readyz fails.
    #[arg(
        long,
        env = "VITRINE_MAX_STALE_KEYS",
        value_name = "SPAN",
        default_value = "1h",
        value_parser = time::parse_pause
    )]
    pub(super) max_stale_keys: Duration,
    /// Time for which clients can continue from a replaced state of the catalog (`GET /product/changes`). Older tokens get
    /// 410.
    #[arg(
        long,
        env = "VITRINE_CHANGES_KEEP",
        value_name = "SPAN",
        default_value = "30d",
        value_parser = time::parse_pause
    )]
    changes_keep: Duration,
    /// Maximum memory for changes, in MiB. The oldest are dropped first, even if --changes-keep isn't over.
    #[arg(
        long,
        env = "VITRINE_CHANGES_MIB",
        value_name = "MIB",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=MAX_CHANGES_MIB)
    )]
    changes_mib: u32,
}

/// Changes are numbered in 32 bits.
const MAX_CHANGES_MIB: i64 = 1 << 10;

impl FollowArgs {
    /// Refuses incompatible settings; returns the setting and the fault.
    pub(super) fn check(&self, store: &StoreArgs) -> Result<(), (&'static str, String)> {
        match &self.follow_store {
            Some(_) if !store.url.is_postgres() => Err((
                "follow_store",
                "--follow-store needs --store, the PostgreSQL store that it is a replica of: the last use of keys is \
                 written there"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the limits of the journal of changes.
    pub(super) fn journal(&self) -> JournalLimits {
        JournalLimits {
            keep: self.changes_keep,
            max_bytes: (self.changes_mib as usize) << 20,
        }
    }

    /// Returns the address of the followed store.
    pub(super) fn followed<'a>(&'a self, store: &'a StoreArgs) -> &'a StoreAddress {
        self.follow_store.as_ref().unwrap_or(&store.url)
    }

    /// Opens the store or stores. A missing store is created only with `--create`. If `state` has a catalog of the
    /// store, the store existed: then it is waited for and not created, which might hinder its recovery.
    pub(super) fn open(
        &self,
        store: &StoreArgs,
        state: Option<&StateDirectory>,
    ) -> anyhow::Result<Stores> {
        let was_there = state.is_some_and(StateDirectory::has_catalog);
        let if_missing = match self.create && !was_there {
            true => IfMissing::Create,
            false => IfMissing::Refuse,
        };
        let written = store.open_to_follow(if_missing)?;
        if !was_there && let Err(StoreError::Missing { place }) = written.state() {
            return Err(anyhow!(
                "there is no store at {place}; check --store, create one with `vitrine load` or `vitrine keys create`, \
                 or start with an empty one: --create (VITRINE_CREATE=true)"
            ));
        }
        match &self.follow_store {
            None => Ok(Stores::one(written)),
            Some(replica) => Ok(Stores {
                followed: store.with_password(replica)?.open_replica()?,
                written,
            }),
        }
    }
}
