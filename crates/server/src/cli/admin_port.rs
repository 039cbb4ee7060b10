//! The settings of the admin port.

use std::net::{SocketAddr, TcpListener};

use anyhow::Context as _;
use clap::Args;
use clap::builder::BoolishValueParser;

/// Where the admin port is, if there is one.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Admin port")]
pub(super) struct AdminArgs {
    /// Answer /livez, /readyz and /metrics at this address and port; port 0 takes a free one.
    /// Without it there is no admin port.
    #[arg(long, env = "VITRINE_ADMIN_LISTEN", value_name = "ADDR:PORT")]
    admin_listen: Option<SocketAddr>,
    /// Let the admin port be reached from other machines: it asks for no key.
    #[arg(
        long,
        env = "VITRINE_ADMIN_BEYOND_LOOPBACK",
        value_parser = BoolishValueParser::new()
    )]
    admin_beyond_loopback: bool,
}

impl AdminArgs {
    /// What is wrong with these settings together, and which of them it is.
    pub(super) fn check(self) -> Result<(), (&'static str, String)> {
        match self.admin_listen {
            Some(address)
                if !address.ip().to_canonical().is_loopback() && !self.admin_beyond_loopback =>
            {
                let message = format!(
                    "--admin-listen is `{address}`, which other machines may reach, and the admin port asks for no key; \
                     name a loopback address such as 127.0.0.1:{port}, or add --admin-beyond-loopback \
                     (VITRINE_ADMIN_BEYOND_LOOPBACK=true) where only those who may see it reach it",
                    port = address.port(),
                );
                Err(("admin_listen", message))
            }
            _ => Ok(()),
        }
    }

    /// Listens, where that is asked for.
    pub(super) fn listen(self) -> anyhow::Result<Option<(TcpListener, SocketAddr)>> {
        let Some(address) = self.admin_listen else {
            return Ok(None);
        };
        let can_not = || format!("can't listen on {address}, the admin port");
        let listener = TcpListener::bind(address).with_context(can_not)?;
        let address = listener.local_addr().with_context(can_not)?;
        Ok(Some((listener, address)))
    }
}
