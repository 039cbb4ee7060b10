//! Memory of a server with many assortments, at the start and after each was asked for.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{CODES, PAGE};
use crate::contender::{self, Running, StartOptions, VitrineStore, start_vitrine};
use crate::http::{self, Client};
use crate::process;
use crate::world::{World, done};

/// Limit on the memory that 10,000 assortments need, and the stretch goal, in MB.
const LIMITS: [f64; 2] = [400.0, 150.0];

/// Timeout of memory's coming to rest.
const PATIENCE: Duration = Duration::from_secs(60);

/// Compares a server over a store with `count` assortments of 500 codes each, and a key for each, with one over the same
/// catalog without them. Returns the table of the memory.
///
/// # Errors
/// If a command fails, or an answer isn't what it should be.
pub fn measure(
    world: &World,
    without: &VitrineStore,
    codes: &[String],
    count: usize,
) -> Result<String> {
    let start = |store| {
        start_vitrine(
            &contender::ALL[0],
            world,
            &world.vitrine,
            store,
            StartOptions::default(),
        )
    };
    let before = settled(&start(without)?)?;
    let url = format!("sqlite:{}", world.folder.join("many.db").display());
    let mut keys = Vec::with_capacity(count);
    for number in 0..count {
        if number % 1_000 == 0 {
            eprintln!("assortment {number} of {count}");
        }
        keys.push(assortment(world, &url, codes, number)?);
    }
    // Last, since a plan of an edit looks at the whole catalog.
    let store = VitrineStore::make(world, &world.vitrine, "many.db")?;
    let server = start(&store)?;
    let known = settled(&server)?;
    ask(&server, &keys)?;
    let asked = settled(&server)?;
    let [gate, stretch] = LIMITS;
    let row = |what: &str, megabytes: f64| {
        let more = megabytes - before;
        let mark = if more <= gate { "" } else { "**" };
        format!("| {what} | +{gate} MB | +{stretch} MB | {mark}+{more:.0} MB{mark} |\n")
    };
    Ok(format!(
        "\n{count} assortments of {CODES} codes each; the server's resident memory without them: {before:.0} MB\n\n\
         | With them | target | stretch | measured |\n| --- | --- | --- | --- |\n{}{}",
        row("at the start", known),
        row("after each key asked once for a page of 500", asked),
    ))
}

/// Creates an assortment of codes spread over the catalog. Returns a key that has it.
fn assortment(world: &World, store: &str, codes: &[String], number: usize) -> Result<String> {
    let step = codes.len() / CODES;
    let mut own: Vec<&String> = codes
        .iter()
        .skip(number % step)
        .step_by(step)
        .take(CODES)
        .collect();
    // Half of them elsewhere, so that no two assortments are alike.
    for (index, code) in own.iter_mut().enumerate().step_by(2) {
        *code = &codes[(number * 7_919 + index * 104_729) % codes.len()];
    }
    let rules = json!({"allow": [{"codes": own}]});
    let file = world.folder.join("many.json");
    std::fs::write(&file, rules.to_string())?;
    let name = format!("many-{number}");
    let command = |words: &[&str]| {
        let mut command = Command::new(&world.vitrine);
        command.args(["--store", store]).args(words);
        command
    };
    done(command(&["assortments", "set", &name]).arg(&file))?;
    let mut create = command(&[
        "keys",
        "create",
        "--json",
        "--label",
        "many",
        "--assortment",
        &name,
    ]);
    let created: Value = serde_json::from_str(&done(&mut create)?)?;
    let key = created["key"].as_str().context("no key was created")?;
    Ok(key.to_owned())
}

/// Asks each key for a page of 500.
fn ask(server: &Running, keys: &[String]) -> Result<()> {
    let mut client = Client::connect(server.address)?;
    for key in keys {
        let http::Response { head, .. } = client.get(PAGE, &[("X-Api-Key", key)])?;
        if head.status != 200 {
            bail!("{PAGE} is answered with {}", head.status);
        }
    }
    Ok(())
}

/// Returns the server's resident memory in MB, once it didn't change for a second.
fn settled(server: &Running) -> Result<f64> {
    let mut last = 0.0;
    let since = Instant::now();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = process::resident(server.process.id())?.now * 1.048_576;
        if (now - last).abs() < 0.5 || since.elapsed() > PATIENCE {
            return Ok(now);
        }
        last = now;
    }
}
