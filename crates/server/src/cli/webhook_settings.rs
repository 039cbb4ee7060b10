//! Settings of deliveries to webhook endpoints.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use ipnet::IpNet;
use vitrine_store::{IfMissing, StoreError};

use super::store_args::StoreArgs;
use crate::webhooks::DelivererSettings;

/// The file from which secrets are derived.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhooks")]
pub(super) struct KeyFileArgs {
    /// File from which the secrets of webhook endpoints are derived, made by the first `vitrine webhooks create`. Only its
    /// owner may be able to read it. Commands other than `serve` don't take it from a settings file.
    #[arg(
        long,
        env = "VITRINE_WEBHOOK_KEY_FILE",
        value_name = "FILE",
        value_hint = ValueHint::AnyPath,
        default_value = "vitrine-webhooks.key"
    )]
    pub(super) webhook_key_file: PathBuf,
}

/// Settings of deliveries, of servers and of `vitrine deliver`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhooks")]
pub(super) struct WebhookArgs {
    #[command(flatten)]
    pub(super) key_file: KeyFileArgs,
    /// Private networks that events may be sent to, such as 10.0.0.0/8; within them http is allowed, too. Several with
    /// commas in between, or given several times. By default none.
    #[arg(
        long,
        env = "VITRINE_WEBHOOK_NETWORKS",
        value_name = "NETWORK,…",
        value_delimiter = ','
    )]
    pub(super) webhook_networks: Vec<IpNet>,
}

impl WebhookArgs {
    /// Returns the settings of a deliverer, with connections to the store of its own; `is_paced` beside a server's clients.
    pub(super) fn deliverer(
        &self,
        store: &StoreArgs,
        public_url: &str,
        sockets: usize,
        is_paced: bool,
    ) -> Result<DelivererSettings, StoreError> {
        Ok(DelivererSettings {
            store: store.open_to_follow(IfMissing::Refuse)?,
            public_url: public_url.to_owned(),
            key_file: self.key_file.webhook_key_file.clone(),
            networks: self.webhook_networks.clone(),
            is_paced,
            sockets,
        })
    }
}
