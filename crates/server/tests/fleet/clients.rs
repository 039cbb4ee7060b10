//! Clients that ask all the time and notice every answer that isn't as it should be.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::harness::server::KeepAlive;
use crate::harness::text;

/// Paths that they ask for, one after the other.
const TARGETS: [&str; 4] = [
    "/v2/product/P0007",
    "/v2/product?limit=50",
    "/v2/product?countries_redeemable_in=DE&limit=20",
    "/v2/product/categories",
];

/// Pause of a client between two requests: some hundred requests a second leave the machine's time to others.
pub const THINKING: Duration = Duration::from_millis(3);

/// Clients of one server.
struct ClientLog {
    answers: AtomicU64,
    /// Faults seen.
    wrong: Mutex<Vec<String>>,
    slowest: Mutex<Duration>,
}

/// A client of each of some servers.
pub struct Clients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    told: Vec<Arc<ClientLog>>,
}

impl Clients {
    /// Starts asking.
    pub fn start(servers: &[SocketAddr], key: &str) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (mut threads, mut told) = (Vec::new(), Vec::new());
        for server in servers {
            let of_server = Arc::new(ClientLog {
                answers: AtomicU64::new(0),
                wrong: Mutex::default(),
                slowest: Mutex::default(),
            });
            told.push(Arc::clone(&of_server));
            let (stop, server, key) = (Arc::clone(&stop), *server, key.to_owned());
            threads.push(std::thread::spawn(move || {
                ask(server, &key, &stop, &of_server);
            }));
        }
        Self {
            stop,
            threads,
            told,
        }
    }

    /// Returns the number of answers from the server that gave the fewest.
    pub fn fewest_answers(&self) -> u64 {
        let counts = self
            .told
            .iter()
            .map(|told| told.answers.load(Ordering::Relaxed));
        counts.min().unwrap_or(0)
    }

    /// Returns the faults seen so far.
    pub fn wrong(&self) -> Vec<String> {
        let of = |told: &Arc<ClientLog>| lock(&told.wrong).clone();
        self.told.iter().flat_map(of).collect()
    }

    /// Stops; everything that was asked must have been answered well.
    pub fn finish(mut self, after: &str) {
        self.end();
        let wrong = self.wrong();
        assert!(
            wrong.is_empty(),
            "{after}: {} wrong: {wrong:?}",
            wrong.len()
        );
        let answers: u64 = self
            .told
            .iter()
            .map(|told| told.answers.load(Ordering::Relaxed))
            .sum();
        let slowest = self.told.iter().map(|told| *lock(&told.slowest)).max();
        println!("{after}: {answers} answers, all good; the slowest took {slowest:?}");
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client");
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(server: SocketAddr, key: &str, stop: &AtomicBool, told: &ClientLog) {
    let mut connection = KeepAlive::to(server);
    let mut targets = TARGETS.iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        let target = targets.next().expect("endless");
        let asked = Instant::now();
        match connection.get(key, target) {
            Some(reply) if reply.status == 200 && !reply.body.is_empty() => {
                told.answers.fetch_add(1, Ordering::Relaxed);
                let mut slowest = lock(&told.slowest);
                *slowest = asked.elapsed().max(*slowest);
                if reply.header("connection") == Some("close") {
                    connection = KeepAlive::to(server);
                }
            }
            Some(reply) => {
                let what = format!("{server} {target}: {} {}", reply.status, text(&reply.body));
                lock(&told.wrong).push(what);
            }
            None => {
                lock(&told.wrong).push(format!("{server} {target}: no whole answer"));
                connection = KeepAlive::to(server);
            }
        }
        std::thread::sleep(THINKING);
    }
}
