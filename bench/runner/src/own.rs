//! Facts of Vitrine alone: its start, its memory, and the cost of a new revision.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::contender::{self, Running, StartOptions, VitrineStore, start_vitrine};
use crate::load::{INTERRUPTED, Pace, Plan};
use crate::measure::{Effort, sample};
use crate::process;
use crate::replaced;
use crate::report::Fact;
use crate::revision::{self, CHANGED, Loads, Revisions};
use crate::work::Work;
use crate::world::World;

/// Timeout of writing the snapshot file, and of making a catalog.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time in which memory settles: what a start needs and gives back is no memory at rest.
pub const SETTLES_IN: Duration = Duration::from_secs(1);

/// Sources of a snapshot, as the server logs them.
const FROM_STORE: &str = "store";
const FROM_CHANGES: &str = "changes";
const FROM_FILE: &str = "snapshot file";

/// Measures all of it over the store that was loaded first. No other server should run.
///
/// # Errors
/// If a command fails, a revision isn't seen, or a snapshot isn't made of what it should be.
pub fn measure(world: &World, key: &str, effort: &Effort) -> Result<Vec<Fact>> {
    let live = VitrineStore::at(&world.folder.join("vitrine.db"), key);
    let other = live.copy(world, "other.db")?;
    let revisions = Revisions::make(world)?;
    let mut facts = starts(world, &live, effort)?;
    let server = start(world, &live, None)?;
    facts.extend(revision(world, &server, &live, &revisions, effort)?);
    facts.extend(swaps(world, &server, [&other, &live], &revisions, effort)?);
    facts.extend(replaced::measure(world, &server, &live)?);
    Ok(facts)
}

/// A row of the table.
pub fn fact(what: impl Into<String>, values: Vec<f64>, unit: &'static str) -> Fact {
    Fact {
        what: what.into(),
        values,
        unit,
    }
}

fn start(world: &World, store: &VitrineStore, state: Option<&Path>) -> Result<Running> {
    let manner = StartOptions {
        state,
        ..StartOptions::default()
    };
    start_vitrine(&contender::ALL[0], world, &world.vitrine, store, manner)
}

/// Starts without a snapshot file, on one core and on all, and with one, in turn.
fn starts(world: &World, store: &VitrineStore, effort: &Effort) -> Result<Vec<Fact>> {
    let state = world.folder.join("state");
    write_snapshot_file(world, store, &state)?;
    let unpinned = world.with_all_cores();
    let kinds = [
        (FROM_STORE, world, None),
        (FROM_STORE, &unpinned, None),
        (FROM_FILE, world, Some(state.as_path())),
    ];
    let mut started = [const { Vec::new() }; 3];
    let mut made = started.clone();
    let mut resident = started.clone();
    let mut peaks = started.clone();
    for _ in 0..effort.repetitions {
        for (index, (made_from, world, state)) in kinds.into_iter().enumerate() {
            let server = start(world, store, state)?;
            started[index].push(server.started_in.as_secs_f64() * 1e3);
            let Some(first) = snapshots(&server).into_iter().next() else {
                bail!("the server doesn't say where its catalog is from");
            };
            if first.made_from != made_from {
                bail!(
                    "a catalog of `{}` instead of `{made_from}`",
                    first.made_from
                );
            }
            made[index].push(first.took_milliseconds);
            std::thread::sleep(SETTLES_IN);
            let memory = process::resident(server.process.id())?;
            resident[index].push(memory.now);
            peaks[index].push(memory.peak);
        }
    }
    let rows = [
        ("Start to first 200", started, "ms"),
        ("… of which making the catalog", made, "ms"),
        ("Memory at rest after it", resident, "MiB"),
        ("Peak memory of it", peaks, "MiB"),
    ];
    let all = |(what, [store, all_cores, file], unit): (&str, [Vec<f64>; 3], &'static str)| {
        [
            fact(format!("{what}, from the {FROM_STORE}"), store, unit),
            fact(
                format!("{what}, from the {FROM_STORE}, all cores"),
                all_cores,
                unit,
            ),
            fact(format!("{what}, from the {FROM_FILE}"), file, unit),
        ]
    };
    Ok(rows.into_iter().flat_map(all).collect())
}

/// Lets a server write its snapshot file, and ends it.
fn write_snapshot_file(world: &World, store: &VitrineStore, state: &Path) -> Result<()> {
    let server = start(world, store, Some(state))?;
    wait_until("a snapshot file is written", || {
        let said = server.process.said();
        said.contains("the snapshot file is written")
    })
}

/// Waits, within reason, until something is so.
///
/// # Errors
/// If it doesn't come to be so, or Ctrl-C comes first.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE || INTERRUPTED.load(Ordering::Relaxed) {
            bail!("waited in vain until {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A snapshot that the server says it has swapped in.
pub struct Swapped {
    made_from: String,
    took_milliseconds: f64,
}

/// All that it has swapped in, the first one first.
pub fn snapshots(server: &Running) -> Vec<Swapped> {
    let said = server.process.said();
    let lines = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let swapped = lines.filter_map(|line| {
        let fields = &line["fields"];
        Some(Swapped {
            made_from: fields["made_from"].as_str()?.to_owned(),
            took_milliseconds: fields["took_milliseconds"].as_f64()?,
        })
    });
    swapped.collect()
}

/// The snapshots after the first, which must all be made of the one before and what changed.
fn changes(server: &Running) -> Result<Vec<Swapped>> {
    let swapped: Vec<Swapped> = snapshots(server).into_iter().skip(1).collect();
    let other = swapped.iter().find(|swap| swap.made_from != FROM_CHANGES);
    match other {
        Some(other) => bail!(
            "a revision was made of `{}` instead of `{FROM_CHANGES}`",
            other.made_from
        ),
        None => Ok(swapped),
    }
}

/// Measures a revision of some changed products.
fn revision(
    world: &World,
    server: &Running,
    store: &VitrineStore,
    revisions: &Revisions,
    effort: &Effort,
) -> Result<Vec<Fact>> {
    std::thread::sleep(SETTLES_IN);
    let (mut seen, mut peaks, mut growth) = (Vec::new(), Vec::new(), Vec::new());
    for repetition in 0..effort.repetitions.max(2) {
        process::forget_peak(server.process.id())?;
        let before = process::resident(server.process.id())?;
        let file = revisions.file(repetition as usize);
        seen.push(revision::time_to_be_seen(world, server, store, file)?);
        let after = process::resident(server.process.id())?;
        peaks.push(after.peak);
        growth.push(after.peak - before.now);
    }
    let made = changes(server)?
        .iter()
        .map(|swap| swap.took_milliseconds)
        .collect();
    let what = |what: &str| format!("{CHANGED} changed products: {what}");
    Ok(vec![
        fact(what("commit to visible"), seen, "ms"),
        fact(what("… of which making the snapshot"), made, "ms"),
        fact(what("peak memory while it is swapped in"), peaks, "MiB"),
        fact(what("… above what was held before"), growth, "MiB"),
    ])
}

/// Single products at fixed times: with nothing else at work; while a revision a second goes to a store that the
/// server doesn't see, so that the loads cost the machine the same; and while it goes to its own.
fn swaps(
    world: &World,
    server: &Running,
    [other, live]: [&VitrineStore; 2],
    revisions: &Revisions,
    effort: &Effort,
) -> Result<Vec<Fact>> {
    let stores = [None, Some(other), Some(live)];
    let mut p99 = [Vec::new(), Vec::new(), Vec::new()];
    let mut failed = Vec::new();
    let before = snapshots(server).len();
    for repetition in 0..effort.repetitions {
        for turn in 0..stores.len() {
            let index = (turn + repetition as usize) % stores.len();
            // What the turn before brought is swapped in by then.
            std::thread::sleep(SETTLES_IN * 2);
            let loads = stores[index].map(|store| Loads::start(world, store, revisions));
            let mut requests = Work::Product.requests(world, server);
            let plan = Plan {
                address: server.address,
                connections: 64,
                pace: Pace::Open(effort.product_rate / 4.0),
                duration: Duration::from_secs_f64(effort.seconds * 3.0),
                most: u64::MAX,
                expected: 200,
                may_spin: world.has_spare_core,
                next: &mut requests,
            };
            let sample = sample(server, "swaps", repetition, plan);
            loads.map_or(Ok(()), Loads::end)?;
            let sample = sample?;
            p99[index].push(sample.p99_microseconds);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            failed.push(sample.failed as f64);
        }
    }
    let swapped = changes(server)?.len() + 1 - before;
    if swapped == 0 {
        bail!("no revision was swapped in while requests were measured");
    }
    let ratios = |base: &[f64]| -> Vec<f64> {
        p99[2]
            .iter()
            .zip(base)
            .map(|(swaps, base)| swaps / base)
            .collect()
    };
    let (to_quiet, to_loads) = (ratios(&p99[0]), ratios(&p99[1]));
    let [quiet, loads, swaps] = p99;
    let swapped = f64::from(u32::try_from(swapped).context("too many revisions")?);
    Ok(vec![
        fact("Product p99, nothing else at work", quiet, "µs"),
        fact("Product p99, loads into another store", loads, "µs"),
        fact("Product p99, a revision every second", swaps, "µs"),
        fact("… times as long as with nothing else at work", to_quiet, ""),
        fact("… times as long as with loads elsewhere", to_loads, ""),
        fact(
            "… revisions swapped in, all by their changes",
            vec![swapped],
            "",
        ),
        fact("… failed answers", failed, ""),
    ])
}
