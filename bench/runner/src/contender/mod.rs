//! The servers that are measured, and how each is started.

mod axum;
mod bare;
mod database;
mod fastapi;
mod files;
mod nginx;
mod vitrine;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use crate::http;
use crate::process::{Process, Start};
use crate::work::NEW_PAGES_AS_FILES;
use crate::world::{World, find, free_port};

use database::Postgres;
pub use vitrine::{StartOptions, VitrineStore, start_vitrine};

/// Key that the services hash and look up.
const KEY: &str = "vitrine_0neIpVTF3s3.05UddyMlW7X6WD7ZLATdWmqazyiI14Drn783pqArSwEP";
/// Timeout of a server's first answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Pages before that are asked for when bodies are compared, and for files.
const FIRST_NEW_PAGE: u64 = NEW_PAGES_AS_FILES;

/// One kind of server.
pub struct Kind {
    /// Its name on the command line and in the JSON.
    pub name: &'static str,
    /// Its name in the table.
    pub title: &'static str,
    /// True if it sends files that Vitrine's answers were written to.
    pub has_files: bool,
    /// Programs that must be installed.
    needs: &'static [Need],
    /// Prepares the data and starts it.
    start: fn(&'static Kind, &StartContext) -> Result<Running>,
}

/// A server that answers.
pub struct Running {
    /// Kind of server.
    pub kind: &'static Kind,
    /// From its start to its first answer.
    pub started_in: Duration,
    /// Address that it listens on.
    pub address: SocketAddr,
    /// The key that it knows.
    pub key: String,
    /// The tag of the page of 500, empty where it has none.
    pub page_tag: String,
    /// Number of pages asked for that should be new to it.
    pub pages_asked_for: AtomicU64,
    /// Its process.
    pub process: Process,
    /// The id of the database's process, where it asks one.
    pub database: Option<u32>,
}

impl Kind {
    /// Returns true if it is a build of Vitrine.
    pub fn is_vitrine(&self) -> bool {
        self.name.starts_with("vitrine")
    }
}

impl Running {
    /// The ids of its processes, those of a database included.
    pub fn roots(&self) -> Vec<u32> {
        std::iter::once(self.process.id())
            .chain(self.database)
            .collect()
    }
}

/// Need of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Need {
    Nginx,
    Postgres,
    Python,
    Sqlite,
}

impl Need {
    /// Says what is missing, if it is.
    fn missing(self) -> Option<&'static str> {
        let (is_there, package) = match self {
            Self::Nginx => (
                nginx::program().is_some(),
                "nginx (Debian's package `nginx`)",
            ),
            Self::Postgres => (
                database::program("initdb").is_some() && find("psql", &[]).is_some(),
                "PostgreSQL (Debian's package `postgresql`)",
            ),
            Self::Python => (
                find("python3", &[]).is_some(),
                "Python 3.11 or newer with venv (Debian's package `python3-venv`)",
            ),
            Self::Sqlite => (find("sqlite3", &[]).is_some(), "Debian's package `sqlite3`"),
        };
        (!is_there).then_some(package)
    }
}

/// Surroundings in which a server is started.
pub struct StartContext<'a> {
    /// Data, folders, cores.
    world: &'a World,
    /// The servers started before; the first is Vitrine.
    earlier: &'a [Running],
    /// The filled cluster, once one was needed.
    postgres: Option<&'a Postgres>,
    /// The filled file, once one was needed.
    sqlite: Option<&'a Path>,
}

/// All contenders; the first is what the others are compared with.
pub static ALL: [Kind; 9] = [
    Kind {
        name: "vitrine",
        title: "**Vitrine**",
        has_files: false,
        needs: &[],
        start: vitrine::start,
    },
    Kind {
        name: "nginx",
        title: "nginx, files",
        has_files: true,
        needs: &[Need::Nginx],
        start: nginx::start,
    },
    Kind {
        name: "nginx-open-file-cache",
        title: "nginx, files, `open_file_cache`",
        has_files: true,
        needs: &[Need::Nginx],
        start: nginx::start_with_open_file_cache,
    },
    Kind {
        name: "bare-memory",
        title: "the bare calls, from memory",
        has_files: true,
        needs: &[],
        start: bare::start_memory,
    },
    Kind {
        name: "bare-sendfile",
        title: "the bare calls, `sendfile`",
        has_files: true,
        needs: &[],
        start: bare::start_sendfile,
    },
    Kind {
        name: "axum-memory",
        title: "axum, `Vec` in memory",
        has_files: false,
        needs: &[],
        start: axum::start,
    },
    Kind {
        name: "axum-sqlx-sqlite",
        title: "axum, sqlx, SQLite",
        has_files: false,
        needs: &[Need::Sqlite],
        start: axum::start,
    },
    Kind {
        name: "axum-sqlx-postgres",
        title: "axum, sqlx, PostgreSQL",
        has_files: false,
        needs: &[Need::Postgres],
        start: axum::start,
    },
    Kind {
        name: "fastapi-postgres",
        title: "FastAPI, PostgreSQL",
        has_files: false,
        needs: &[Need::Python, Need::Postgres],
        start: fastapi::start,
    },
];

/// An older build of Vitrine, to compare with.
pub static OLDER: Kind = Kind {
    name: "vitrine-older",
    title: "Vitrine, older",
    has_files: false,
    needs: &[],
    start: vitrine::start,
};

/// Servers that were started. They end before the database does.
pub struct Started {
    /// The servers, Vitrine first.
    pub servers: Vec<Running>,
    /// The database of those that need it.
    pub postgres: Option<Postgres>,
}

/// Starts those that are wanted and can be, and says out loud which can't.
///
/// # Errors
/// If one fails that has all it needs, or with `must_all` lacks something.
pub fn start_all(world: &World, wanted: &[&'static Kind], must_all: bool) -> Result<Started> {
    let mut started = Started {
        servers: Vec::new(),
        postgres: None,
    };
    let mut sqlite = None;
    for kind in wanted {
        let name = kind.name;
        if let Some(missing) = kind.needs.iter().find_map(|need| need.missing()) {
            if must_all {
                bail!("{name} needs {missing}; or leave it out with --skip {name}");
            }
            eprintln!("SKIPPED: {name}, since it needs {missing}");
            continue;
        }
        eprintln!("starting {name}");
        if kind.needs.contains(&Need::Postgres) && started.postgres.is_none() {
            started.postgres = Some(Postgres::start(world)?);
        }
        if kind.needs.contains(&Need::Sqlite) && sqlite.is_none() {
            sqlite = Some(database::make_sqlite(world)?);
        }
        let around = StartContext {
            world,
            earlier: &started.servers,
            postgres: started.postgres.as_ref(),
            sqlite: sqlite.as_deref(),
        };
        let mut running =
            (kind.start)(kind, &around).with_context(|| format!("{name} can't be measured"))?;
        if kind.needs.contains(&Need::Postgres) {
            running.database = started.postgres.as_ref().map(|own| own.process.id());
        }
        started.servers.push(running);
    }
    Ok(started)
}

/// The path that tells that a server answers.
fn first_product(world: &World) -> String {
    format!("/v2/product/{}", world.asked_for[0])
}

/// Starts a server on the servers' core and waits for its first answer to `path`.
fn start_server(
    kind: &'static Kind,
    world: &World,
    key: &str,
    program: &Path,
    path: &str,
    arguments: impl FnOnce(&mut std::process::Command, SocketAddr),
) -> Result<Running> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let start = Start {
        name: kind.name,
        cores: &world.server_cores,
        user: None,
        folder: &world.folder,
    };
    let mut command = start.command(program);
    arguments(&mut command, address);
    let begun = Instant::now();
    let mut process = start.spawn(command, Signal::TERM)?;
    wait_for_answer(&mut process, address, path, key)?;
    Ok(Running {
        kind,
        started_in: begun.elapsed(),
        address,
        key: key.to_owned(),
        page_tag: String::new(),
        pages_asked_for: AtomicU64::new(FIRST_NEW_PAGE),
        process,
        database: None,
    })
}

/// Asks until there is a 200.
///
/// # Errors
/// If the process ends, or doesn't answer in time.
fn wait_for_answer(
    process: &mut Process,
    address: SocketAddr,
    path: &str,
    key: &str,
) -> Result<()> {
    let start = Instant::now();
    loop {
        let answer = http::fetch(address, path, &[("X-Api-Key", key)]);
        match answer {
            Ok(answer) if answer.head.status == 200 => return Ok(()),
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
