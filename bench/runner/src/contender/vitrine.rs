//! Vitrine itself: with key check, quota, tags, access log, metrics and an admin port.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Kind, Running, StartContext, start_server};
use crate::contender;
use crate::world::{World, done};

/// Large enough to be counted and never reached.
const QUOTA: &str = "100000000/1";

/// A store with the products and a key.
#[derive(Clone)]
pub struct VitrineStore {
    /// The store's address.
    pub url: String,
    /// A key with a quota.
    pub key: String,
}

impl VitrineStore {
    /// Loads the products into a new store.
    ///
    /// # Errors
    /// If a command fails.
    pub fn make(world: &World, program: &Path, name: &str) -> Result<Self> {
        let url = format!("sqlite:{}", world.folder.join(name).display());
        done(
            Command::new(program)
                .args(["--store", &url, "load", "--json"])
                .arg(&world.file),
        )?;
        let key = make_key(program, &url)?;
        Ok(Self { url, key })
    }

    /// Makes another key, with the same quota.
    ///
    /// # Errors
    /// If the command fails.
    pub fn make_key(&self, world: &World) -> Result<String> {
        make_key(&world.vitrine, &self.url)
    }

    /// The store in this file, which is there already.
    pub fn at(file: &Path, key: &str) -> Self {
        Self {
            url: format!("sqlite:{}", file.display()),
            key: key.to_owned(),
        }
    }

    /// A copy with the same keys, while no server runs or beside one.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn copy(&self, world: &World, name: &str) -> Result<Self> {
        let file = world.folder.join(name);
        let mut backup = Command::new(&world.vitrine);
        done(backup.args(["--store", &self.url, "backup"]).arg(&file))?;
        Ok(Self::at(&file, &self.key))
    }
}

fn make_key(program: &Path, store: &str) -> Result<String> {
    let mut create = Command::new(program);
    create.args([
        "--store", store, "keys", "create", "--json", "--label", "bench",
    ]);
    let made: Value = serde_json::from_str(&done(create.args(["--quota", QUOTA]))?)?;
    let key = made["key"].as_str().context("no key was made")?;
    Ok(key.to_owned())
}

/// Options of a server's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartOptions<'a> {
    /// valgrind, where instructions are to be counted.
    pub valgrind: Option<&'a Path>,
    /// Folder of the server's snapshot file, if it keeps one.
    pub state: Option<&'a Path>,
    /// Further arguments of `vitrine serve`.
    pub arguments: &'a [&'a str],
    /// Further variables.
    pub environment: &'a [(&'a str, &'a str)],
}

/// Starts a server over the store.
///
/// # Errors
/// If it doesn't come to answer.
pub fn start_vitrine(
    kind: &'static Kind,
    world: &World,
    program: &Path,
    store: &VitrineStore,
    StartOptions {
        valgrind,
        state,
        arguments: more,
        environment,
    }: StartOptions,
) -> Result<Running> {
    // An older build may know no admin port.
    let has_admin_port = kind.name != contender::OLDER.name
        || done(Command::new(program).args(["serve", "--help"]))?.contains("--admin-listen");
    let arguments = |command: &mut Command, address: SocketAddr| {
        if valgrind.is_some() {
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            command.arg(program);
        }
        command.args(["--store", &store.url, "serve", "--listen"]);
        // The access log goes to a file: see `Start::spawn`.
        command.args([&address.to_string(), "--access-log", "stdout"]);
        if has_admin_port {
            command.args(["--admin-listen", "127.0.0.1:0"]);
        }
        if let Some(state) = state {
            // Ports differ from start to start, and a snapshot file is used at the address that it was made for.
            command.args(["--public-url", "https://catalog.example"]);
            command.arg("--state-dir").arg(state);
        }
        command.args(more).envs(environment.iter().copied());
    };
    start_server(
        kind,
        world,
        &store.key,
        valgrind.unwrap_or(program),
        "/v2/ping",
        arguments,
    )
}

/// Loads and starts what is measured.
pub(super) fn start(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    let world = around.world;
    let store = VitrineStore::make(world, &world.vitrine, "vitrine.db")?;
    start_vitrine(kind, world, &world.vitrine, &store, StartOptions::default())
}
