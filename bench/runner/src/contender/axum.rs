//! The four axum services of `bench/axum-services`, each a program of its own beside the runner.

use anyhow::{Context as _, Result};

use super::{KEY, Kind, Running, StartContext, first_product, start_server};

pub(super) fn start(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    let world = around.world;
    let runner = std::env::current_exe()?;
    let program = runner.parent().context("no folder")?.join(kind.name);
    start_server(
        kind,
        world,
        KEY,
        &program,
        &first_product(world),
        |command, address| {
            command
                .env("LISTEN", address.to_string())
                .env("API_KEY", KEY);
            command.env("PRODUCTS", &world.file);
            if let Some(postgres) = around.postgres {
                command.env("DATABASE_URL", postgres.url());
            }
            if let Some(file) = around.sqlite.filter(|_| kind.name.ends_with("sqlite")) {
                command.env("DATABASE_URL", format!("sqlite:{}", file.display()));
            }
        },
    )
}
