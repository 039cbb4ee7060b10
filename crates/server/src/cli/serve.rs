//! `vitrine serve`: serves the catalog of a store.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use tokio::runtime::Builder;
use vitrine_model::url::WebUrl;
use vitrine_store::Store;

use super::admin_port::{AdminArgs, AdminPort};
use super::cors::CorsArgs;
use super::edges::{EdgeArgs, Listening};
use super::follow_settings::FollowArgs;
use super::limits::LimitArgs;
use super::logging::{self, LogArgs, STARTED};
use super::proxies::ProxyArgs;
use super::reload::Reload;
use super::shutdown::ShutdownSignals;
use super::store_args::StoreArgs;
use super::webhook_settings::WebhookArgs;
use super::{Outcome, exit_with_usage_error, state_dir};
use crate::app::{self, AppSettings};
use crate::edge::server::{self, Server};
use crate::edge::systemd;
use crate::edge::tls::Certificates;
use crate::http::Access;
use crate::http::access::client::Peer;
use crate::http::access_log::{AccessLog, Destination};
use crate::http::waits::DEFAULT_MAX_WAITS;
use crate::instants::InstantThread;
use crate::live::{DEFAULT_MAX_STALE_KEYS, Follower, JournalLimits, Live, StateDirectory, Stores};
use crate::webhooks::{Deliverer, DelivererSettings};

const EXAMPLES: &str = "\
Examples:
  vitrine serve
  vitrine serve --listen 0.0.0.0:8080 --public-url https://catalog.example
  vitrine serve --store sqlite:/var/lib/vitrine/vitrine.db --state-dir /var/lib/vitrine/state
  vitrine serve --listen 0.0.0.0:8443 --tls-certificate chain.pem --tls-key key.pem
  vitrine serve --listen unix:/run/vitrine.sock --public-url https://catalog.example
  vitrine serve --admin-listen 127.0.0.1:9090

Environment:
  VITRINE_LIMITS_PASSWORD  Password of the shared limits, if --limits-password-file names no file.";

/// Serve the catalog over HTTP.
///
/// Loads and key changes by other processes are followed within a second. SIGTERM or Ctrl-C shuts the server down
/// once requests in flight are answered.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    #[command(flatten)]
    edges: EdgeArgs,
    /// Public address of the service, without `/v2`: addresses of texts begin with it. By default the first address
    /// listened on.
    #[arg(long, env = "VITRINE_PUBLIC_URL", value_name = "URL", value_parser = checked_public_url)]
    public_url: Option<String>,
    /// Directory for a copy of the live catalog and keys, so that the next start needn't read the store. Each server
    /// needs its own; it is created if missing.
    #[arg(long, env = "VITRINE_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Destination of the access log, one JSON object a line.
    #[arg(
        long,
        env = "VITRINE_ACCESS_LOG",
        value_name = "WHERE",
        default_value = "stdout"
    )]
    access_log: AccessLogArg,
    /// Maximum memory for cached bodies, in MiB: two thirds for compressed ones, a third for plain pages. 0 caches
    /// none.
    #[arg(
        long,
        env = "VITRINE_CACHE_MIB",
        value_name = "MIB",
        default_value_t = DEFAULT_CACHE_MIB,
        value_parser = clap::value_parser!(u32).range(..=MAX_CACHE_MIB)
    )]
    cache_mib: u32,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    proxies: ProxyArgs,
    #[command(flatten)]
    pub(super) cors: CorsArgs,
    #[command(flatten)]
    admin: AdminArgs,
    /// Deliver to webhook endpoints, too, on a thread of its own.
    #[arg(long, env = "VITRINE_DELIVER_WEBHOOKS", value_parser = BoolishValueParser::new())]
    deliver_webhooks: bool,
    #[command(flatten)]
    webhooks: WebhookArgs,
    #[command(flatten)]
    logs: LogArgs,
}

/// Enough for some thousand compressed pages of 500 products.
const DEFAULT_CACHE_MIB: u32 = 96;

/// A tebibyte; more is a typing error.
const MAX_CACHE_MIB: i64 = 1 << 20;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessLogArg {
    Stdout,
    Off,
}

impl From<AccessLogArg> for Destination {
    fn from(argument: AccessLogArg) -> Self {
        match argument {
            AccessLogArg::Stdout => Self::Stdout,
            AccessLogArg::Off => Self::Off,
        }
    }
}

impl Serve {
    /// Returns all faults between settings, each with its setting. `vitrine config check` and reloads call this as
    /// well, so it has no effects.
    pub(super) fn faults(&self, store: &StoreArgs) -> Vec<(&'static str, String)> {
        let mut faults = self.edges.faults(self.public_url.as_deref());
        let checks = [
            self.limits.check(),
            self.admin.check(),
            self.follow.check(store),
        ];
        faults.extend(checks.into_iter().filter_map(Result::err));
        faults
    }

    /// Refuses an unusable certificate, at the start and in `vitrine config check`.
    pub(super) fn check_certificate(&self) -> Result<(), (&'static str, String)> {
        self.edges.check_certificate()
    }

    pub(super) fn run(
        &self,
        store: &StoreArgs,
        mut reload: Reload,
        warnings: &[String],
    ) -> anyhow::Result<Outcome> {
        let faults = self.faults(store).into_iter().map(|(_, message)| message);
        let faults: Vec<String> = faults.collect();
        if !faults.is_empty() {
            exit_with_usage_error(&faults.join("\n"));
        }
        self.logs.start().context("can't start the log")?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        reload.register(|serve| {
            let logs = serve.logs;
            Ok(Box::new(move || logs.apply_level()))
        });
        let (mut edge, sockets) = self.edges.settings(self.deliver_webhooks)?;
        let proxies = self.proxies.proxies();
        let trusted = proxies.clone();
        // All clients of a proxy have its address.
        edge.limits.exempt = Arc::new(move |address| trusted.trusts(Peer::Address(address)));
        if let Some(certificates) = edge.certificates.clone() {
            reload.register(move |_| {
                let certificates = Arc::clone(&certificates);
                Ok(Box::new(move || certificates.reload()))
            });
        }
        let access = Access {
            shared: self.limits.shared()?,
            failed_keys: self.limits.failed_keys(),
            proxies,
            cors: self.cors.cors(&mut reload),
        };
        let listening = self.edges.listen(self.public_url.as_deref())?;
        let admin = self.admin.listen()?;
        let state = self.state_dir.as_deref();
        let followed = self.follow.followed(store);
        let state = state.map(|path| state_dir::open(path, followed, &listening.addresses));
        let (state, _lock) = state.transpose()?.unzip();
        let stores = self.follow.open(store, state.as_ref())?;
        let (addresses, public_url) = (listening.addresses.clone(), listening.public_url.clone());
        if let Some(admin) = &admin {
            tracing::info!(target: STARTED, "admin port on {}", admin.address);
        }
        let acts_store = admin.as_ref().map(|_| store.open_for_acts()).transpose()?;
        let settings = ServeSettings {
            edge,
            admin,
            state,
            max_stale_keys: self.follow.max_stale_keys,
            journal: self.follow.journal(),
            max_waits: self.limits.max_waits(),
            access,
            access_log: self.access_log.into(),
            cache_mib: self.cache_mib,
            reload,
            webhooks: (self.deliver_webhooks)
                .then(|| {
                    self.webhooks
                        .deliverer(store, &listening.public_url, sockets, true)
                })
                .transpose()?,
            acts_store,
        };
        serve(listening, settings, &stores, || {
            let mut serving = format!(", serving {public_url}/v2");
            for address in &addresses {
                let serving = std::mem::take(&mut serving);
                tracing::info!(target: STARTED, "listening on {address}{serving}");
            }
            Ok(())
        })?;
        Ok(Outcome::Done)
    }
}

/// Checks the public URL.
pub(super) fn checked_public_url(url: &str) -> Result<String, String> {
    let trimmed = url.trim_end_matches('/');
    let parsed: WebUrl = trimmed
        .parse()
        .map_err(|invalid| format!("expected {invalid}"))?;
    if parsed.as_str().contains(['?', '#']) || trimmed.ends_with("/v2") {
        return Err("expected an address without query, fragment and `/v2`".to_owned());
    }
    Ok(trimmed.to_owned())
}

/// Settings of a server, apart from its stores.
pub(super) struct ServeSettings {
    /// Listeners, timeouts and limits of connections.
    pub(super) edge: server::EdgeSettings,
    /// Admin port.
    pub(super) admin: Option<AdminPort>,
    /// State directory for the next start.
    pub(super) state: Option<StateDirectory>,
    /// Time for which keys are trusted while the store is unreachable.
    pub(super) max_stale_keys: Duration,
    /// Limits of the journal of changes.
    pub(super) journal: JournalLimits,
    /// Maximum number of requests that wait for changes.
    pub(super) max_waits: usize,
    /// Quotas and limits of failed keys.
    pub(super) access: Access,
    pub(super) access_log: Destination,
    /// Maximum memory for cached bodies, in MiB.
    pub(super) cache_mib: u32,
    /// Handler of SIGHUP.
    pub(super) reload: Reload,
    /// Deliveries to webhook endpoints.
    pub(super) webhooks: Option<DelivererSettings>,
    /// Handle of the written store for acts on the admin port; by default that of the server.
    pub(super) acts_store: Option<Arc<Store>>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            edge: server::EdgeSettings::default(),
            admin: None,
            state: None,
            max_stale_keys: DEFAULT_MAX_STALE_KEYS,
            journal: JournalLimits::default(),
            max_waits: DEFAULT_MAX_WAITS,
            access: Access::default(),
            access_log: Destination::Off,
            cache_mib: DEFAULT_CACHE_MIB,
            reload: Reload::default(),
            webhooks: None,
            acts_store: None,
        }
    }
}

/// Serves `stores` until a signal; `ready` is called once requests are answered.
pub(super) fn serve(
    listening: Listening,
    settings: ServeSettings,
    stores: &Stores,
    ready: impl FnOnce() -> io::Result<()>,
) -> anyhow::Result<()> {
    let Listening {
        listeners,
        addresses: _,
        public_url,
    } = listening;
    let ServeSettings {
        edge,
        admin,
        state,
        max_stale_keys,
        journal,
        max_waits,
        access,
        access_log,
        cache_mib,
        reload,
        webhooks,
        acts_store,
    } = settings;
    let live = Arc::new(Live::new(max_stale_keys, journal));
    let certificates = edge.certificates.clone();
    let shared_limits = access.shared.clone();
    let settings = AppSettings {
        public_url,
        cache_bytes: u64::from(cache_mib) << 20,
        max_waits,
        access,
        tls: certificates
            .as_ref()
            .map(|certificates| Arc::clone(certificates.metrics())),
    };
    let app = Arc::new(app::build(settings, Arc::clone(&live)));
    // Started first and stopped last: it answers while a large catalog is read, and while the server drains.
    let start_admin = |port: AdminPort| port.start(&app, stores, acts_store);
    let _admin = admin.map(start_admin).transpose()?;
    let follower = Follower::start(stores, &live, &app.endpoints.addresses, state.as_ref())?;
    if live.snapshot().is_none() && !live.metrics.follow_catalog.is_failing() {
        tracing::warn!("the store is empty: reads get 503 until the first `vitrine load`");
    }
    let instants = InstantThread::of_server(&stores.followed, &app.metrics.instants)?;
    let deliver = |settings| Deliverer::start(&live, &app.metrics.webhooks, settings);
    let deliverer = webhooks.map(deliver).transpose()?;
    let access_log = AccessLog::start(access_log)?;
    // Without a thread for a worker it panics, and would then wait forever for the workers that it has.
    let runtime = logging::ending_at_a_panic(|| Builder::new_multi_thread().enable_all().build())?;
    let served = runtime.block_on(async {
        if let Some(shared) = shared_limits {
            shared.start().await;
        }
        let server = Server::new(listeners, app, access_log, edge)?;
        let ending = ShutdownSignals::new()?;
        reload.start()?;
        tokio::spawn(follow_certificates(certificates));
        tokio::spawn(async move { systemd::report_state(&live).await });
        ready()?;
        systemd::ready();
        // Spawned on a worker thread, which is closer to the connections that it accepts.
        tokio::spawn(ending.end(server))
            .await
            .context("the server failed")
    });
    // A DNS lookup or a file of a network may block forever.
    runtime.shutdown_timeout(BLOCKING_GRACE);
    served?;
    drop(instants);
    drop(deliverer);
    drop(follower);
    Ok(())
}

/// Time limit for blocking work after the server has ended.
const BLOCKING_GRACE: Duration = Duration::from_secs(1);

/// Interval of checks of a certificate's files.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(10);

/// Reloads certificates when their files change.
async fn follow_certificates(certificates: Option<Arc<Certificates>>) {
    let Some(certificates) = certificates else {
        return;
    };
    let mut look = tokio::time::interval(CERTIFICATE_CHECK);
    loop {
        look.tick().await;
        let certificates = Arc::clone(&certificates);
        // A file may be on a network: no worker thread waits for it.
        let read = move || certificates.reload_if_changed();
        if tokio::task::spawn_blocking(read).await.is_err() {
            tracing::error!("reloading the certificate panicked");
        }
    }
}
