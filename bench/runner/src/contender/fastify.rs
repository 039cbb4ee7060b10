//! Fastify over SQLite; its packages lie beside its source, where Node.js looks for them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{KEY, Kind, Running, StartContext, first_product, start_server};
use crate::world::{World, done};

pub(super) fn start(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    let world = around.world;
    let folder = install(world)?;
    let file = around.sqlite.context("no database")?;
    let node = crate::world::find("node", &[]).context("no node")?;
    start_server(
        kind,
        world,
        KEY,
        &node,
        &first_product(world),
        |command, address| {
            command.arg(folder.join("server.js"));
            command
                .env("PORT", address.port().to_string())
                .env("NODE_ENV", "production");
            command.env("DATABASE_FILE", file).env("API_KEY", KEY);
        },
    )
}

/// Installs what the lock file says, unless that was installed before.
fn install(world: &World) -> Result<PathBuf> {
    let folder = world.root.join("bench/fastify-better-sqlite3");
    let wanted = std::fs::read(folder.join("package-lock.json"))?;
    let stamp = folder.join("node_modules/installed");
    if std::fs::read(&stamp).is_ok_and(|stamp| stamp == wanted) {
        return Ok(folder);
    }
    eprintln!(
        "installing Fastify into bench/fastify-better-sqlite3/node_modules (builds better-sqlite3)"
    );
    let mut install = Command::new("npm");
    done(
        install
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&folder),
    )?;
    std::fs::write(&stamp, wanted)?;
    Ok(folder)
}
