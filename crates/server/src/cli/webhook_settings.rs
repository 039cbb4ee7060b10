//! Settings of deliveries to webhook endpoints.

use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;

use crate::webhooks::DelivererSettings;

/// Settings of deliveries, of servers and of `vitrine deliver`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhooks")]
pub(super) struct WebhookArgs {
    /// File from which the secrets of webhook endpoints are derived, made by the first `vitrine webhooks create`. Only its
    /// owner may be able to read it.
    #[arg(
        long,
        env = "VITRINE_WEBHOOK_KEY_FILE",
        value_name = "FILE",
        value_hint = clap::ValueHint::AnyPath,
        default_value = "vitrine-webhooks.key"
    )]
    pub(super) webhook_key_file: PathBuf,
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
    /// Returns the settings of a deliverer.
    pub(super) fn deliverer(&self, public_url: &str) -> DelivererSettings {
        DelivererSettings {
            public_url: public_url.to_owned(),
            key_file: self.webhook_key_file.clone(),
            networks: self.webhook_networks.clone(),
        }
    }
}
