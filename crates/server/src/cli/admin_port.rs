//! Settings of the admin port.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use clap::builder::BoolishValueParser;
use http::HeaderName;
use vitrine_store::Store;

use super::edges::socket_address;
use crate::admin::Admin;
use crate::browser::{self, Browser, ConsoleStores};
use crate::http::App;
use crate::http::access::client::TrustedPeer;
use crate::live::Stores;

/// Settings of the admin port.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Admin port")]
pub(super) struct AdminArgs {
    /// Address of the admin port, which serves /livez, /readyz, /metrics and the catalog browser, /catalog; port 0
    /// takes a free one. Without it there is no admin port.
    #[arg(long, env = "VITRINE_ADMIN_LISTEN", value_name = "ADDR:PORT", value_parser = socket_address)]
    admin_listen: Option<SocketAddr>,
    /// Allow an admin port that other machines can reach: health checks and metrics need no key.
    #[arg(
        long,
        env = "VITRINE_ADMIN_BEYOND_LOOPBACK",
        value_parser = BoolishValueParser::new()
    )]
    admin_beyond_loopback: bool,
    /// Show the catalog browser on an admin port that other machines can reach. It needs no key; without operators
    /// (`vitrine operators`) it shows all products, who loaded them, and the list of keys to all who reach it.
    #[arg(
        long,
        env = "VITRINE_BROWSER_BEYOND_LOOPBACK",
        value_parser = BoolishValueParser::new()
    )]
    browser_beyond_loopback: bool,
    /// Host name that the catalog browser answers to, besides IP addresses and localhost; others are refused. Several
    /// with commas in between, or given several times.
    #[arg(
        long,
        env = "VITRINE_ADMIN_HOST",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    admin_host: Vec<String>,
    /// Header in which proxies of --operator-proxies name the operator whom they signed in, such as X-Forwarded-User. It is refused
    /// from others. The operator must exist: `vitrine operators add`.
    #[arg(long, env = "VITRINE_OPERATOR_HEADER", value_name = "HEADER")]
    operator_header: Option<HeaderName>,
    /// Proxies in front of the admin port that are trusted to name operators, and clients' addresses in X-Forwarded-For: networks such
    /// as 10.0.0.0/8, or addresses. Several with commas in between, or given several times. By default none.
    #[arg(
        long,
        env = "VITRINE_OPERATOR_PROXIES",
        value_name = "NETWORK,…",
        value_delimiter = ','
    )]
    operator_proxies: Vec<TrustedPeer>,
}

/// Response instead of the browser's pages if other machines can reach the port.
const HIDDEN: &str = "the catalog browser isn't shown beyond loopback unless the server has --browser-beyond-loopback\n";

impl AdminArgs {
    /// Refuses incompatible settings; returns the setting and the fault.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        match self.admin_listen {
            Some(address) if is_beyond_loopback(address) && !self.admin_beyond_loopback => {
                let message = format!(
                    "--admin-listen is `{address}`, which other machines can reach, and the admin port needs no key; \
                     use a loopback address such as 127.0.0.1:{port}, or add --admin-beyond-loopback \
                     (VITRINE_ADMIN_BEYOND_LOOPBACK=true) if only trusted machines can reach it",
                    port = address.port(),
                );
                Err(("admin_listen", message))
            }
            _ if self.operator_header.is_some() && self.operator_proxies.is_empty() => {
                let message = "--operator-header needs --operator-proxies: from others, the header would be forged"
                    .to_owned();
                Err(("operator_header", message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the browser's settings.
    fn browser(&self) -> browser::BrowserSettings {
        let is_hidden =
            self.admin_listen.is_some_and(is_beyond_loopback) && !self.browser_beyond_loopback;
        browser::BrowserSettings {
            hosts: self.admin_host.clone(),
            hidden: is_hidden.then_some(HIDDEN),
            sign_in: browser::SignInSettings {
                header: self.operator_header.clone(),
                proxies: self.operator_proxies.clone(),
            },
        }
    }

    /// Listens, if an address is set.
    pub(super) fn listen(&self) -> anyhow::Result<Option<AdminPort>> {
        let Some(address) = self.admin_listen else {
            return Ok(None);
        };
        let can_not = || format!("can't listen on {address}, the admin port");
        let listener = TcpListener::bind(address).with_context(can_not)?;
        Ok(Some(AdminPort {
            address: listener.local_addr().with_context(can_not)?,
            listener,
            browser: self.browser(),
        }))
    }
}

/// Returns true if other machines can reach an address.
fn is_beyond_loopback(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Listening admin port, not answering yet.
#[derive(Debug)]
pub(super) struct AdminPort {
    listener: TcpListener,
    /// Address of the socket.
    pub(super) address: SocketAddr,
    browser: browser::BrowserSettings,
}

impl AdminPort {
    /// Returns the port of the demo.
    pub(super) fn for_demo(listener: TcpListener) -> anyhow::Result<Self> {
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            browser: browser::BrowserSettings::default(),
        })
    }

    /// Starts the admin port. `acts` is a handle of the written store for acts; by default that of the server.
    pub(super) fn start(
        self,
        app: &Arc<App>,
        stores: &Stores,
        acts: Option<Arc<Store>>,
    ) -> anyhow::Result<Admin> {
        let Stores { followed, written } = stores;
        let stores = ConsoleStores {
            followed: Arc::clone(followed),
            written: Arc::clone(written),
            acts: acts.unwrap_or_else(|| Arc::clone(written)),
        };
        let browser = Browser::new(Arc::clone(app), stores, self.browser);
        Ok(Admin::start(self.listener, Arc::clone(app), browser)?)
    }
}
