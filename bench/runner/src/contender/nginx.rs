//! nginx with Vitrine's answers as files: what sending bytes costs that somebody else has made.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, write::GzEncoder};

use super::{Around, KEY, Kind, Running, first_product, start_server};
use crate::work::{NEW_PAGES_AS_FILES, Work};
use crate::world::{World, find};

const CONFIGURATION: &str = include_str!("../../../nginx/nginx.conf");
/// Room for every file that is asked for, its compressed form included; otherwise as nginx has it.
const OPEN_FILE_CACHE: &str = "open_file_cache max=10000;";
/// Where Debian puts it, which isn't in everyone's `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

pub(super) fn program() -> Option<PathBuf> {
    find("nginx", &FOLDERS.map(PathBuf::from))
}

/// Debian's default: each answer opens its file.
pub(super) fn start(kind: &'static Kind, around: &Around) -> Result<Running> {
    start_with(kind, around, "")
}

/// With files kept open between answers, which an operator has to ask for.
pub(super) fn start_with_open_file_cache(kind: &'static Kind, around: &Around) -> Result<Running> {
    start_with(kind, around, OPEN_FILE_CACHE)
}

fn start_with(kind: &'static Kind, around: &Around, settings: &str) -> Result<Running> {
    let world = around.world;
    let folder = world.folder.join(kind.name);
    let vitrine = around
        .earlier
        .first()
        .context("nginx sends what Vitrine answered")?;
    write_files(world, vitrine, &folder.join("files"))?;
    let program = program().context("no nginx")?;
    let is_root = rustix::process::geteuid().is_root();
    let configuration = folder.join("nginx.conf");
    let path = first_product(world);
    start_server(kind, world, KEY, &program, &path, |command, address| {
        let text = CONFIGURATION
            .replace("{{user}}", if is_root { "user root;" } else { "" })
            .replace("{{settings}}", settings)
            .replace("{{folder}}", &folder.display().to_string())
            .replace("{{address}}", &address.to_string());
        // A configuration that isn't there makes nginx fail with words of its own.
        let _ = std::fs::write(&configuration, text);
        command.arg("-c").arg(&configuration);
        command.arg("-e").arg(folder.join("error.log"));
    })
}

/// Writes what Vitrine answers, plain and compressed as `gzip -6` and zstd's default do.
pub(super) fn write_files(world: &World, vitrine: &Running, files: &Path) -> Result<()> {
    for folder in ["v2/product", "pages", "zstd/pages"] {
        std::fs::create_dir_all(files.join(folder))?;
    }
    for (number, code) in world.asked_for.iter().enumerate() {
        let answer = Work::Product.fetch(world, vitrine, number as u64)?;
        write(&files.join("v2/product").join(code), &answer.decoded()?)?;
    }
    for (work, name) in [(Work::Page, "country"), (Work::SmallPage, "both")] {
        let page = work.fetch(world, vitrine, 0)?.decoded()?;
        write(&files.join(format!("pages/{name}.json")), &page)?;
        let compressed = zstd::encode_all(&page[..], 3)?;
        std::fs::write(files.join(format!("zstd/pages/{name}.json")), compressed)?;
    }
    for number in 0..NEW_PAGES_AS_FILES {
        let page = Work::NewPage.fetch(world, vitrine, number)?.decoded()?;
        std::fs::write(files.join(format!("pages/new-{number}.json")), page)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let mut encoder = GzEncoder::new(std::fs::File::create(name)?, Compression::new(6));
    encoder.write_all(bytes)?;
    encoder.finish()?;
    Ok(())
}
