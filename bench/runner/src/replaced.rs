//! What a revision of which no product is as it was does to a running Vitrine: all of the catalog is made anew.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::contender::{Running, VitrineStore};
use crate::own::{SETTLES_IN, fact, snapshots};
use crate::process;
use crate::report::Fact;
use crate::world::{World, done};

/// How often all is replaced: what isn't given back adds up.
const TIMES: usize = 4;
/// How long the server may take to make the catalog anew.
const PATIENCE: Duration = Duration::from_secs(300);

/// Replaces all products a few times; what the server holds meanwhile and afterwards.
///
/// # Errors
/// If a load fails, or what it brought isn't swapped in.
pub fn measure(world: &World, server: &Running, store: &VitrineStore) -> Result<Vec<Fact>> {
    let others = others(world)?;
    let process = server.process.id();
    std::thread::sleep(SETTLES_IN);
    let before = process::resident(process)?.now;
    process::forget_peak(process)?;
    let (mut peaks, mut rests) = (Vec::new(), Vec::new());
    for file in [&others, &world.file].into_iter().cycle().take(TIMES) {
        let swapped = snapshots(server).len();
        load(world, store, file)?;
        let begun = Instant::now();
        while snapshots(server).len() == swapped {
            if begun.elapsed() > PATIENCE {
                bail!("a catalog that was replaced isn't live");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(SETTLES_IN);
        let after = process::resident(process)?;
        peaks.push(after.peak);
        rests.push(after.now);
    }
    let times = peaks.iter().map(|peak| peak / before).collect();
    let what = |what: &str| format!("All products changed, {TIMES} times: {what}");
    Ok(vec![
        fact(what("peak memory"), peaks, "MiB"),
        fact(what("… times what was held before"), times, ""),
        fact(what("memory at rest after it"), rests, "MiB"),
    ])
}

/// The same products, each with another name.
fn others(world: &World) -> Result<PathBuf> {
    let path = world.folder.join("others.ndjson");
    let mut out = BufWriter::new(File::create(&path)?);
    for line in BufReader::new(File::open(&world.file)?).lines() {
        let line = line?;
        let (start, rest) = line
            .split_once("\"name\":\"")
            .context("a line without a name")?;
        writeln!(out, "{start}\"name\":\"Another {rest}")?;
    }
    out.flush()?;
    Ok(path)
}

fn load(world: &World, store: &VitrineStore, file: &Path) -> Result<()> {
    let mut command = Command::new(&world.vitrine);
    command.args(["--store", &store.url, "load"]).arg(file);
    done(&mut command).map(drop)
}
