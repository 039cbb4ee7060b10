//! Clients that do as they should, beside an attack.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two requests of a client.
const THINKING: Duration = Duration::from_millis(5);

/// Answers of healthy clients.
#[derive(Debug, Default)]
pub struct Seen {
    /// Number of answers by status; 0 is a broken connection.
    pub statuses: BTreeMap<u16, usize>,
    times: Vec<Duration>,
}

impl Seen {
    /// The 99th percentile of the time to an answer.
    pub fn p99(&mut self) -> Duration {
        self.times.sort_unstable();
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * 99 / 100).copied().unwrap_or_default()
    }
}

/// Connection of a client.
pub trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// A client with one connection, which asks one request after the other.
pub struct Healthy {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Healthy {
    /// Starts asking over what `connect` gives; `next` gives a target and headers.
    pub fn start(
        connect: impl Fn() -> Box<dyn Stream> + Send + 'static,
        mut next: impl FnMut() -> (String, String) + Send + 'static,
    ) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = Seen::default();
            let mut connection = BufReader::new(connect());
            while !stopped.load(Ordering::Relaxed) {
                let (target, headers) = next();
                let asked = Instant::now();
                let status = ask(&mut connection, &target, &headers);
                seen.times.push(asked.elapsed());
                *seen.statuses.entry(status.unwrap_or(0)).or_default() += 1;
                if status.is_none() {
                    connection = BufReader::new(connect());
                }
                std::thread::sleep(THINKING);
            }
            seen
        });
        Self { stop, thread }
    }

    /// Stops; returns what came.
    pub fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("a client")
    }
}

/// Asks and reads the whole answer; returns its status.
pub fn ask(
    connection: &mut BufReader<Box<dyn Stream>>,
    target: &str,
    headers: &str,
) -> Option<u16> {
    let head = format!("GET {target} HTTP/1.1\r\nHost: vitrine.test\r\n{headers}\r\n");
    connection.get_mut().write_all(head.as_bytes()).ok()?;
    connection.get_mut().flush().ok()?;
    let (mut status, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        connection
            .read_line(&mut line)
            .ok()
            .filter(|read| *read > 0)?;
        if status.is_none() {
            status = Some(line.split(' ').nth(1)?.parse().ok()?);
        } else if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        } else if line == "\r\n" {
            break;
        }
    }
    let read = std::io::copy(&mut connection.take(length), &mut std::io::sink()).ok()?;
    (read == length).then_some(status?)
}
