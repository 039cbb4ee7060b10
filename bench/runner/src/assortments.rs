//! Assortments: what a request of a key that has one costs, against the same request of a key that sees everything.

mod many;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::contender::{self, Running, StartOptions, VitrineStore, start_vitrine};
use crate::http::{self, Client};
use crate::measure::median;
use crate::process;
use crate::report::spread;
use crate::world::{World, done};

/// Number of codes of a short assortment, and of own discounts: a page of them.
const CODES: usize = 500;

/// Options of the measurement.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of products in the catalog: 2,000 or more.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    products: u64,
    /// Number of repetitions.
    #[arg(long, value_name = "N", default_value_t = 7)]
    repetitions: u32,
    /// Requests of one measurement.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    requests: u32,
    /// Number of assortments of 500 codes each whose memory is measured.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    many: usize,
    /// Few products and little time: shows that all works, and the figures mean nothing.
    #[arg(long)]
    quick: bool,
}

/// A comparison of two keys.
struct Comparison {
    what: &'static str,
    target: f64,
    stretch: &'static str,
    assortment: &'static str,
    path: &'static str,
    encoding: &'static str,
}

const PAGE: &str = "/v2/product?limit=500";

const COMPARISONS: [Comparison; 5] = [
    Comparison {
        what: "page of 500 under an assortment",
        target: 1.1,
        stretch: "1.03×",
        assortment: "wide",
        path: PAGE,
        encoding: "identity",
    },
    Comparison {
        what: "the same with 500 own discounts",
        target: 1.2,
        stretch: "1.1×",
        assortment: "discounts",
        path: PAGE,
        encoding: "identity",
    },
    Comparison {
        what: "the same, gzip, cached",
        target: 1.05,
        stretch: "1.0×",
        assortment: "discounts",
        path: PAGE,
        encoding: "gzip",
    },
    Comparison {
        what: "one product under an assortment",
        target: 1.05,
        stretch: "1.0×",
        assortment: "wide",
        path: "product",
        encoding: "identity",
    },
    Comparison {
        what: "page under an assortment of 500 codes of all, against a page of 500",
        target: 1.5,
        stretch: "1.1×",
        assortment: "codes",
        path: PAGE,
        encoding: "identity",
    },
];

/// Measures all of it, prints the table and writes it into `target/bench/assortments.md`.
///
/// # Errors
/// If a command fails, or an answer isn't what it should be.
pub fn run(root: &Path, vitrine: &Path, mut arguments: Arguments) -> Result<()> {
    if arguments.quick {
        arguments.products = arguments.products.min(2_000);
        arguments.repetitions = 1;
        arguments.requests = 20;
        arguments.many = arguments.many.min(10);
    }
    eprintln!("making {} products", arguments.products);
    let world = World::make(root, vitrine, arguments.products, 0)?;
    let store = VitrineStore::make(&world, vitrine, "vitrine.db")?;
    let codes = codes(&world.file)?;
    let keys = keys(&world, &store, &codes)?;
    let options = StartOptions::default();
    let server = start_vitrine(&contender::ALL[0], &world, vitrine, &store, options)?;
    let product = format!("/v2/product/{}", codes[codes.len() / 2]);
    let mut out = format!(
        "{} products; {} requests a measurement on one connection; server CPU, medians of {} repetitions in turn.\n\n\
         | What | target | stretch | measured |\n| --- | --- | --- | --- |\n",
        arguments.products, arguments.requests, arguments.repetitions
    );
    for comparison in &COMPARISONS {
        eprintln!("{}", comparison.what);
        let mut ratios = comparison.ratios(&server, &keys, &product, &arguments)?;
        ratios.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (ratios[0], ratios[ratios.len() - 1]);
        let middle = median(ratios);
        let mark = match middle <= comparison.target {
            true => "",
            false => "**",
        };
        let _ = writeln!(
            out,
            "| {} | {}× | {} | {mark}{}{mark} |",
            comparison.what,
            comparison.target,
            comparison.stretch,
            spread((middle, least, greatest))
        );
    }
    drop(server);
    if arguments.many > 0 {
        eprintln!("{} assortments", arguments.many);
        out.push_str(&many::measure(&world, &store, &codes, arguments.many)?);
    }
    print!("{out}");
    std::fs::write(root.join("target/bench/assortments.md"), out)?;
    Ok(())
}

/// Makes the assortments; returns a key of each, by its name.
fn keys(
    world: &World,
    store: &VitrineStore,
    codes: &[String],
) -> Result<Vec<(&'static str, String)>> {
    let discounts = codes[..CODES].iter();
    let discounts = discounts.map(|code| json!({"codes": [code], "set": "0.0125"}));
    let discounts: Vec<Value> = discounts.collect();
    let step = codes.len() / CODES;
    let spread_out: Vec<&String> = codes.iter().step_by(step).take(CODES).collect();
    let none = json!([{"categories": ["none"]}]);
    let rules = [
        ("wide", json!({"deny": none})),
        ("discounts", json!({"deny": none, "discounts": discounts})),
        ("codes", json!({"allow": [{"codes": spread_out}]})),
    ];
    let command = |words: &[&str]| {
        let mut command = Command::new(&world.vitrine);
        command.args(["--store", &store.url]).args(words);
        command
    };
    let mut keys = Vec::new();
    for (name, rules) in rules {
        let file = world.folder.join(format!("{name}.json"));
        std::fs::write(&file, rules.to_string())?;
        done(command(&["assortments", "set", name]).arg(&file))?;
        let key = store.make_key(world)?;
        let prefix = key.split('.').next().context("a key without a dot")?;
        done(&mut command(&["keys", "assign", prefix, name]))?;
        keys.push((name, key));
    }
    Ok(keys)
}

impl Comparison {
    /// Returns the costs of the key that has the assortment, times those of one that sees everything.
    fn ratios(
        &self,
        server: &Running,
        keys: &[(&str, String)],
        product: &str,
        arguments: &Arguments,
    ) -> Result<Vec<f64>> {
        let key = keys.iter().find(|(name, _)| *name == self.assortment);
        let (_, key) = key.context("a key")?;
        let path = match self.path {
            "product" => product,
            path => path,
        };
        let cost = |key: &str, requests| cost(server, key, path, self.encoding, requests);
        // What is read first costs page faults, and fills caches.
        cost(key, 20)?;
        cost(&server.key, 20)?;
        let ratio = |repetition: u32| {
            let measured = |key: &str| cost(key, arguments.requests);
            let (own, everything) = match repetition % 2 {
                0 => (measured(key)?, measured(&server.key)?),
                _ => {
                    let everything = measured(&server.key)?;
                    (measured(key)?, everything)
                }
            };
            Ok(own.as_secs_f64() / everything.as_secs_f64())
        };
        (0..arguments.repetitions).map(ratio).collect()
    }
}

/// Returns the codes of the products, ascending.
fn codes(file: &Path) -> Result<Vec<String>> {
    let mut codes = Vec::new();
    for line in BufReader::new(std::fs::File::open(file)?).lines() {
        let product: Value = serde_json::from_str(&line?)?;
        codes.push(product["code"].as_str().context("no code")?.to_owned());
    }
    codes.sort_unstable();
    Ok(codes)
}

/// Returns the server's CPU time for requests, one after the other.
fn cost(
    server: &Running,
    key: &str,
    path: &str,
    encoding: &str,
    requests: u32,
) -> Result<Duration> {
    let mut client = Client::connect(server.address)?;
    let headers = [("X-Api-Key", key), ("Accept-Encoding", encoding)];
    let before = process::cpu_of_threads(server.process.id())?;
    for _ in 0..requests {
        let http::Response { head, .. } = client.get(path, &headers)?;
        if head.status != 200 {
            bail!("{path} is answered with {}", head.status);
        }
    }
    let after = process::cpu_of_threads(server.process.id())?;
    Ok(after.saturating_sub(before))
}
