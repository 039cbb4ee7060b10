//! `vitrine deliver`: delivers to webhook endpoints without serving clients.

use std::sync::Arc;

use clap::Args;

use super::admin_port::AdminArgs;
use super::follow_settings::FollowArgs;
use super::logging::{LogArgs, STARTED};
use super::serve::checked_public_url;
use super::shutdown::wait_for_signal;
use super::store_args::StoreArgs;
use super::webhook_settings::WebhookArgs;
use super::{Outcome, exit_with_usage_error};
use crate::app::{self, AppSettings};
use crate::edge::descriptors::{self, Sockets};
use crate::live::{Follower, Live};
use crate::webhooks::{Deliverer, MAX_SOCKETS};

const EXAMPLES: &str = "\
Examples:
  vitrine deliver --public-url https://catalog.example
  vitrine deliver --public-url https://catalog.example --webhook-networks 10.0.0.0/8
  vitrine deliver --public-url https://catalog.example --admin-listen 127.0.0.1:9091";

/// Deliver to webhook endpoints, without serving clients.
///
/// The same as `vitrine serve --deliver-webhooks`, without a listener. Any number of both share the work. SIGTERM or Ctrl-C
/// ends it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Deliver {
    /// Public address of the service, without `/v2`, as its servers have it.
    #[arg(long, env = "VITRINE_PUBLIC_URL", value_name = "URL", value_parser = checked_public_url)]
    public_url: String,
    #[command(flatten)]
    webhooks: WebhookArgs,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    admin: AdminArgs,
    #[command(flatten)]
    logs: LogArgs,
}

impl Deliver {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        for checked in [self.admin.check(), self.follow.check(store)] {
            if let Err((_, fault)) = checked {
                exit_with_usage_error(&fault);
            }
        }
        self.logs.start()?;
        let stores = self.follow.open(store, None)?;
        let admin = self.admin.listen()?;
        let live = Arc::new(Live::new(self.follow.max_stale_keys, self.follow.journal()));
        let settings = AppSettings {
            public_url: self.public_url.clone(),
            ..AppSettings::default()
        };
        let app = Arc::new(app::build(settings, Arc::clone(&live)));
        if let Some(admin) = &admin {
            tracing::info!(target: STARTED, "admin port on {}", admin.address);
        }
        let _admin = admin
            .map(|port| port.start(&app, &stores, Some(store.open_for_acts()?)))
            .transpose()?;
        let follower = Follower::start(&stores, &live, &app.endpoints.addresses, None)?;
        let room = descriptors::make_room(Sockets {
            connections: 0,
            webhooks: MAX_SOCKETS,
        });
        let settings = (self.webhooks).deliverer(store, &self.public_url, room.webhooks, false)?;
        let deliverer = Deliverer::start(&live, &app.metrics.webhooks, settings)?;
        wait_for_signal("delivering to webhook endpoints")?;
        drop(deliverer);
        drop(follower);
        Ok(Outcome::Done)
    }
}
