//! Settings of trusted proxies in front of a server.

use clap::{Args, ValueEnum};

use crate::http::access::client::{ForwardedHeader, Proxies, TrustedPeer};

/// Settings of trusted proxies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Proxies")]
pub(super) struct ProxyArgs {
    /// Proxies that are trusted to name a client's address: networks such as 10.0.0.0/8, addresses, or `unix` for
    /// clients of a Unix socket. Several with commas in between, or given several times. By default none.
    #[arg(
        long,
        env = "VITRINE_TRUSTED_PROXIES",
        value_name = "NETWORK,…",
        value_delimiter = ','
    )]
    trusted_proxies: Vec<TrustedPeer>,
    /// Header in which trusted proxies name their clients. The other one is ignored.
    #[arg(
        long,
        env = "VITRINE_FORWARDED_HEADER",
        value_name = "HEADER",
        default_value = "x-forwarded-for"
    )]
    forwarded_header: HeaderArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HeaderArg {
    XForwardedFor,
    Forwarded,
}

impl ProxyArgs {
    pub(super) fn proxies(&self) -> Proxies {
        Proxies {
            trusted: self.trusted_proxies.clone(),
            header: match self.forwarded_header {
                HeaderArg::XForwardedFor => ForwardedHeader::XForwardedFor,
                HeaderArg::Forwarded => ForwardedHeader::Forwarded,
            },
        }
    }
}
