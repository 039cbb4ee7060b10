//! nginx with Vitrine's answers as files: what sending bytes costs that somebody else has made.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, write::GzEncoder};

use super::{Around, KEY, Kind, Running, first_product, start_server};
use crate::work::Work;
use crate::world::{World, find};

const CONFIGURATION: &str = include_str!("../../../nginx/nginx.conf");
/// Where Debian puts it, which isn't in everyone's `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

pub(super) fn program() -> Option<PathBuf> {
    find("nginx", &FOLDERS.map(PathBuf::from))
}

pub(super) fn start(kind: &'static Kind, around: &Around) -> Result<Running> {
    let world = around.world;
    let folder = world.folder.join("nginx");
    let vitrine = around
        .earlier
        .first()
        .context("nginx sends what Vitrine answered")?;
    write_files(world, vitrine)?;
    let program = program().context("no nginx")?;
    let is_root = rustix::process::geteuid().is_root();
    let configuration = folder.join("nginx.conf");
    let path = first_product(world);
    start_server(kind, world, KEY, &program, &path, |command, address| {
        let text = CONFIGURATION
            .replace("{{user}}", if is_root { "user root;" } else { "" })
            .replace("{{folder}}", &folder.display().to_string())
            .replace("{{address}}", &address.to_string());
        // A configuration that isn't there makes nginx fail with words of its own.
        let _ = std::fs::write(&configuration, text);
        command.arg("-c").arg(&configuration);
        command.arg("-e").arg(folder.join("error.log"));
    })
}

/// Writes what Vitrine answers, plain and compressed as `gzip -6` and zstd's default do.
fn write_files(world: &World, vitrine: &Running) -> Result<()> {
    let files = world.folder.join("nginx/files");
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
