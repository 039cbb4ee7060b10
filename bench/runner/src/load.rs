//! The load generator: one thread, keep-alive connections, closed or open loop.
//!
//! Closed: each connection asks again when it has its answer. Open: requests are due at fixed times, whatever
//! became of those before, and latency counts from when a request was due, not from when it could be sent.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::http::Reader;

/// Set by Ctrl-C; whatever runs long looks at it.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Token of the timer; connections have their indexes.
const TIMER: Token = Token(usize::MAX);

/// Time to wait for the last answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pace of requests.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// As soon as a connection is free.
    Closed,
    /// So many a second, at equal distances.
    Open(f64),
}

/// Plan of a load.
pub struct Plan<'a> {
    /// The server.
    pub address: SocketAddr,
    /// Number of connections.
    pub connections: usize,
    /// Pace of requests.
    pub pace: Pace,
    /// For how long; what is under way then is waited for.
    pub duration: Duration,
    /// It ends sooner after so many requests.
    pub most: u64,
    /// The status of a good answer.
    pub expected: u16,
    /// True if a core is free for waiting without sleep.
    pub may_spin: bool,
    /// Writes the next request.
    pub next: &'a mut dyn FnMut(&mut Vec<u8>),
}

/// Outcome of a load.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Good answers.
    pub answered: u64,
    /// Other answers, and requests that got none.
    pub failed: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Latency of each good answer in nanoseconds, ascending.
    latencies: Vec<u64>,
}

impl Outcome {
    /// The latency that `share` of the answers didn't exceed.
    pub fn percentile(&self, share: f64) -> Duration {
        let Some(last) = self.latencies.len().checked_sub(1) else {
            return Duration::ZERO;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "far below 2^52"
        )]
        let index = (last as f64 * share).ceil() as usize;
        Duration::from_nanos(self.latencies[index.min(last)])
    }
}

struct Connection {
    stream: TcpStream,
    reader: Reader,
    /// Time at which the request under way was due.
    due: Option<Instant>,
}

struct Generator<'a> {
    plan: Plan<'a>,
    poll: Poll,
    connections: Vec<Connection>,
    idle: Vec<usize>,
    buffer: Vec<u8>,
    request: Vec<u8>,
    outcome: Outcome,
    /// Ends a poll whenever a request is due.
    timer: Option<OwnedFd>,
}

/// Runs the plan.
///
/// # Errors
/// If the server can't be reached, or Ctrl-C was pressed.
pub fn run(plan: Plan) -> Result<Outcome> {
    let mut generator = Generator {
        poll: Poll::new()?,
        connections: Vec::new(),
        idle: Vec::new(),
        buffer: vec![0; 256 * 1024],
        request: Vec::new(),
        outcome: Outcome::default(),
        timer: None,
        plan,
    };
    for _ in 0..generator.plan.connections {
        generator.connect(None)?;
    }
    if let Pace::Open(rate) = generator.plan.pace
        && !generator.plan.may_spin
    {
        generator.timer = Some(timer(&generator.poll, rate)?);
    }
    generator.run()?;
    let mut outcome = generator.outcome;
    outcome.latencies.sort_unstable();
    Ok(outcome)
}

/// A timer that ends a poll whenever a request is due: polls end by themselves at whole milliseconds only.
fn timer(poll: &Poll, rate: f64) -> Result<OwnedFd> {
    let timer = timerfd_create(
        TimerfdClockId::Monotonic,
        TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
    )?;
    let interval = Timespec::try_from(Duration::from_secs_f64(1.0 / rate))?;
    let times = Itimerspec {
        it_interval: interval,
        it_value: interval,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
    let registry = poll.registry();
    registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
    Ok(timer)
}

impl Generator<'_> {
    /// Opens a connection, in the place of an old one where there was one.
    fn connect(&mut self, place: Option<usize>) -> Result<()> {
        let address = self.plan.address;
        let stream = std::net::TcpStream::connect(address)
            .with_context(|| format!("can't connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let index = place.unwrap_or(self.connections.len());
        let registry = self.poll.registry();
        registry.register(&mut stream, Token(index), Interest::READABLE)?;
        let connection = Connection {
            stream,
            reader: Reader::new(false),
            due: None,
        };
        match place {
            Some(place) => self.connections[place] = connection,
            None => self.connections.push(connection),
        }
        self.idle.push(index);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let start = Instant::now();
        let end = start + self.plan.duration;
        let mut waiting = VecDeque::new();
        let mut scheduled = 0_u32;
        let mut left = self.plan.most;
        let mut events = Events::with_capacity(1024);
        loop {
            if INTERRUPTED.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            let now = Instant::now();
            let mut next_due = end;
            match self.plan.pace {
                Pace::Closed if now < end && left > 0 => {
                    while self.idle.len() > waiting.len() {
                        waiting.push_back(now);
                    }
                }
                Pace::Closed => waiting.clear(),
                Pace::Open(rate) => loop {
                    next_due = start + Duration::from_secs_f64(f64::from(scheduled) / rate);
                    if next_due > now || next_due >= end {
                        break;
                    }
                    waiting.push_back(next_due);
                    scheduled += 1;
                },
            }
            while left > 0
                && !waiting.is_empty()
                && let Some(index) = self.idle.pop()
            {
                left -= 1;
                let due = waiting.pop_front().unwrap_or(now);
                self.send(index, due)?;
            }
            let is_quiet = self.idle.len() == self.connections.len();
            if left == 0 {
                waiting.clear();
            }
            if (now >= end || left == 0) && is_quiet && waiting.is_empty() {
                self.outcome.elapsed = start.elapsed();
                return Ok(());
            }
            if now > end + PATIENCE {
                bail!("answers didn't come within {} s", PATIENCE.as_secs());
            }
            let timeout = match self.plan.pace {
                Pace::Open(_) if self.plan.may_spin && now < end => Duration::ZERO,
                Pace::Open(_) if now < end => next_due.saturating_duration_since(now),
                _ => Duration::from_millis(100),
            };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match (event.token(), &self.timer) {
                    // It goes on once it was read; nobody needs the number of its expirations.
                    (TIMER, Some(timer)) => drop(rustix::io::read(timer, &mut [0; 8])),
                    (Token(index), _) => self.receive(index)?,
                }
            }
        }
    }

    fn send(&mut self, index: usize, due: Instant) -> Result<()> {
        self.request.clear();
        (self.plan.next)(&mut self.request);
        let connection = &mut self.connections[index];
        connection.due = Some(due);
        match connection.stream.write(&self.request) {
            // A request is far smaller than a socket's buffer.
            Ok(written) if written == self.request.len() => Ok(()),
            _ => self.fail(index),
        }
    }

    /// The request under way on this connection has failed; another connection takes its place.
    fn fail(&mut self, index: usize) -> Result<()> {
        if self.connections[index].due.take().is_some() {
            self.outcome.failed += 1;
        } else {
            self.idle.retain(|idle| *idle != index);
        }
        if self.outcome.failed > 1_000 {
            bail!("more than 1,000 requests failed");
        }
        self.connect(Some(index))
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        loop {
            let connection = &mut self.connections[index];
            let length = match connection.stream.read(&mut self.buffer) {
                Ok(0) => return self.fail(index),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.fail(index),
            };
            let Some(due) = connection.due else {
                return self.fail(index);
            };
            let Some(status) = connection.reader.feed(&self.buffer[..length])? else {
                continue;
            };
            connection.due = None;
            if status == self.plan.expected {
                self.outcome.answered += 1;
                let latency = u64::try_from(due.elapsed().as_nanos())?;
                self.outcome.latencies.push(latency);
            } else {
                self.outcome.failed += 1;
            }
            // Nothing follows an answer, and what comes next makes an event of its own.
            self.idle.push(index);
            return Ok(());
        }
    }
}
