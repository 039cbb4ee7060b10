//! A receiver of events, with a thread for each connection: it takes everything, and notes which path got it when.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// An event that came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// Number of the endpoint.
    pub(super) endpoint: usize,
    /// Time of the answer.
    pub(super) at: Instant,
}

/// A running receiver; its threads end with the process.
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    taken: Arc<Mutex<Vec<Taken>>>,
}

/// A certificate for loopback addresses, which signed itself.
pub(super) struct Certificate {
    /// PEM of the certificate.
    pub(super) pem: String,
    config: Arc<ServerConfig>,
}

impl Certificate {
    /// Makes a certificate for these addresses.
    ///
    /// # Errors
    /// If it can't be made.
    pub(super) fn new(addresses: Vec<String>) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(addresses)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let chain = vec![made.cert.der().clone()];
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from(key))?;
        Ok(Self {
            pem: made.cert.pem(),
            config: Arc::new(config),
        })
    }
}

impl Receiver {
    /// Starts a receiver: plain, with connections that stay open, or with TLS, and a new connection for each event.
    ///
    /// # Errors
    /// If there is no port.
    pub(super) fn start(certificate: Option<&Certificate>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let port = listener.local_addr()?.port();
        let taken: Arc<Mutex<Vec<Taken>>> = Arc::default();
        let noted = Arc::clone(&taken);
        let config = certificate.map(|certificate| Arc::clone(&certificate.config));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (noted, config) = (Arc::clone(&noted), config.clone());
                std::thread::spawn(move || serve(socket, config, &noted));
            }
        });
        Ok(Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            taken,
        })
    }

    /// Returns the events that came since the last call.
    pub(super) fn take(&self) -> Vec<Taken> {
        std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Serves a connection to its end; whatever happens to it ends it.
fn serve(socket: TcpStream, config: Option<Arc<ServerConfig>>, taken: &Mutex<Vec<Taken>>) {
    // Behind the clients whose latency is measured on the same core.
    let _ = rustix::process::nice(19);
    let _ = socket.set_nodelay(true);
    let _ = match config {
        None => answer(socket, true, taken),
        Some(config) => ServerConnection::new(config)
            .context("no TLS")
            .and_then(|connection| answer(StreamOwned::new(connection, socket), false, taken)),
    };
}

fn answer(stream: impl Read + Write, keeps: bool, taken: &Mutex<Vec<Taken>>) -> Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if stream.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let endpoint = first.split(['/', ' ']).nth(2).unwrap_or_default().parse()?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let close = if keeps { "" } else { "Connection: close\r\n" };
        let answer = format!("HTTP/1.1 204 No Content\r\n{close}\r\n");
        stream.get_mut().write_all(answer.as_bytes())?;
        stream.get_mut().flush()?;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push(Taken {
            endpoint,
            at: Instant::now(),
        });
        drop(taken);
        if !keeps {
            return Ok(());
        }
    }
}
