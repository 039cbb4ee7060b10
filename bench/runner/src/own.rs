//! What Vitrine alone is asked: how it starts, what it holds, and what a new revision does to it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::contender::{self, Running, VitrineStore, start_vitrine};
use crate::http;
use crate::load::{INTERRUPTED, Pace, Plan};
use crate::measure::{Effort, sample};
use crate::process;
use crate::report::Fact;
use crate::work::Work;
use crate::world::{World, done};

/// How many products a revision changes.
const CHANGED: usize = 100;
/// How long a revision may take to be seen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures all of it. No other server should run.
///
/// # Errors
/// If a command fails, or a revision isn't seen.
pub fn measure(world: &World, key: &str, effort: &Effort) -> Result<Vec<Fact>> {
    let live = copy(world, key, "live.db")?;
    let other = copy(world, key, "other.db")?;
    let revisions = [revision(world, "a")?, revision(world, "b")?];
    let (mut started, mut resident, mut built) = (Vec::new(), Vec::new(), Vec::new());
    let mut server = start(world, &live)?;
    for repetition in 0..effort.repetitions {
        if repetition > 0 {
            drop(server);
            server = start(world, &live)?;
        }
        started.push(server.started_in.as_secs_f64() * 1e3);
        // What a start needs and gives back is no memory at rest.
        std::thread::sleep(Duration::from_secs(1));
        resident.push(process::memory(&[server.process.id()])?);
        built.push(build_time(&server)?);
    }
    let mut seen = Vec::new();
    for repetition in 0..effort.repetitions.max(2) {
        let file = &revisions[repetition as usize % 2];
        seen.push(time_to_be_seen(world, &server, &live, file)?);
    }
    let mut facts = vec![
        fact("Start to first 200", started, "ms"),
        fact("Memory at rest", resident, "MiB"),
        fact("Full build of the snapshot", built, "ms"),
        fact(
            "100 changed products: end of the load to visible",
            seen,
            "ms",
        ),
    ];
    facts.extend(swaps(world, &server, [&other, &live], &revisions, effort)?);
    Ok(facts)
}

fn fact(what: &str, values: Vec<f64>, unit: &'static str) -> Fact {
    Fact {
        what: what.to_owned(),
        values,
        unit,
    }
}

fn start(world: &World, store: &VitrineStore) -> Result<Running> {
    start_vitrine(&contender::ALL[0], world, &world.vitrine, store, None)
}

/// A copy of the store that was loaded first, with its keys.
fn copy(world: &World, key: &str, name: &str) -> Result<VitrineStore> {
    let original = format!("sqlite:{}", world.folder.join("vitrine.db").display());
    let file = world.folder.join(name);
    let mut backup = Command::new(&world.vitrine);
    done(backup.args(["--store", &original, "backup"]).arg(&file))?;
    Ok(VitrineStore {
        url: format!("sqlite:{}", file.display()),
        key: key.to_owned(),
    })
}

/// A file of some products, spread over the catalog, with another name.
fn revision(world: &World, mark: &str) -> Result<PathBuf> {
    let step = (world.asked_for.len() / CHANGED).max(1);
    let codes: Vec<&String> = world.asked_for.iter().step_by(step).take(CHANGED).collect();
    let mut lines = String::new();
    for line in std::fs::read_to_string(&world.file)?.lines() {
        // Cheaper than reading all of a million lines: the code stands between quotes.
        let code = line
            .split("\"code\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        if code.is_some_and(|code| codes.iter().any(|own| *own == code)) {
            let mut product: Value = serde_json::from_str(line)?;
            product["name"] = format!("changed {mark}").into();
            let _ = writeln!(lines, "{product}");
        }
    }
    let file = world.folder.join(format!("revision-{mark}.ndjson"));
    std::fs::write(&file, lines)?;
    Ok(file)
}

/// What the server says its first build took.
fn build_time(server: &Running) -> Result<f64> {
    let said = server.process.said();
    let mut lines = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .find_map(|line| line["fields"]["took_milliseconds"].as_f64())
        .context("the server doesn't say how long its build took")
}

/// A load into the store, beside everything else and with the least priority.
fn load(world: &World, store: &VitrineStore, file: &Path) -> Result<Child> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(&world.vitrine);
    command.args(["--store", &store.url, "load", "--json", "--mode", "merge"]);
    let command = command.arg(file).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().context("can't start a load")
}

/// Milliseconds from the end of a load, which has committed, until the server shows what it brought; 0 where it
/// did so before.
fn time_to_be_seen(
    world: &World,
    server: &Running,
    store: &VitrineStore,
    file: &Path,
) -> Result<f64> {
    let code = &world.asked_for[0];
    let path = format!("/v2/product/{code}");
    let name = || -> Result<Value> {
        let answer = http::fetch(server.address, &path, &[("X-Api-Key", &server.key)])?;
        Ok(serde_json::from_slice::<Value>(&answer.decoded()?)?["name"].take())
    };
    let before = name()?;
    let mut load = load(world, store, file)?;
    let start = Instant::now();
    let (mut ended, mut seen) = (None, None);
    while ended.is_none() || seen.is_none() {
        if ended.is_none()
            && let Some(status) = load.try_wait()?
        {
            if !status.success() {
                bail!("the load of {} ended with {status}", file.display());
            }
            ended = Some(Instant::now());
        }
        if seen.is_none() && name()? != before {
            seen = Some(Instant::now());
        }
        if start.elapsed() > PATIENCE || INTERRUPTED.load(Ordering::Relaxed) {
            let _ = load.kill();
            let _ = load.wait();
            bail!("the revision wasn't seen in time");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let waited = seen
        .zip(ended)
        .map(|(seen, ended)| seen.saturating_duration_since(ended));
    Ok(waited.unwrap_or_default().as_secs_f64() * 1e3)
}

/// Single products at fixed times while a revision comes every second: first to a store that the server doesn't
/// see, so that the loads cost the machine the same, then to its own.
fn swaps(
    world: &World,
    server: &Running,
    stores: [&VitrineStore; 2],
    revisions: &[PathBuf; 2],
    effort: &Effort,
) -> Result<Vec<Fact>> {
    let mut p99 = [Vec::new(), Vec::new()];
    let (mut ratios, mut failed) = (Vec::new(), Vec::new());
    for repetition in 0..effort.repetitions {
        for (index, store) in stores.into_iter().enumerate() {
            let stop = AtomicBool::new(false);
            let sample = std::thread::scope(|scope| {
                let loads = scope.spawn(|| keep_loading(world, store, revisions, &stop));
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
                stop.store(true, Ordering::Relaxed);
                let loads = loads
                    .join()
                    .map_err(|_| anyhow::anyhow!("the loads panicked"))?;
                loads.and(sample)
            })?;
            p99[index].push(sample.p99_microseconds);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            failed.push(sample.failed as f64);
        }
        let ratio = p99[1]
            .last()
            .zip(p99[0].last())
            .map(|(swaps, quiet)| swaps / quiet);
        ratios.extend(ratio);
    }
    let [quiet, swapped] = p99;
    Ok(vec![
        fact("Product p99, loads into another store", quiet, "µs"),
        fact("Product p99, a revision every second", swapped, "µs"),
        fact("… times as long as without", ratios, ""),
        fact("… failed answers", failed, ""),
    ])
}

fn keep_loading(
    world: &World,
    store: &VitrineStore,
    revisions: &[PathBuf; 2],
    stop: &AtomicBool,
) -> Result<()> {
    for file in revisions.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let started = Instant::now();
        let status = load(world, store, file)?.wait()?;
        if !status.success() {
            bail!("the load of {} ended with {status}", file.display());
        }
        while started.elapsed() < Duration::from_secs(1) && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}
