//! Clients that wait for changes: one thread with the lowest priority, so that it holds nobody up who is measured beside it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use super::feed::{self, Answer};
use crate::http::{self, Reader};
use crate::load::INTERRUPTED;
use crate::world::done;

/// Seconds that a client waits at most: the clients' default.
const WAIT_SECONDS: u64 = 45;
/// Number of addresses that clients have: a server limits connections from one.
const ADDRESSES: usize = 16;

/// Times at which answers with changes came, since 1970.
type Answered = Arc<Mutex<Vec<Duration>>>;

/// Waiting clients.
pub struct Waiters {
    answered: Answered,
    stop: Arc<AtomicBool>,
    /// None once its end was noticed.
    thread: Option<JoinHandle<Result<()>>>,
}

impl Waiters {
    /// Starts so many clients, with a key each in turn, that have what the token says.
    pub fn start(address: SocketAddr, count: usize, keys: &[String], token: &str) -> Self {
        let (answered, stop) = (Answered::default(), Arc::new(AtomicBool::new(false)));
        let (keys, token) = (keys.to_vec(), token.to_owned());
        let (told, times) = (Arc::clone(&stop), Arc::clone(&answered));
        let thread = std::thread::spawn(move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
            done(Command::new("chrt").args(["--idle", "--pid", "0", &thread]))?;
            let mut clients = Clients {
                poll: Poll::new()?,
                address,
                keys,
                all: Vec::new(),
                buffer: vec![0; 256 * 1024],
                request: Vec::new(),
                answered: times,
            };
            for _ in 0..count {
                clients.connect(&token)?;
            }
            clients.run(&told)
        });
        Self {
            answered,
            stop,
            thread: Some(thread),
        }
    }

    /// Returns the number of answers with changes so far.
    ///
    /// # Errors
    /// If a client failed.
    pub fn count(&mut self) -> Result<usize> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            self.join()?;
            bail!("the waiting clients have ended");
        }
        Ok(lock(&self.answered).len())
    }

    /// Returns the times of the answers with changes, and forgets them.
    pub fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut *lock(&self.answered))
    }

    /// Ends the clients.
    ///
    /// # Errors
    /// If one of them failed.
    pub fn end(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let joined = thread.join();
        joined.map_err(|_| anyhow::anyhow!("the waiting clients panicked"))?
    }
}

fn lock(answered: &Mutex<Vec<Duration>>) -> MutexGuard<'_, Vec<Duration>> {
    answered.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Client {
    stream: TcpStream,
    reader: Reader,
    since: String,
    asked: Instant,
}

struct Clients {
    poll: Poll,
    address: SocketAddr,
    keys: Vec<String>,
    all: Vec<Client>,
    buffer: Vec<u8>,
    request: Vec<u8>,
    answered: Answered,
}

impl Clients {
    fn connect(&mut self, token: &str) -> Result<()> {
        let index = self.all.len();
        let last = u8::try_from(2 + index % ADDRESSES)?;
        let own = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &own)?;
        connect(&socket, &self.address).context("a waiting client can't connect")?;
        let stream = std::net::TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let registry = self.poll.registry();
        registry.register(&mut stream, Token(index), Interest::READABLE)?;
        self.all.push(Client {
            stream,
            reader: Reader::new(true),
            since: token.to_owned(),
            asked: Instant::now(),
        });
        self.ask(index, WAIT_SECONDS)
    }

    fn ask(&mut self, index: usize, wait: u64) -> Result<()> {
        let client = &mut self.all[index];
        client.asked = Instant::now();
        self.request.clear();
        let path = feed::path(&client.since, wait);
        let key = &self.keys[index % self.keys.len()];
        http::request(&mut self.request, &path, &[("X-Api-Key", key)]);
        // A request is far smaller than a socket's buffer.
        let written = client.stream.write(&self.request)?;
        if written != self.request.len() {
            bail!("a request of a waiting client wasn't sent whole");
        }
        Ok(())
    }

    fn run(mut self, stop: &AtomicBool) -> Result<()> {
        let mut events = Events::with_capacity(1024);
        while !stop.load(Ordering::Relaxed) {
            if INTERRUPTED.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            let polled = self
                .poll
                .poll(&mut events, Some(Duration::from_millis(100)));
            match polled {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.receive(event.token().0)?;
            }
        }
        Ok(())
    }

    /// Reads what came. Whatever isn't an answer ends the run: none of these clients should fail.
    fn receive(&mut self, index: usize) -> Result<()> {
        loop {
            let client = &mut self.all[index];
            let length = match client.stream.read(&mut self.buffer) {
                Ok(0) => bail!("the server closed the connection of a waiting client"),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(status) = client.reader.feed(&self.buffer[..length])? {
                // Nothing follows an answer, and what comes next makes an event of its own.
                return self.take(index, status);
            }
        }
    }

    /// Takes an answer, and asks on as the contract says.
    fn take(&mut self, index: usize, status: u16) -> Result<()> {
        let now = SystemTime::UNIX_EPOCH.elapsed()?;
        let client = &mut self.all[index];
        let body = client.reader.take_body();
        if status != 200 {
            let body = String::from_utf8_lossy(&body);
            bail!("a waiting client is answered with {status}: {body}");
        }
        let Answer {
            is_empty,
            next,
            has_more,
        } = Answer::read(&body)?;
        if is_empty && !has_more && client.asked.elapsed().as_secs() + 1 < WAIT_SECONDS {
            bail!("the server didn't let a client wait");
        }
        next.clone_into(&mut client.since);
        if !is_empty {
            lock(&self.answered).push(now);
        }
        self.ask(index, if has_more { 0 } else { WAIT_SECONDS })
    }
}
