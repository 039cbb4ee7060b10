//! Vitrine's answers as files, for those who send files: plain, and compressed as `gzip -6` and zstd's default do.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, write::GzEncoder};

use super::{Running, StartContext};
use crate::work::{NEW_PAGES_AS_FILES, Work};
use crate::world::World;

/// The folder of the files, which whoever asks first has written.
///
/// # Errors
/// If Vitrine hasn't started, or doesn't answer.
pub(super) fn of_vitrine(around: &StartContext) -> Result<PathBuf> {
    let folder = around.world.folder.join("files");
    if !folder.exists() {
        let vitrine = around.earlier.first();
        let vitrine = vitrine.context("there are no answers without Vitrine")?;
        write_all(around.world, vitrine, &folder)?;
    }
    Ok(folder)
}

fn write_all(world: &World, vitrine: &Running, files: &Path) -> Result<()> {
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
