//! nginx with Vitrine's answers as files: what sending bytes costs that somebody else has made.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{KEY, Kind, Running, StartContext, files, first_product, start_server};
use crate::world::find;

const CONFIGURATION: &str = include_str!("../../../nginx/nginx.conf");
/// Room for every file that is asked for, its compressed form included; otherwise as nginx has it.
const OPEN_FILE_CACHE: &str = "open_file_cache max=10000;";
/// Folders in which Debian puts it, which aren't in everyone's `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

pub(super) fn program() -> Option<PathBuf> {
    find("nginx", &FOLDERS.map(PathBuf::from))
}

/// Debian's default: each answer opens its file.
pub(super) fn start(kind: &'static Kind, around: &StartContext) -> Result<Running> {
    start_with(kind, around, "")
}

/// With files kept open between answers, which an operator has to ask for.
pub(super) fn start_with_open_file_cache(
    kind: &'static Kind,
    around: &StartContext,
) -> Result<Running> {
    start_with(kind, around, OPEN_FILE_CACHE)
}

fn start_with(kind: &'static Kind, around: &StartContext, settings: &str) -> Result<Running> {
    let world = around.world;
    let folder = world.folder.join(kind.name);
    std::fs::create_dir_all(&folder)?;
    let files = files::of_vitrine(around)?;
    let program = program().context("no nginx")?;
    let is_root = rustix::process::geteuid().is_root();
    let configuration = folder.join("nginx.conf");
    let path = first_product(world);
    start_server(kind, world, KEY, &program, &path, |command, address| {
        let text = CONFIGURATION
            .replace("{{user}}", if is_root { "user root;" } else { "" })
            .replace("{{settings}}", settings)
            .replace("{{folder}}", &folder.display().to_string())
            .replace("{{files}}", &files.display().to_string())
            .replace("{{address}}", &address.to_string());
        // A configuration that isn't there makes nginx fail with words of its own.
        let _ = std::fs::write(&configuration, text);
        command.arg("-c").arg(&configuration);
        command.arg("-e").arg(folder.join("error.log"));
    })
}
