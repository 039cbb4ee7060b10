//! The changes feed: what a copy costs the server that it follows, and what ten thousand clients cost that wait.

pub mod commits;
mod copies;
mod feed;
mod waiters;
mod waits;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::contender::{self, Running, StartOptions, VitrineStore, start_vitrine};
use crate::http;
use crate::load::INTERRUPTED;
use crate::measure::median;
use crate::report::{number, spread};
use crate::revision;
use crate::world::{World, renamed};

/// Keys of the waiting clients: one may have a quarter of the waits.
const KEYS: usize = 5;
/// Loads that fill the journal, and the part of all products that each changes: one of so many.
const LOADS: u64 = 6;
const PART: u64 = 10;
/// Timeout of whatever is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// Options of the measurement.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of products in the catalog: 2,000 or more.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    products: u64,
    /// Number of clients that wait.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    waits: usize,
    /// Number of repetitions.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repetitions: u32,
    /// Number of commits of one measurement.
    #[arg(long, value_name = "N", default_value_t = 3)]
    commits: u32,
    /// Seconds between commits.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    interval: f64,
    /// Products a second that others ask for meanwhile.
    #[arg(long, value_name = "N", default_value_t = 5_000.0)]
    product_rate: f64,
    /// Let the server use all cores, those of its clients too.
    #[arg(long)]
    all_cores: bool,
    /// Few products, clients and little time: shows that all works, and the figures mean nothing.
    #[arg(long)]
    quick: bool,
}

/// A figure with its limits.
struct Row {
    what: String,
    target: &'static str,
    stretch: &'static str,
    measured: String,
    is_met: bool,
}

/// Results: figures with limits, and further ones.
#[derive(Default)]
struct Findings {
    rows: Vec<Row>,
    others: Vec<(String, String)>,
}

impl Findings {
    fn row(
        &mut self,
        what: impl Into<String>,
        (target, stretch): (&'static str, &'static str),
        measured: String,
        is_met: bool,
    ) {
        self.rows.push(Row {
            what: what.into(),
            target,
            stretch,
            measured,
            is_met,
        });
    }

    fn other(&mut self, what: impl Into<String>, measured: String) {
        self.others.push((what.into(), measured));
    }

    fn markdown(&self) -> String {
        let mut out =
            String::from("| What | target | stretch | measured |\n| --- | --- | --- | --- |\n");
        for row in &self.rows {
            let mark = if row.is_met { "" } else { "**" };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {mark}{}{mark} |",
                row.what, row.target, row.stretch, row.measured
            );
        }
        out.push_str("\n| Further | measured |\n| --- | --- |\n");
        for (what, measured) in &self.others {
            let _ = writeln!(out, "| {what} | {measured} |");
        }
        out
    }
}

/// A server over a store of its own, and what is needed to ask it.
struct Bench<'a> {
    arguments: &'a Arguments,
    world: &'a World,
    store: VitrineStore,
    keys: Vec<String>,
    server: Running,
    admin: std::net::SocketAddr,
}

/// Measures all of it, prints the tables and writes them into `target/bench/changes.md`.
///
/// # Errors
/// If a command fails, or an answer isn't what it should be.
pub fn run(root: &Path, vitrine: &Path, mut arguments: Arguments) -> Result<()> {
    if arguments.quick {
        arguments.products = arguments.products.min(2_000);
        arguments.waits = arguments.waits.min(100);
        arguments.repetitions = 1;
        arguments.commits = 2;
        arguments.interval = 1.0;
        arguments.product_rate = 500.0;
    }
    // A descriptor for each client, and some.
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
    eprintln!("making {} products", arguments.products);
    let mut world = World::make(root, vitrine, arguments.products, 0)?;
    if arguments.all_cores {
        world = world.with_all_cores();
    }
    let bench = Bench::start(&arguments, &world)?;
    let mut findings = Findings::default();
    let token = copies::bootstrap(&bench, &mut findings)?;
    let token = copies::page_of_changes(&bench, &token, &mut findings)?;
    copies::journal(&bench, &mut findings)?;
    waits::measure(&bench, &token, &mut findings)?;
    let [machine, versions] = world.machine()?;
    let markdown = format!(
        "{}  \n{machine}  \n{versions}\n\n{}",
        bench.setting()?,
        findings.markdown()
    );
    print!("{markdown}");
    std::fs::write(root.join("target/bench/changes.md"), markdown)?;
    Ok(())
}

impl<'a> Bench<'a> {
    /// Fills the store, journal included, and starts the server.
    fn start(arguments: &'a Arguments, world: &'a World) -> Result<Self> {
        eprintln!("loading them");
        let store = VitrineStore::make(world, &world.vitrine, "vitrine.db")?;
        let mut keys = vec![store.key.clone()];
        while keys.len() < KEYS {
            keys.push(store.make_key(world)?);
        }
        let part = world.folder.join("part.ndjson");
        write_part(&world.file, &part)?;
        let changed = world.folder.join("changed.ndjson");
        for number in 1..=LOADS {
            eprintln!("changing a {PART}th of them, {number} of {LOADS}");
            renamed(&part, &changed, || format!("{number} "))?;
            revision::load(world, &store, &changed)?;
        }
        let max_waits = arguments.waits.to_string();
        let max_connections = (arguments.waits + 2_500).to_string();
        let options = StartOptions {
            arguments: &[
                "--max-waits",
                &max_waits,
                "--max-connections",
                &max_connections,
            ],
            ..StartOptions::default()
        };
        let server = start_vitrine(&contender::ALL[0], world, &world.vitrine, &store, options)?;
        let said = server.process.said();
        let admin = said.split_once("admin port on ").map(|(_, rest)| rest);
        let admin =
            admin.and_then(|rest| rest.split(|c: char| c == '"' || c.is_whitespace()).next());
        let admin = admin
            .context("the server doesn't tell its admin port")?
            .parse()?;
        let bench = Self {
            arguments,
            world,
            store,
            keys,
            server,
            admin,
        };
        bench.wait_for("the journal", || {
            Ok(bench.metric("vitrine_changes_entries")? > 0.0)
        })?;
        Ok(bench)
    }

    /// Describes the effort.
    fn setting(&self) -> Result<String> {
        let Arguments {
            waits,
            repetitions,
            commits,
            interval,
            ..
        } = self.arguments;
        Ok(format!(
            "{} products; {} clients with {KEYS} keys wait; medians of {repetitions} repetitions of {commits} commits, one every {interval} s; the server on {}, its clients on {}.",
            number(as_float(usize::try_from(self.world.products)?)),
            number(as_float(*waits)),
            if self.arguments.all_cores {
                "all cores"
            } else {
                "one core"
            },
            if self.arguments.all_cores {
                "one of them"
            } else {
                self.world.load_generator_cores()
            },
        ))
    }

    /// Returns a metric of the server.
    fn metric(&self, name: &str) -> Result<f64> {
        let page = http::fetch(self.admin, "/metrics", &[])?.decoded()?;
        let page = String::from_utf8(page)?;
        let value = page
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value
            .with_context(|| format!("no metric {name}"))?
            .parse()?)
    }

    fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !is_so()? {
            if begun.elapsed() > PATIENCE || INTERRUPTED.load(Ordering::Relaxed) {
                bail!("waited in vain for {what}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn as_float(count: usize) -> f64 {
    count as f64
}

/// Returns the median with the least and the greatest.
fn spread_of(ratios: &[f64]) -> String {
    let least = ratios.iter().copied().fold(f64::NAN, f64::min);
    let greatest = ratios.iter().copied().fold(f64::NAN, f64::max);
    spread((median(ratios.to_vec()), least, greatest))
}

/// Writes one of `PART` products.
fn write_part(from: &Path, to: &PathBuf) -> Result<()> {
    let mut out = BufWriter::new(File::create(to)?);
    for (number, line) in (0_u64..).zip(BufReader::new(File::open(from)?).lines()) {
        if number % PART == 0 {
            writeln!(out, "{}", line?)?;
        }
    }
    Ok(out.flush()?)
}
