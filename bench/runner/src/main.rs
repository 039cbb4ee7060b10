//! Measures Vitrine beside what else could serve the same catalog; `ci/bench` is the way to call it.

mod assortments;
mod changes;
mod check;
mod contender;
mod http;
mod load;
mod measure;
mod own;
mod process;
mod regression;
mod replaced;
mod report;
mod revision;
mod webhooks;
mod work;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use contender::Kind;
use measure::Effort;
use report::Results;
use world::World;

/// With more products than this only Vitrine and the web server are measured, unless others are asked for: filling
/// their databases and starting them takes longer than measuring.
const MAX_FOR_SERVICES: u64 = 100_000;

/// Measure Vitrine beside other servers of the same catalog; bench/README.md says how and why so.
#[derive(Debug, Parser)]
#[command(name = "ci/bench")]
struct Arguments {
    /// Number of products in the catalog: 2,000 or more.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    products: u64,
    /// Random letters that each product's name has more, for pages that compress worse.
    #[arg(long, value_name = "N", default_value_t = 0)]
    letters: usize,
    /// Number of repetitions.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repetitions: u32,
    /// Seconds of one measurement.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,
    /// Connections of the closed loop.
    #[arg(long, value_name = "N", default_value_t = 8)]
    connections: usize,
    /// Products a second of the open loop.
    #[arg(long, value_name = "N", default_value_t = 20_000.0)]
    product_rate: f64,
    /// Pages of 50 a second of the open loop.
    #[arg(long, value_name = "N", default_value_t = 1_000.0)]
    page_rate: f64,
    /// Leave this server out; give it once for each.
    #[arg(long, value_name = "SERVER")]
    skip: Vec<String>,
    /// Measure only these servers beside Vitrine; give it once for each. With more than 100,000 products the
    /// services are measured only if they are named so.
    #[arg(long, value_name = "SERVER")]
    only: Vec<String>,
    /// Few products and little time, and leave out what the machine has no tools for: shows that all
    /// works, and the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Compare with this older build of Vitrine alone, and fail where more is needed than before.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["skip", "only"])]
    older: Option<PathBuf>,
    /// With `--older`: how many times as much is no failure.
    #[arg(long, value_name = "TIMES", default_value_t = 1.10)]
    tolerance: f64,
    /// The project's folder.
    #[arg(long, value_name = "FOLDER", default_value = ".", hide = true)]
    root: PathBuf,
    #[command(subcommand)]
    part: Option<Part>,
}

/// A part that is measured instead of everything.
#[derive(Debug, Subcommand)]
enum Part {
    /// Measure the changes feed of Vitrine alone.
    Changes(changes::Arguments),
    /// Measure deliveries to webhook endpoints.
    Webhooks(webhooks::Arguments),
    /// Measure requests of keys that have assortments.
    Assortments(assortments::Arguments),
}

fn main() -> Result<ExitCode> {
    ctrlc::set_handler(|| load::INTERRUPTED.store(true, Ordering::Relaxed))?;
    let mut arguments = Arguments::parse();
    if arguments.quick {
        arguments.products = arguments.products.min(2_000);
        arguments.repetitions = 1;
        arguments.seconds = 0.3;
        arguments.product_rate = 2_000.0;
        arguments.page_rate = 100.0;
    }
    let root = std::fs::canonicalize(&arguments.root)?;
    let vitrine = root.join("target/release/vitrine");
    if let Some(part) = arguments.part {
        match part {
            Part::Changes(own) => changes::run(&root, &vitrine, own)?,
            Part::Webhooks(own) => webhooks::run(&root, &vitrine, own)?,
            Part::Assortments(own) => assortments::run(&root, &vitrine, own)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = wanted(&arguments)?;
    let world = World::make(&root, &vitrine, arguments.products, arguments.letters)?;
    let effort = Effort {
        repetitions: arguments.repetitions,
        seconds: arguments.seconds,
        connections: arguments.connections,
        product_rate: arguments.product_rate,
        page_rate: arguments.page_rate,
    };
    if let Some(older) = &arguments.older {
        let older = std::fs::canonicalize(older)?;
        let is_good = regression::run(&world, &older, &effort, arguments.tolerance)?;
        if !is_good {
            eprintln!(
                "more than {} times as much is needed as before",
                arguments.tolerance
            );
        }
        return Ok(ExitCode::from(u8::from(!is_good)));
    }
    let results = run(&world, &wanted, effort, !arguments.quick)?;
    let folder = root.join("target/bench");
    let markdown = results.markdown();
    print!("{markdown}");
    std::fs::write(folder.join("results.md"), &markdown)?;
    std::fs::write(
        folder.join("results.json"),
        serde_json::to_string_pretty(&results)?,
    )?;
    eprintln!(
        "written: results.md and results.json in {}",
        folder.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// The servers that the command line asks for, Vitrine first.
fn wanted(arguments: &Arguments) -> Result<Vec<&'static Kind>> {
    let names: Vec<&str> = contender::ALL.iter().map(|kind| kind.name).collect();
    for name in arguments.skip.iter().chain(&arguments.only) {
        if !names.contains(&name.as_str()) {
            bail!(
                "there is no server `{name}`; there are {}",
                names.join(", ")
            );
        }
    }
    let has = |names: &[String], kind: &Kind| names.iter().any(|own| own == kind.name);
    let is_large = arguments.products > MAX_FOR_SERVICES;
    let is_wanted = |kind: &&Kind| {
        if kind.is_vitrine() {
            return true;
        }
        if !arguments.only.is_empty() {
            return has(&arguments.only, kind) && !has(&arguments.skip, kind);
        }
        if is_large && !kind.has_files {
            eprintln!(
                "SKIPPED: {}, since there are more than {MAX_FOR_SERVICES} products; ask for it with --only {}",
                kind.name, kind.name
            );
            return false;
        }
        !has(&arguments.skip, kind)
    };
    Ok(contender::ALL.iter().filter(is_wanted).collect())
}

fn run(world: &World, wanted: &[&'static Kind], effort: Effort, must_all: bool) -> Result<Results> {
    let mut started = contender::start_all(world, wanted, must_all)?;
    eprintln!("comparing bodies");
    let turns = check::compare(world, &mut started.servers)?;
    let servers = &started.servers;
    let closed = measure::closed(world, servers, &turns, &effort)?;
    eprintln!("open loop");
    let open = measure::open(world, servers, &effort)?;
    let mut memory = Vec::new();
    for server in servers {
        memory.push((server.kind.title, process::memory(&[server.process.id()])?));
    }
    if let Some(postgres) = &started.postgres {
        memory.push((
            "PostgreSQL for all",
            process::memory(&[postgres.process.id()])?,
        ));
    }
    let key = servers[0].key.clone();
    drop(started);
    eprintln!("Vitrine alone");
    let own = own::measure(world, &key, &effort)?;
    Ok(Results {
        setting: setting(world, &effort)?,
        products: world.products,
        effort,
        closed,
        open,
        memory,
        own,
    })
}

/// Describes the effort, the machine and the versions.
fn setting(world: &World, effort: &Effort) -> Result<Vec<String>> {
    let first = format!(
        "{} products{}; medians of {} repetitions of {} s; {} connections; servers and databases on one core, the load generator on {}.",
        report::number(f64::from(u32::try_from(world.products)?)),
        match world.letters {
            0 => String::new(),
            letters => format!(", {letters} random letters in each name"),
        },
        effort.repetitions,
        effort.seconds,
        effort.connections,
        world.load_generator_cores(),
    );
    let [machine, versions] = world.machine()?;
    Ok(vec![first, machine, versions])
}
