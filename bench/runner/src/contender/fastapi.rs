//! FastAPI over PostgreSQL, in a Python environment below `target/`.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::{KEY, Kind, Running, StartContext, first_product, start_server};
use crate::world::{World, done};

pub(super) fn start(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    let world = around.world;
    install(world)?;
    let program = world.root.join("target/bench/python/bin/uvicorn");
    let postgres = around.postgres.context("no database")?;
    start_server(
        kind,
        world,
        KEY,
        &program,
        &first_product(world),
        |command, address| {
            command.args(["main:app", "--no-access-log", "--workers", "1", "--app-dir"]);
            command.arg(world.root.join("bench/fastapi-postgres"));
            command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
            command
                .env("DATABASE_URL", postgres.url())
                .env("API_KEY", KEY);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
        },
    )
}

/// Installs what the list says, unless that list was installed before.
fn install(world: &World) -> Result<()> {
    let wanted = world.root.join("bench/fastapi-postgres/requirements.txt");
    let environment = world.root.join("target/bench/python");
    let stamp = environment.join("installed");
    if std::fs::read(&stamp).is_ok_and(|stamp| std::fs::read(&wanted).is_ok_and(|own| own == stamp))
    {
        return Ok(());
    }
    eprintln!("installing FastAPI into target/bench/python");
    done(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let mut install = Command::new(environment.join("bin/pip"));
    install.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ]);
    done(install.arg(&wanted))?;
    std::fs::copy(&wanted, &stamp)?;
    Ok(())
}
