//! The servers that are measured, and how each is started.

mod nginx;
mod vitrine;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use crate::http;
use crate::process::{Process, Start};
use crate::world::{World, free_port};

pub use vitrine::{VitrineStore, start_vitrine};

/// How long a server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(300);

/// Pages before that are asked for when bodies are compared.
const FIRST_NEW_PAGE: u64 = 100;

/// One kind of server.
pub struct Kind {
    /// Its name on the command line and in the JSON.
    pub name: &'static str,
    /// Its name in the table.
    pub title: &'static str,
    /// Whether it sends files that Vitrine's answers were written to.
    pub has_files: bool,
    /// Says what is missing on this machine.
    missing: fn() -> Option<&'static str>,
    /// Prepares the data and starts it.
    start: fn(&'static Kind, &World, earlier: &[Running]) -> Result<Running>,
}

/// A server that answers.
pub struct Running {
    /// What it is.
    pub kind: &'static Kind,
    /// Where it listens.
    pub address: SocketAddr,
    /// The key that it knows.
    pub key: String,
    /// The tag of the page of 500, empty where it has none.
    pub page_tag: String,
    /// How many pages were asked for that should be new to it.
    pub pages_asked_for: AtomicU64,
    /// Its process.
    pub process: Process,
    /// The id of the database's process, where it asks one.
    pub database: Option<u32>,
}

impl Running {
    /// The ids of its processes, those of a database included.
    pub fn roots(&self) -> Vec<u32> {
        std::iter::once(self.process.id())
            .chain(self.database)
            .collect()
    }
}

/// All contenders; the first is what the others are compared with.
pub static ALL: [Kind; 2] = [
    Kind {
        name: "vitrine",
        title: "**Vitrine**",
        has_files: false,
        missing: || None,
        start: vitrine::start,
    },
    Kind {
        name: "nginx",
        title: "nginx, files (`sendfile`, `gzip_static`)",
        has_files: true,
        missing: nginx::missing,
        start: nginx::start,
    },
];

/// Starts those that are wanted and can be, and says out loud which can't.
///
/// # Errors
/// If one fails that has all it needs.
pub fn start_all(world: &World, wanted: &[&'static Kind], must_all: bool) -> Result<Vec<Running>> {
    let mut running = Vec::new();
    for kind in wanted {
        if let Some(missing) = (kind.missing)() {
            if must_all {
                bail!(
                    "{} needs {missing}; or leave it out with --skip {}",
                    kind.name,
                    kind.name
                );
            }
            eprintln!("SKIPPED: {}, since it needs {missing}", kind.name);
            continue;
        }
        eprintln!("starting {}", kind.name);
        let started = (kind.start)(kind, world, &running);
        running.push(started.with_context(|| format!("{} can't be measured", kind.name))?);
    }
    Ok(running)
}

/// Starts a server on the servers' core and waits for its first answer to `path`.
fn start_server(
    kind: &'static Kind,
    world: &World,
    key: &str,
    program: &PathBuf,
    path: &str,
    arguments: impl FnOnce(&mut std::process::Command, SocketAddr),
) -> Result<Running> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let start = Start {
        name: kind.name,
        core: world.server_core,
        user: None,
        folder: &world.folder,
    };
    let mut command = start.command(program);
    arguments(&mut command, address);
    let mut process = start.spawn(command, Signal::TERM)?;
    wait_for_answer(&mut process, address, path, key)?;
    Ok(Running {
        kind,
        address,
        key: key.to_owned(),
        page_tag: String::new(),
        pages_asked_for: AtomicU64::new(FIRST_NEW_PAGE),
        process,
        database: None,
    })
}

/// Asks until there is a 200; tells how long that took.
///
/// # Errors
/// If the process ends, or doesn't answer in time.
pub fn wait_for_answer(
    process: &mut Process,
    address: SocketAddr,
    path: &str,
    key: &str,
) -> Result<Duration> {
    let start = Instant::now();
    loop {
        let answer = http::fetch(address, path, &[("X-Api-Key", key)]);
        match answer {
            Ok(answer) if answer.head.status == 200 => return Ok(start.elapsed()),
            Ok(answer) if start.elapsed() > PATIENCE => {
                bail!("{path} is answered with {}", answer.head.status)
            }
            Err(error) if start.elapsed() > PATIENCE => return Err(error),
            _ => std::thread::sleep(Duration::from_micros(500)),
        }
        process.must_run()?;
        if crate::load::INTERRUPTED.load(std::sync::atomic::Ordering::Relaxed) {
            bail!("interrupted");
        }
    }
}
