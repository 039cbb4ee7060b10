//! How a server follows its store.

use std::time::Duration;

use clap::Args;

use super::time;

/// What holds while the store is away.
#[derive(Debug, Clone, Args)]
pub(super) struct FollowArgs {
    /// How long keys are trusted since the store was last read: while it is away, nobody sees a revocation.
    /// Past that, requests with a key are answered with 503, and /readyz fails.
    #[arg(
        long,
        env = "VITRINE_MAX_STALE_KEYS",
        value_name = "SPAN",
        default_value = "1h",
        value_parser = time::pause
    )]
    pub(super) max_stale_keys: Duration,
}
