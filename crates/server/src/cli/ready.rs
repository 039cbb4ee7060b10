//! `vitrine ready`: queries the admin port of a running server, for probes that run a command.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use vitrine_ingest::escape::single_line;

use super::edges::{reachable_address, socket_address};
use super::{Outcome, OutputArgs, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine ready
  vitrine ready --json --admin 127.0.0.1:9091
  vitrine ready --live

Exit codes:
  0  ready; with --live, alive
  1  not ready, or the admin port doesn't answer";

/// Timeout of the whole exchange: probes come every few seconds.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a response, in bytes; usual ones have some hundred.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Check that a server on this machine is ready, by its admin port (`vitrine serve --admin-listen`).
///
/// For health checks of containers, and scripts that wait for a start.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ready {
    /// The server's admin port; by default `admin_listen` of the settings file.
    // Named like the setting, so that the file's value applies.
    #[arg(
        long = "admin",
        alias = "admin-listen",
        env = "VITRINE_ADMIN_LISTEN",
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:9090",
        value_parser = socket_address
    )]
    admin_listen: SocketAddr,
    /// Check only that it is alive, as a server without a catalog or one that is shutting down is.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl Ready {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let path = if self.live { "/livez" } else { "/readyz" };
        let address = reachable_address(self.admin_listen);
        let (is_fine, body) = ask(address, path).with_context(|| {
            format!("the admin port {address} doesn't answer; is there a `vitrine serve --admin-listen {address}`?")
        })?;
        let told = match self.live {
            true => serde_json::json!({ "live": is_fine }),
            false => serde_json::from_slice(&body)
                .with_context(|| format!("{address} isn't an admin port of Vitrine"))?,
        };
        if self.output.json {
            print_json(&told)?;
        } else {
            print(&to_text(is_fine, self.live, &told))?;
        }
        Ok(match is_fine {
            true => Outcome::Done,
            false => Outcome::Faulty,
        })
    }
}

/// Requests a page; returns true if the status is 200, and the body.
fn ask(address: SocketAddr, path: &str) -> anyhow::Result<(bool, Vec<u8>)> {
    let end = Instant::now() + TIMEOUT;
    let mut socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || answer.len() > MAX_RESPONSE_BYTES {
            bail!("the response is too long");
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut part)? {
            0 => break,
            read => answer.extend_from_slice(&part[..read]),
        }
    }
    let head = memchr::memmem::find(&answer, b"\r\n\r\n");
    let (Some(head), true) = (head, answer.starts_with(b"HTTP/1.1 ")) else {
        bail!("the response isn't HTTP");
    };
    let is_fine = answer.starts_with(b"HTTP/1.1 200 ");
    Ok((is_fine, answer.split_off(head + 4)))
}

fn to_text(is_fine: bool, live: bool, told: &Value) -> String {
    match (is_fine, live) {
        (true, true) => "it lives\n".to_owned(),
        (false, true) => "not alive\n".to_owned(),
        (true, false) => {
            let revision = &told["revision"];
            let number = revision["number"].as_u64().unwrap_or_default();
            let age = revision["age_seconds"].as_i64().unwrap_or_default();
            format!("ready: revision {number}, published {age} s ago\n")
        }
        (false, false) => {
            let reason = told["reason"].as_str().unwrap_or("no reason given");
            format!("not ready: {}\n", single_line(reason))
        }
    }
}
