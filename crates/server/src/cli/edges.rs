//! Settings of the edge: listeners, TLS, limits of connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::time;
use crate::edge::admission::Limits;
use crate::edge::descriptors::{self, Sockets};
use crate::edge::listen::{Address, Listener, listen_all, without_address};
use crate::edge::server;
use crate::edge::socket::Timeouts;
use crate::edge::tls::{Certificates, TlsSettings};
use crate::webhooks::MAX_SOCKETS;

/// Settings of listeners and connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Listeners and connections")]
pub(super) struct EdgeArgs {
    /// Address to listen on: an address and a port (port 0 takes a free one), `unix:/PATH` for a Unix socket,
    /// or `systemd` for the sockets of a socket unit. May be given several times, or several with commas
    /// between them.
    #[arg(
        long,
        env = "VITRINE_LISTEN",
        value_name = "WHERE",
        default_value = "127.0.0.1:8080",
        value_delimiter = ','
    )]
    listen: Vec<Address>,
    /// Mode of Unix sockets' files: who may connect.
    #[arg(
        long,
        env = "VITRINE_UNIX_SOCKET_MODE",
        value_name = "MODE",
        default_value = "660",
        value_parser = mode
    )]
    unix_socket_mode: u32,
    /// Certificate for TLS on TCP: a PEM file with the server's certificate first, then the intermediates. Read again
    /// when it changes, and on SIGHUP.
    #[arg(long, env = "VITRINE_TLS_CERTIFICATE", value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate: a PEM file without a password.
    #[arg(long, env = "VITRINE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Maximum number of connections. Beyond it the one that has been idle longest is closed, first those without a
    /// valid key; if none is idle, the new one gets 503 and is closed. If the system allows fewer descriptors, they are
    /// the limit. Connections without a valid key get three quarters.
    #[arg(
        long,
        env = "VITRINE_MAX_CONNECTIONS",
        value_name = "N",
        default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    max_connections: u32,
    /// Maximum number of connections from one address; of IPv6, from one network of 64 bits. Those without a valid key
    /// get half.
    #[arg(
        long,
        env = "VITRINE_MAX_CONNECTIONS_PER_ADDRESS",
        value_name = "N",
        default_value = "2000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    max_connections_per_address: u32,
    /// Maximum age of a connection; its next response is then the last one. Shorter ages spread clients over new
    /// servers sooner.
    #[arg(
        long,
        env = "VITRINE_CONNECTION_AGE",
        value_name = "SPAN",
        default_value = "1h",
        value_parser = time::parse_length
    )]
    connection_age: Duration,
    /// Time to accept connections after SIGTERM, while readiness fails: as long as load balancers take to notice.
    #[arg(
        long,
        env = "VITRINE_DRAIN_DELAY",
        value_name = "SPAN",
        default_value = "0s",
        value_parser = time::parse_length
    )]
    drain_delay: Duration,
    /// Time after that for open connections to finish before they are closed.
    #[arg(
        long,
        env = "VITRINE_DRAIN_TIMEOUT",
        value_name = "SPAN",
        default_value = "30s",
        value_parser = time::parse_length
    )]
    drain_timeout: Duration,
}

/// Parses the address and port of an admin port.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        without_address(text)
            .unwrap_or_else(|| "expected an address with a port, such as 127.0.0.1:9090".to_owned())
    })
}

/// Parses a mode, as `chmod` does.
fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!(
            "`{text}` isn't a file mode; use one such as 660 or 600"
        )),
    }
}

impl EdgeArgs {
    /// Returns all faults between these settings, each with its setting.
    pub(super) fn faults(&self, public_url: Option<&str>) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let (Some(Address::Unix(_)), None) = (self.listen.first(), public_url) {
            let what = "the first --listen is a Unix socket, so the public URL is unknown; add --public-url \
                 (VITRINE_PUBLIC_URL), such as https://catalog.example";
            faults.push(("listen", what.to_owned()));
        }
        let without = |one, other| format!("--{one} is set without --{other}; name both files");
        match (&self.tls_certificate, &self.tls_key) {
            (Some(_), None) => {
                faults.push(("tls_certificate", without("tls-certificate", "tls-key")));
            }
            (None, Some(_)) => faults.push(("tls_key", without("tls-key", "tls-certificate"))),
            _ => {}
        }
        faults
    }

    /// Refuses an unusable certificate or key; returns the setting and the fault. A reload doesn't call this: the live
    /// certificate stays if the new one is unusable, and other settings change all the same.
    pub(super) fn check_certificate(&self) -> Result<(), (&'static str, String)> {
        let Some(files) = self.tls_settings() else {
            return Ok(());
        };
        Certificates::load(files).map(drop).map_err(|error| {
            let error = format!("{error:#}");
            let setting = match error.starts_with("--tls-key") {
                true => "tls_key",
                false => "tls_certificate",
            };
            (setting, error)
        })
    }

    fn tls_settings(&self) -> Option<TlsSettings> {
        let (certificate, key) = (self.tls_certificate.clone(), self.tls_key.clone());
        certificate
            .zip(key)
            .map(|(certificate, key)| TlsSettings { certificate, key })
    }

    /// Listens, and determines the public URL.
    pub(super) fn listen(&self, public_url: Option<&str>) -> anyhow::Result<Listening> {
        let public_url = public_url.map(str::to_owned);
        let listeners = listen_all(&self.listen, self.unix_socket_mode)?;
        let scheme = if self.tls_certificate.is_some() {
            "https"
        } else {
            "http"
        };
        Listening::new(listeners, scheme, public_url)
    }

    /// Returns the server's settings, and the number of sockets for webhooks if it delivers them.
    pub(super) fn settings(&self, delivers: bool) -> anyhow::Result<(server::EdgeSettings, usize)> {
        let certificates = self.tls_settings().map(Certificates::load).transpose()?;
        let room = descriptors::make_room(Sockets {
            connections: self.max_connections as usize,
            webhooks: if delivers { MAX_SOCKETS } else { 0 },
        });
        let limits = Limits {
            connections: room.connections,
            per_address: self.max_connections_per_address as usize,
            ..Limits::default()
        };
        let settings = server::EdgeSettings {
            timeouts: Timeouts {
                age: self.connection_age,
                ..Timeouts::default()
            },
            limits,
            certificates: certificates.map(Arc::new),
            drain_delay: self.drain_delay,
            drain_timeout: self.drain_timeout,
        };
        Ok((settings, room.webhooks))
    }
}

/// Listening sockets, and their public address.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listeners: Vec<Listener>,
    /// Addresses of the sockets, for messages.
    pub(super) addresses: Vec<Address>,
    pub(super) public_url: String,
}

impl Listening {
    /// `public_url` is by default the first address.
    pub(super) fn new(
        listeners: Vec<Listener>,
        scheme: &str,
        public_url: Option<String>,
    ) -> anyhow::Result<Self> {
        let addresses: Result<Vec<_>, _> = listeners.iter().map(Listener::address).collect();
        let addresses = addresses.context("can't read the sockets' addresses")?;
        let first = || match addresses.first() {
            Some(Address::Tcp(address)) => format!("{scheme}://{}", reachable_address(*address)),
            _ => format!("{scheme}://localhost"),
        };
        Ok(Self {
            public_url: public_url.unwrap_or_else(first),
            listeners,
            addresses,
        })
    }
}

/// Returns the address by which this machine reaches a listener: the loopback address if it listens on all addresses.
pub(super) fn reachable_address(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}
