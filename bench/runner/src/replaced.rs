//! Revisions that change every product, under a running Vitrine: all of the catalog is made anew.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::contender::{Running, VitrineStore};
use crate::own::{SETTLES_IN, fact, snapshots, wait_until};
use crate::process;
use crate::report::Fact;
use crate::world::{World, done, renamed};

/// Number of times that all is replaced: memory that isn't given back adds up.
const TIMES: usize = 4;

/// Replaces all products a few times; what the server holds meanwhile and afterwards.
///
/// # Errors
/// If a load fails, or what it brought isn't swapped in.
pub fn measure(world: &World, server: &Running, store: &VitrineStore) -> Result<Vec<Fact>> {
    let others = world.folder.join("others.ndjson");
    renamed(&world.file, &others, || "Another ".to_owned())?;
    let process = server.process.id();
    std::thread::sleep(SETTLES_IN);
    let before = process::resident(process)?.now;
    process::forget_peak(process)?;
    let (mut peaks, mut rests) = (Vec::new(), Vec::new());
    for file in [&others, &world.file].into_iter().cycle().take(TIMES) {
        let swapped = snapshots(server).len();
        load(world, store, file)?;
        wait_until("the catalog that was replaced is live", || {
            snapshots(server).len() > swapped
        })?;
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

fn load(world: &World, store: &VitrineStore, file: &Path) -> Result<()> {
    let mut command = Command::new(&world.vitrine);
    command.args(["--store", &store.url, "load"]).arg(file);
    done(&mut command).map(drop)
}
