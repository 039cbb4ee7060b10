//! `vitrine serve`: serves the catalog of a store.

use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use vitrine_model::web::WebUrl;
use vitrine_store::Store;

use super::admin_port::AdminArgs;
use super::{Outcome, StoreArgs};
use crate::admin::Admin;
use crate::http::App;
use crate::http::access_log::{AccessLog, Destination};
use crate::http::routes::ROUTES;
use crate::http::server::{Server, Timeouts};
use crate::live::{Follower, Live, StateDirectory};
use crate::metrics::Metrics;
use crate::view::TextAddresses;

const EXAMPLES: &str = "\
Examples:
  vitrine serve
  vitrine serve --listen 0.0.0.0:8080 --public-url https://catalog.example
  vitrine serve --store sqlite:/var/lib/vitrine/vitrine.db --state-dir /var/lib/vitrine/state
  vitrine serve --admin-listen 127.0.0.1:9090";

/// Serve the catalog over HTTP.
///
/// Loads and key changes made by other processes are noticed within a second. SIGTERM or Ctrl-C ends
/// the server when what is in flight is answered.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// The address and port to listen on; port 0 takes a free one.
    #[arg(
        long,
        env = "VITRINE_LISTEN",
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:8080"
    )]
    listen: SocketAddr,
    /// Where clients find the service, without `/v2`: the addresses of texts are made from it.
    /// By default the address listened on.
    #[arg(long, env = "VITRINE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,
    /// A directory where the server keeps a copy of the live catalog, so that its next start needn't read
    /// the store. It must be this server's alone, and is made where it is missing.
    #[arg(long, env = "VITRINE_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where the access log goes, one JSON object a line.
    #[arg(
        long,
        env = "VITRINE_ACCESS_LOG",
        value_name = "WHERE",
        default_value = "stdout"
    )]
    access_log: AccessLogArg,
    /// How much memory may go to bodies that are kept, in MiB: two thirds to compressed ones, a third
    /// to plain pages. 0 keeps none.
    #[arg(
        long,
        env = "VITRINE_CACHE_MIB",
        value_name = "MIB",
        default_value_t = USUAL_CACHE_MIB,
        value_parser = clap::value_parser!(u32).range(..=MAX_CACHE_MIB)
    )]
    cache_mib: u32,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Room for some thousand different pages of 500 products, compressed.
const USUAL_CACHE_MIB: u32 = 96;

/// A tebibyte: whoever asks for more has mistyped.
const MAX_CACHE_MIB: i64 = 1 << 20;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessLogArg {
    Stdout,
    Off,
}

impl Serve {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        start_logging();
        let listening = listen(self.listen, self.public_url.as_deref())?;
        let admin = self.admin.listen()?;
        let store = store.open_to_follow()?;
        let access_log = match self.access_log {
            AccessLogArg::Stdout => Destination::Stdout,
            AccessLogArg::Off => Destination::Off,
        };
        let (address, public_url) = (listening.address, listening.public_url.clone());
        let admin = match admin {
            Some((listener, address)) => {
                writeln!(io::stderr(), "vitrine: admin port on {address}")?;
                Some(listener)
            }
            None => None,
        };
        let settings = Settings {
            admin,
            state: self.state_dir.as_deref().map(state_directory).transpose()?,
            access_log,
            cache_mib: self.cache_mib,
        };
        serve(listening, settings, &store, || {
            writeln!(
                io::stderr(),
                "vitrine: listening on {address}, serving {public_url}/v2"
            )
        })?;
        Ok(Outcome::Done)
    }
}

/// Messages go to standard error: as JSON, or as plain lines where a person reads along.
pub(super) fn start_logging() {
    let builder = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false);
    if io::stderr().is_terminal() {
        builder.compact().init();
    } else {
        builder.json().init();
    }
    // A panic is a message like any other; it goes on as it would have.
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::force_capture();
        tracing::error!(%panic, %backtrace, "a bug: the program panicked");
    }));
}

/// A socket that listens, and where clients find it.
pub(super) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    pub(super) public_url: String,
}

/// Listens, and settles the public address.
pub(super) fn listen(address: SocketAddr, public_url: Option<&str>) -> anyhow::Result<Listening> {
    let public_url = public_url.map(checked_public_url).transpose()?;
    let can_not = || format!("can't listen on {address}");
    let listener = TcpListener::bind(address).with_context(can_not)?;
    let address = listener.local_addr().with_context(can_not)?;
    Ok(Listening {
        public_url: public_url.unwrap_or_else(|| format!("http://{}", reachable(address))),
        address,
        listener,
    })
}

fn checked_public_url(url: &str) -> anyhow::Result<String> {
    let trimmed = url.trim_end_matches('/');
    let parsed: WebUrl = trimmed
        .parse()
        .map_err(|invalid| anyhow::anyhow!("--public-url is `{url}`; expected {invalid}"))?;
    if parsed.as_str().contains(['?', '#']) || trimmed.ends_with("/v2") {
        bail!("--public-url is `{url}`; expected an address without query, fragment and `/v2`");
    }
    Ok(trimmed.to_owned())
}

/// The address by which this machine reaches what it listens on.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// The directory for what the server keeps, made for its owner only where it is missing.
fn state_directory(path: &Path) -> anyhow::Result<StateDirectory> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("--state-dir is `{}`, which can't be made", path.display()))?;
    Ok(StateDirectory::new(path.to_owned()))
}

/// What a server does beside answering.
#[derive(Debug)]
pub(super) struct Settings {
    /// Where it shows its state to operators.
    pub(super) admin: Option<TcpListener>,
    /// Where it keeps what is live for its next start.
    pub(super) state: Option<StateDirectory>,
    pub(super) access_log: Destination,
    /// How much memory kept bodies may take.
    pub(super) cache_mib: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            admin: None,
            state: None,
            access_log: Destination::Off,
            cache_mib: USUAL_CACHE_MIB,
        }
    }
}

/// Serves `store` until a signal ends it; `ready` is called once answers are given.
pub(super) fn serve(
    listening: Listening,
    settings: Settings,
    store: &Arc<dyn Store>,
    ready: impl FnOnce() -> io::Result<()>,
) -> anyhow::Result<()> {
    let Listening {
        listener,
        address: _,
        public_url,
    } = listening;
    let Settings {
        admin,
        state,
        access_log,
        cache_mib,
    } = settings;
    let live = Arc::new(Live::default());
    let metrics = Arc::new(Metrics::new(&ROUTES.each_ref().map(|route| route.template)));
    let addresses = TextAddresses::new(&public_url);
    let app = Arc::new(App::new(
        Arc::clone(&live),
        Arc::clone(&metrics),
        addresses.clone(),
        u64::from(cache_mib) << 20,
    ));
    // First, and ending last: it answers while a large catalog is read, and while the server drains.
    let start_admin = |listener| Admin::start(listener, Arc::clone(&app));
    let _admin = admin.map(start_admin).transpose()?;
    let follower = Follower::start(store, &live, &addresses, state.as_ref())?;
    if live.snapshot().is_none() {
        tracing::warn!("the store is empty: reads are answered with 503 until `vitrine load`");
    }
    let access_log = AccessLog::start(access_log, metrics)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = Server::new(listener, app, access_log, Timeouts::default())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        ready()?;
        let mut signalled = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let (told, stop) = tokio::sync::oneshot::channel::<()>();
        let server = server.run(async {
            let _ = stop.await;
        });
        let ending = async {
            signalled().await;
            let _ = told.send(());
            signalled().await;
            tracing::warn!("told to end twice: connections are cut");
        };
        // The server ends when it has drained, or at the second signal.
        tokio::select! {
            () = server => {}
            () = ending => {}
        }
        anyhow::Ok(())
    })?;
    drop(follower);
    Ok(())
}
