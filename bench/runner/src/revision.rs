//! Small revisions for a running Vitrine: their files, loading them, and when they are seen.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::contender::{Running, VitrineStore};
use crate::http;
use crate::load::INTERRUPTED;
use crate::world::World;

/// Number of products that a revision changes.
pub const CHANGED: usize = 100;
/// Timeout of a revision's being seen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Two files of the same products, spread over the catalog, each with other names: loaded in turn, each is a
/// revision.
pub struct Revisions([PathBuf; 2]);

impl Revisions {
    /// Writes them.
    ///
    /// # Errors
    /// If the products can't be read or the files not be written.
    pub fn make(world: &World) -> Result<Self> {
        let step = (world.asked_for.len() / CHANGED).max(1);
        let spread = world.asked_for.iter().step_by(step).take(CHANGED);
        let codes: HashSet<&str> = spread.map(String::as_str).collect();
        let files = ["a", "b"].map(|mark| world.folder.join(format!("revision-{mark}.ndjson")));
        let mut out = [
            BufWriter::new(File::create(&files[0])?),
            BufWriter::new(File::create(&files[1])?),
        ];
        for line in BufReader::new(File::open(&world.file)?).lines() {
            let line = line?;
            // Cheaper than parsing a million lines: the code stands between quotes.
            let rest = line.split_once("\"code\":\"").map(|(_, rest)| rest);
            let code = rest.and_then(|rest| rest.split('"').next());
            if code.is_some_and(|code| codes.contains(code)) {
                let mut product: Value = serde_json::from_str(&line)?;
                for (out, name) in out.iter_mut().zip(["changed a", "changed b"]) {
                    product["name"] = name.into();
                    writeln!(out, "{product}")?;
                }
            }
        }
        for mut out in out {
            out.flush()?;
        }
        Ok(Self(files))
    }

    /// The file of the `number`th revision.
    pub fn file(&self, number: usize) -> &Path {
        &self.0[number % 2]
    }
}

/// Loader: Vitrine, on the servers' core, whenever nothing else wants that. On the load generator's, it would
/// hold that up, and answers would seem late.
struct Loader {
    program: PathBuf,
    cores: String,
}

impl Loader {
    fn of(world: &World) -> Self {
        Self {
            program: world.vitrine.clone(),
            cores: world.server_cores.clone(),
        }
    }

    fn start(&self, store: &VitrineStore, file: &Path, report: Stdio) -> Result<Child> {
        let mut command = Command::new("chrt");
        command.args(["--idle", "0", "taskset", "--cpu-list", &self.cores]);
        command.arg(&self.program).args(["--store", &store.url]);
        command
            .args(["load", "--json", "--mode", "merge"])
            .arg(file);
        let command = command.stdin(Stdio::null()).stdout(report);
        command.spawn().context("can't start a load")
    }
}

/// Loads a file whenever nothing else wants the servers' core. Returns the report.
///
/// # Errors
/// If the load fails.
pub fn load(world: &World, store: &VitrineStore, file: &Path) -> Result<Value> {
    let load = Loader::of(world).start(store, file, Stdio::piped())?;
    let output = load.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "the load of {} ended with {}",
            file.display(),
            output.status
        );
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Milliseconds from the commit of a load, which is when its report begins to come, until the server shows what it
/// brought; 0 where it did so before.
///
/// # Errors
/// If the load fails, or what it brought isn't seen in time.
pub fn time_to_be_seen(
    world: &World,
    server: &Running,
    store: &VitrineStore,
    file: &Path,
) -> Result<f64> {
    let path = format!("/v2/product/{}", world.asked_for[0]);
    let name = || -> Result<Value> {
        let answer = http::fetch(server.address, &path, &[("X-Api-Key", &server.key)])?;
        Ok(serde_json::from_slice::<Value>(&answer.decoded()?)?["name"].take())
    };
    let before = name()?;
    let mut load = Loader::of(world).start(store, file, Stdio::piped())?;
    let mut report = load.stdout.take().context("no output of the load")?;
    let committed = std::thread::spawn(move || {
        let first = report.read_exact(&mut [0]);
        let committed = Instant::now();
        let rest = report.read_to_end(&mut Vec::new());
        first.and(rest).map(|_| committed)
    });
    let start = Instant::now();
    let seen = loop {
        match name() {
            Ok(now) if now == before => {}
            Ok(_) => break Ok(Instant::now()),
            Err(error) => break Err(error),
        }
        if start.elapsed() > PATIENCE || INTERRUPTED.load(Ordering::Relaxed) {
            let _ = load.kill();
            break Err(anyhow::anyhow!("the revision wasn't seen in time"));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let status = load.wait()?;
    let committed = committed.join();
    let seen = seen?;
    if !status.success() {
        bail!("the load of {} ended with {status}", file.display());
    }
    let Ok(committed) = committed else {
        bail!("the reader of the load's report panicked");
    };
    Ok(seen.saturating_duration_since(committed?).as_secs_f64() * 1e3)
}

/// A revision every second, on a thread of its own.
pub struct Loads {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Loads {
    /// Starts to load into the store.
    pub fn start(world: &World, store: &VitrineStore, revisions: &Revisions) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (loader, store) = (Loader::of(world), store.clone());
        let files = revisions.0.clone();
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || keep_loading(&loader, &store, &files, &told));
        Self { stop, thread }
    }

    /// Ends it after the load under way.
    ///
    /// # Errors
    /// If a load failed.
    pub fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        joined.map_err(|_| anyhow::anyhow!("the loads panicked"))?
    }
}

fn keep_loading(
    loader: &Loader,
    store: &VitrineStore,
    files: &[PathBuf; 2],
    stop: &AtomicBool,
) -> Result<()> {
    for file in files.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let started = Instant::now();
        let status = loader.start(store, file, Stdio::null())?.wait()?;
        if !status.success() {
            bail!("the load of {} ended with {status}", file.display());
        }
        while started.elapsed() < Duration::from_secs(1) && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}
