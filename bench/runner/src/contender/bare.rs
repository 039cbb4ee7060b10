//! The program of `bench/bare`: what reading a request and sending an answer costs whoever does it.

use anyhow::{Context as _, Result};

use super::{KEY, Kind, Running, StartContext, files, first_product, start_server};

/// Head and body go out of memory with one call, as Vitrine does it.
pub(super) fn start_memory(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    start(kind, around, "memory")
}

/// The body goes out of an open file, as nginx does it.
pub(super) fn start_sendfile(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    start(kind, around, "sendfile")
}

fn start(kind: &'static Kind, around: &StartContext, send: &str) -> Result<Running> {
    let world = around.world;
    let files = files::of_vitrine(around)?;
    let runner = std::env::current_exe()?;
    let program = runner.parent().context("no folder")?.join("bare");
    let path = first_product(world);
    start_server(kind, world, KEY, &program, &path, |command, address| {
        command.env("LISTEN", address.to_string());
        command.env("FILES", files).env("SEND", send);
    })
}
