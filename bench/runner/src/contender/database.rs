//! The databases: a PostgreSQL cluster of its own on the servers' core, and a SQLite file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use crate::process::{Process, Start};
use crate::world::{World, done, find, free_port};

/// Timeout of the cluster's start.
const PATIENCE: Duration = Duration::from_secs(60);
/// User that runs it if the runner is root, as which PostgreSQL refuses to run.
const USER: &str = "postgres";

/// A cluster with the products in it.
pub struct Postgres {
    /// The postmaster.
    pub process: Process,
    port: u16,
}

/// Returns the path of a program of the server: Debian keeps them out of `PATH`, by version.
pub fn program(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    let mut folders: Vec<PathBuf> = folders.collect();
    folders.sort_unstable_by(|a, b| b.cmp(a));
    find(name, &folders)
}

impl Postgres {
    /// Makes the cluster, starts it on a free port and loads the products.
    ///
    /// # Errors
    /// If a program is missing or fails.
    pub fn start(world: &World) -> Result<Self> {
        let user = rustix::process::geteuid().is_root().then_some(USER);
        let folder = world.folder.join("postgres");
        let mut make = Command::new("install");
        make.args(["-d", "-m", "700"]);
        if let Some(user) = user {
            make.args(["-o", user]);
        }
        done(make.arg(&folder))?;
        let start = Start {
            name: "postgres",
            cores: &world.server_cores,
            user,
            folder: &world.folder,
        };
        let mut initdb = start.command(&program("initdb").context("no initdb")?);
        initdb.args([
            "--username=bench",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]);
        initdb.arg("--no-sync").arg("--pgdata").arg(&folder);
        done(initdb.current_dir("/"))
            .context("the folder of the project must be open to the user `postgres`")?;

        let port = free_port()?;
        let mut command = start.command(&program("postgres").context("no postgres")?);
        command.current_dir("/").arg("-D").arg(&folder);
        let port_text = format!("port={port}");
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            // All of it in memory: what is measured is the way out of there.
            "shared_buffers=1GB",
            "fsync=off",
            &port_text,
        ] {
            command.args(["-c", setting]);
        }
        // INT is its fast end: it doesn't wait for clients.
        let process = start.spawn(command, Signal::INT)?;
        let mut postgres = Self { process, port };
        postgres.wait()?;
        postgres.fill(world)?;
        Ok(postgres)
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("postgres://bench@127.0.0.1:{}/postgres", self.port)
    }

    fn psql(&self) -> Command {
        let mut psql = Command::new("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--set",
            "ON_ERROR_STOP=1",
            "--dbname",
            &self.url(),
        ]);
        psql
    }

    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while done(self.psql().args(["--command", "select 1"])).is_err() {
            self.process.must_run()?;
            if start.elapsed() > PATIENCE {
                bail!("PostgreSQL doesn't start: {}", self.process.said());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn fill(&self, world: &World) -> Result<()> {
        let schema = world.root.join("bench/sql/postgres.sql");
        let products = std::fs::File::open(&world.file)?;
        done(self.psql().arg("--file").arg(schema).stdin(products)).map(drop)
    }
}

/// Makes a SQLite file with the products.
///
/// # Errors
/// If the shell fails.
pub fn make_sqlite(world: &World) -> Result<PathBuf> {
    let quoted = |path: &Path| format!("\"{}\"", path.display());
    let file = world.folder.join("contenders.db");
    let mut shell = Command::new("sqlite3");
    shell.arg("-bail").arg(&file);
    shell.arg("create table line (document text not null)");
    // Columns end with a character that no line has, rows with a line break: each line is one value.
    shell.args([".mode ascii", r#".separator "\037" "\n""#]);
    shell.arg(format!(".import {} line", quoted(&world.file)));
    shell.arg(format!(
        ".read {}",
        quoted(&world.root.join("bench/sql/sqlite.sql"))
    ));
    done(&mut shell)?;
    Ok(file)
}
