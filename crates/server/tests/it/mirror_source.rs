//! Sources for mirrors that aren't as they should be: one that answers what a test says, and one whose
//! connections are cut.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{ALLOW_ALL, Server, Store, text, wait_for};

/// A certificate for `localhost`, its key, and the certificate of the authority that signed it. They were
/// made for these tests, are valid for a hundred years, and the authority's key is gone.
pub const TLS_FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls");

/// Waits until a mirror's metrics file says at least so many rounds of an outcome: rounds go on while this waits.
pub fn counts_rounds(path: &Path, outcome: &str, least: f64) {
    let series = format!("rounds_total{{outcome=\"{outcome}\"}} ");
    wait_for(outcome, || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let (_, count) = text.split_once(&series)?;
        let count: f64 = count.lines().next()?.parse().ok()?;
        (count >= least).then_some(())
    });
}

/// Runs `vitrine mirror` once, with a guard that lets everything pass.
pub fn mirror(store: &Store, base: &str, key: &str, options: &[&str]) -> Output {
    guarded_mirror(store, base, key, &[options, &ALLOW_ALL].concat())
}

/// Runs `vitrine mirror` once.
pub fn guarded_mirror(store: &Store, base: &str, key: &str, options: &[&str]) -> Output {
    let arguments = [&["mirror", "--from", base], options].concat();
    let mut command = store.command(&arguments);
    command.env("VITRINE_MIRROR_KEY", key);
    command.output().expect("vitrine runs")
}

/// Runs it once, where it must succeed; returns what it prints.
pub fn mirrored(store: &Store, base: &str, key: &str, options: &[&str]) -> String {
    let output = mirror(store, base, key, options);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The address of a server.
pub fn base(server: &Server) -> String {
    format!("http://{}", server.address)
}

/// An answer as it goes over the wire.
pub fn answer(head: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// An answer in JSON.
pub fn json(status: &str, body: &str) -> Vec<u8> {
    answer(&format!("{status}\r\nContent-Type: application/json"), body)
}

/// Answers of a source without a feed of changes: those to other targets are `answer`'s.
pub fn without_feed(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> impl Fn(&str) -> Vec<u8> + Send + Sync + 'static {
    move |target| match target.starts_with("/v2/product/changes") {
        true => json("404 Not Found", "{\"type\":\"not_found\"}"),
        false => answer(target),
    }
}

/// A page of products.
pub fn page(products: &[serde_json::Value], after: Option<&str>) -> Vec<u8> {
    let cursors = serde_json::json!({"before": after, "after": after});
    let body = serde_json::json!({"catalog": products, "pagination": {"cursors": cursors}});
    json("200 OK", &body.to_string())
}

/// Accepts connections until its owner goes.
struct Listening {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
}

impl Listening {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let ended = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicU64::new(0));
        let (end, serve) = (Arc::clone(&ended), Arc::new(serve));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(socket));
            }
        });
        Self {
            address,
            ended,
            connections,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread, which then sees it.
        let _ = TcpStream::connect(self.address);
    }
}

/// A connection, over TLS or not.
trait Connection: Read + Write {}

impl<C: Read + Write> Connection for C {}

/// A source that answers what a test says, and keeps what it was asked.
pub struct Fake {
    listening: Listening,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// `answer` makes the answer to a target.
    pub fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start_by_head(move |head| answer(target_of(head)))
    }

    /// `answer` makes the answer to a request's head.
    pub fn start_by_head(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::over(answer, |socket| Some(Box::new(socket)))
    }

    /// The same over TLS, as `localhost`, with a certificate of the authority in `tls/authority.pem`.
    pub fn start_tls(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let file = |name: &str| format!("{TLS_FILES}/{name}");
        let certificate = CertificateDer::from_pem_file(file("server.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("a key");
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let config = Arc::new(config.expect("a certificate and its key"));
        let answer = move |head: &str| answer(target_of(head));
        Self::over(answer, move |socket| {
            let connection = ServerConnection::new(Arc::clone(&config)).ok()?;
            Some(Box::new(StreamOwned::new(connection, socket)))
        })
    }

    fn over(
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
    ) -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let listening = Listening::start(move |socket| {
            let Some(mut socket) = wrap(socket) else {
                return;
            };
            let mut head = Vec::new();
            let mut buffer = [0; 4_096];
            while !head.ends_with(b"\r\n\r\n") {
                match socket.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(read) => head.extend_from_slice(&buffer[..read]),
                }
            }
            let head = text(&head);
            kept.lock().expect("unpoisoned").push(head.clone());
            let _ = socket.write_all(&answer(&head));
            let _ = socket.flush();
        });
        Self { listening, heads }
    }

    /// Its address.
    pub fn base(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// Its address over TLS.
    pub fn tls_base(&self) -> String {
        format!("https://localhost:{}", self.listening.address.port())
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> u64 {
        self.listening.connections.load(Ordering::Relaxed)
    }

    /// The heads of the requests until now.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("unpoisoned").clone()
    }
}

/// Returns the target in the head of a request.
pub fn target_of(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

/// A proxy before a server that cuts each connection after a number of bytes.
pub struct Cutter {
    listening: Listening,
    cuts: Arc<AtomicU64>,
}

impl Cutter {
    /// Cuts after less than `max_bytes`; where, the seed says.
    pub fn start(server: SocketAddr, seed: u64, max_bytes: u64) -> Self {
        let cuts = Arc::new(AtomicU64::new(0));
        let (counted, connections) = (Arc::clone(&cuts), AtomicU64::new(0));
        let listening = Listening::start(move |client| {
            let number = connections.fetch_add(1, Ordering::Relaxed);
            let budget = mixed(seed ^ mixed(number)) % max_bytes;
            let upstream = TcpStream::connect(server).expect("the server");
            let (mut asks, mut asked) = (copy(&client), copy(&upstream));
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut asks, &mut asked);
                let _ = asked.shutdown(Shutdown::Write);
            });
            if relay(&upstream, &client, budget) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            let _ = client.shutdown(Shutdown::Both);
            let _ = upstream.shutdown(Shutdown::Both);
        });
        Self { listening, cuts }
    }

    /// Its address.
    pub fn base(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// Returns the number of connections cut so far.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }
}

/// A proxy before a server that keeps the targets of requests.
pub struct Recorder {
    listening: Listening,
    targets: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub fn start(server: SocketAddr) -> Self {
        let targets = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&targets);
        let listening = Listening::start(move |client| {
            let Ok(upstream) = TcpStream::connect(server) else {
                return;
            };
            let (mut asks, mut asked) = (copy(&client), copy(&upstream));
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                // Clients send the head of a request at once.
                let mut buffer = [0; 16_384];
                while let Ok(read @ 1..) = asks.read(&mut buffer) {
                    let head = text(&buffer[..read]);
                    let line = head
                        .strip_prefix("GET ")
                        .and_then(|rest| rest.split(' ').next());
                    kept.lock()
                        .expect("unpoisoned")
                        .extend(line.map(str::to_owned));
                    if asked.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
                let _ = asked.shutdown(Shutdown::Both);
            });
            relay(&upstream, &client, u64::MAX);
            let _ = client.shutdown(Shutdown::Both);
        });
        Self { listening, targets }
    }

    /// Its address.
    pub fn base(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// Returns the targets of requests for products so far that don't go on from a token. A request that is repeated at once, as
    /// with another API version, counts once.
    pub fn walks(&self) -> Vec<String> {
        let mut targets = self.targets.lock().expect("unpoisoned").clone();
        targets.dedup();
        let is_walk =
            |target: &&String| target.starts_with("/v2/product") && !target.contains("since=");
        targets.iter().filter(is_walk).cloned().collect()
    }
}

fn copy(socket: &TcpStream) -> TcpStream {
    socket.try_clone().expect("a socket")
}

/// Passes on at most `budget` bytes; returns whether there were more.
fn relay(mut from: &TcpStream, mut to: &TcpStream, mut budget: u64) -> bool {
    let mut buffer = [0; 16_384];
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return false,
            Ok(read) => read,
        };
        let passed = read.min(usize::try_from(budget).unwrap_or(read));
        if to.write_all(&buffer[..passed]).is_err() || passed < read {
            return passed < read;
        }
        budget -= passed as u64;
    }
}

/// SplitMix64's last step.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
