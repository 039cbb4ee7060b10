//! Clients that keep copies by the changes feed, and ask another server each time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::harness::feed::{CatalogCopy, Refusal, aged, refusal};
use crate::harness::server::KeepAlive;
use crate::harness::{Reply, wait_for};

/// Time for which clients wait for changes.
const WAIT: Duration = Duration::from_secs(1);

/// Pause after a refusal: shorter than the second that is asked for, which is harder on the servers.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers that a client has got.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub changed: u64,
    pub empty: u64,
    /// Empty answers before the time of the wait, although nothing was said about a pause.
    pub early: u64,
    pub unavailable: u64,
    pub gone: u64,
    pub unreachable: u64,
}

impl Counts {
    fn answers(&self) -> u64 {
        self.changed + self.empty
    }
}

/// Copy of one client, and what it has seen.
#[derive(Default)]
struct Followed {
    copy: CatalogCopy,
    counts: Counts,
}

/// Running clients.
pub struct Followers {
    servers: Arc<Mutex<Vec<SocketAddr>>>,
    stop: Arc<AtomicBool>,
    followed: Vec<Arc<Mutex<Followed>>>,
    threads: Vec<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_followed(followed: &Arc<Mutex<Followed>>) -> MutexGuard<'_, Followed> {
    lock(followed)
}

impl Followers {
    /// Starts a client for each of these filters.
    pub fn start(servers: Vec<SocketAddr>, key: &str, filters: &[&'static str]) -> Self {
        let mut followers = Self {
            servers: Arc::new(Mutex::new(servers)),
            stop: Arc::default(),
            followed: Vec::new(),
            threads: Vec::new(),
        };
        for (number, filters) in filters.iter().copied().enumerate() {
            let followed = Arc::new(Mutex::new(Followed {
                copy: CatalogCopy::of(filters),
                ..Followed::default()
            }));
            followers.followed.push(Arc::clone(&followed));
            let (servers, stop) = (Arc::clone(&followers.servers), Arc::clone(&followers.stop));
            let key = key.to_owned();
            followers.threads.push(std::thread::spawn(move || {
                let mut turn = number;
                while !stop.load(Ordering::Relaxed) {
                    let server = {
                        let servers = lock(&servers);
                        servers[turn % servers.len()]
                    };
                    turn += 1;
                    if !follow(server, &key, filters, &followed) {
                        std::thread::sleep(PAUSE);
                    }
                }
            }));
        }
        followers
    }

    /// Sets the addresses of the servers, some of which were started anew.
    pub fn set_servers(&self, servers: Vec<SocketAddr>) {
        *lock(&self.servers) = servers;
    }

    /// Returns the counts of each client.
    pub fn counts(&self) -> Vec<Counts> {
        self.followed.iter().map(|one| lock(one).counts).collect()
    }

    /// Waits until all copies have a product.
    pub fn wait_for_product(&self, code: &str) {
        self.wait_for(code, |copy, _| copy.products.contains_key(code));
    }

    /// Waits until each client is answered some more.
    pub fn wait_for_answers(&self) {
        let before = self.counts();
        let mut before = before.iter().map(Counts::answers).cycle();
        self.wait_for("answers", |_, counts| {
            counts.answers() > before.next().expect("endless") + 3
        });
    }

    /// Waits until something is so of all clients, which are looked at in order.
    fn wait_for(&self, what: &str, mut is_so: impl FnMut(&CatalogCopy, &Counts) -> bool) {
        wait_for(what, || {
            let has_failed = self.threads.iter().any(JoinHandle::is_finished);
            assert!(!has_failed, "a client has failed");
            let followed: Vec<_> = self.followed.iter().map(lock_followed).collect();
            let are_so = followed.iter().map(|one| is_so(&one.copy, &one.counts));
            are_so.fold(true, |all, one| all & one).then_some(())
        });
    }

    /// Stops the clients; returns their copies.
    pub fn finish(mut self) -> Vec<CatalogCopy> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client");
        }
        self.followed
            .iter()
            .map(|one| lock(one).copy.clone())
            .collect()
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Asks a server once. Returns false if the client has to pause.
fn follow(
    server: SocketAddr,
    key: &str,
    filters: &'static str,
    followed: &Mutex<Followed>,
) -> bool {
    let copy = lock(followed).copy.clone();
    let more = match copy.token {
        Some(_) => format!("wait={}", WAIT.as_secs()),
        None => "limit=250".to_owned(),
    };
    let began = Instant::now();
    let connection = KeepAlive::try_to(server);
    let reply = connection.and_then(|mut connection| connection.get(key, &copy.target(&more)));
    let mut followed = lock(followed);
    let Some(reply) = reply else {
        followed.counts.unreachable += 1;
        return false;
    };
    if reply.status == 503 {
        // Also of a server that has no catalog yet.
        followed.counts.unavailable += 1;
        return false;
    }
    match refusal(&reply) {
        Some(refused) => {
            assert_eq!(refused, Refusal::Gone);
            followed.counts.gone += 1;
            followed.copy = CatalogCopy::of(filters);
            true
        }
        None => {
            followed.apply(&reply, began.elapsed());
            reply.header("retry-after").is_none()
        }
    }
}

impl Followed {
    fn apply(&mut self, reply: &Reply, took: Duration) {
        let has_waited = self.copy.token.is_some() && !self.copy.is_walking();
        let answer = self.copy.apply(reply);
        // As if it were a minute old: then a server that only hasn't followed yet may not call it gone either.
        self.copy.token = self.copy.token.take().map(|token| aged(&token, 60));
        match answer.changes.is_empty() {
            false => self.counts.changed += 1,
            true => self.counts.empty += 1,
        }
        let is_early = answer.changes.is_empty() && took < WAIT && has_waited;
        if is_early && reply.header("retry-after").is_none() {
            self.counts.early += 1;
        }
    }
}
