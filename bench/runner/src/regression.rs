//! Has Vitrine become slower? Two builds of it beside each other: CPU time, and instructions where valgrind is.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::check;
use crate::contender::{self, Running, StartOptions, VitrineStore, start_vitrine};
use crate::load::{self, Pace, Plan};
use crate::measure::{self, Effort, median};
use crate::report::{ratio, spread};
use crate::work::Work;
use crate::world::{World, find};

/// Work whose instructions are counted, and the number of requests: so many that start and end, whose instructions
/// differ by hundreds of thousands from run to run, are below a hundredth.
const COUNTED: [(Work, u64); 4] = [
    (Work::Product, 2_000),
    (Work::Page, 2_000),
    (Work::NewPage, 500),
    (Work::NotModified, 2_000),
];

/// Compares `world.vitrine` with an older build; tells whether it needs at most `tolerance` times as much.
///
/// # Errors
/// If one of them can't be measured, or bodies differ.
pub fn run(world: &World, older: &Path, effort: &Effort, tolerance: f64) -> Result<bool> {
    let kinds = [&contender::ALL[0], &contender::OLDER];
    let programs = [world.vitrine.as_path(), older];
    let stores = [
        VitrineStore::make(world, programs[0], "vitrine.db")?,
        VitrineStore::make(world, programs[1], "older.db")?,
    ];
    let start = |index: usize, valgrind: Option<&Path>| {
        start_vitrine(
            kinds[index],
            world,
            programs[index],
            &stores[index],
            StartOptions {
                valgrind,
                ..StartOptions::default()
            },
        )
    };
    let mut servers = [start(0, None)?, start(1, None)?];
    let turns = check::compare(world, &mut servers)?;
    let samples = measure::closed(world, &servers, &turns, effort)?;
    let page_tag = servers[0].page_tag.clone();
    drop(servers);

    println!("| Work | measured by | times the older build's |\n| --- | --- | --- |");
    let mut is_good = true;
    for work in Work::ALL {
        let of = |name: &str| -> Vec<f64> {
            let own = samples
                .iter()
                .filter(|sample| sample.work == work.name() && sample.server == name);
            own.map(|sample| sample.cpu_microseconds).collect()
        };
        let pairs = of(kinds[0].name).into_iter().zip(of(kinds[1].name));
        let ratios: Vec<f64> = pairs.map(|(new, old)| new / old).collect();
        if ratios.is_empty() {
            continue;
        }
        let least = ratios.iter().copied().fold(f64::NAN, f64::min);
        let greatest = ratios.iter().copied().fold(f64::NAN, f64::max);
        let middle = median(ratios);
        is_good &= middle <= tolerance;
        println!(
            "| {} | CPU time | {} |",
            work.title(),
            spread((middle, least, greatest))
        );
    }
    let Some(valgrind) = find("valgrind", &[]) else {
        eprintln!("SKIPPED: instructions, since there is no valgrind");
        return Ok(is_good);
    };
    for (work, requests) in COUNTED {
        let mut counted = [0.0; 2];
        for (index, counted) in counted.iter_mut().enumerate() {
            let count = |requests| {
                let mut server = start(index, Some(&valgrind))?;
                server.page_tag.clone_from(&page_tag);
                instructions(world, server, work, requests)
            };
            // What starting and ending take stands in both.
            *counted = count(requests * 2)? - count(requests)?;
        }
        let ratio_of_both = counted[0] / counted[1];
        is_good &= ratio_of_both <= tolerance;
        println!(
            "| {} | instructions | {} |",
            work.title(),
            ratio(ratio_of_both)
        );
    }
    Ok(is_good)
}

/// Instructions from the server's start to its end, with so many requests between.
fn instructions(world: &World, server: Running, work: Work, requests: u64) -> Result<f64> {
    let mut next = work.requests(world, &server);
    load::run(Plan {
        address: server.address,
        connections: 1,
        pace: Pace::Closed,
        duration: std::time::Duration::from_secs(600),
        most: requests,
        expected: work.expected(),
        may_spin: false,
        next: &mut next,
    })?;
    drop(next);
    let said = server.process.end();
    let count = said
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let (_, count) = count.context("valgrind doesn't say how many instructions there were")?;
    Ok(count.trim().parse()?)
}
