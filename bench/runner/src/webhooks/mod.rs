//! Deliveries to webhook endpoints: how many a second, how soon, and what clients of the same server notice.

mod receiver;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use crate::changes::commits::Commits;
use crate::contender::{self, Running, StartOptions, VitrineStore, start_vitrine};
use crate::load::{Pace, Plan};
use crate::measure::{median, sample};
use crate::process::{Process, Start};
use crate::report::number;
use crate::work::Work;
use crate::world::{World, done};
use receiver::{Certificate, Receiver};

/// Number of addresses that endpoints are spread over: at most eight attempts at a time go to one.
const HOSTS: usize = 100;

/// Timeout of whatever is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// Options of the measurement.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of products in the catalog.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    products: u64,
    /// Number of endpoints.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    endpoints: usize,
    /// Number of endpoints with TLS.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    tls_endpoints: usize,
    /// Number of repetitions.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repetitions: u32,
    /// Number of commits that one endpoint is told of.
    #[arg(long, value_name = "N", default_value_t = 200)]
    commits: u32,
    /// Products a second that others ask for meanwhile.
    #[arg(long, value_name = "N", default_value_t = 5_000.0)]
    product_rate: f64,
    /// Few endpoints and little time: shows that all works, and the figures mean nothing.
    #[arg(long)]
    quick: bool,
}

/// Rows of the table.
#[derive(Default)]
struct Findings(String);

impl Findings {
    fn row(&mut self, what: &str, gate: &str, stretch: &str, measured: &str, is_met: bool) {
        let mark = if is_met { "" } else { "**" };
        self.0 += &format!("| {what} | {gate} | {stretch} | {mark}{measured}{mark} |\n");
    }
}

/// Measures all of it, prints the table and writes it into `target/bench/webhooks.md`.
///
/// # Errors
/// If a command fails, or an event doesn't come.
pub fn run(root: &Path, vitrine: &Path, mut arguments: Arguments) -> Result<()> {
    if arguments.quick {
        arguments.products = arguments.products.min(2_000);
        arguments.endpoints = 50;
        arguments.tls_endpoints = 20;
        arguments.repetitions = 1;
        arguments.commits = 5;
        arguments.product_rate = 500.0;
    }
    let world = World::make(root, vitrine, arguments.products, 0)?;
    let mut findings = Findings::default();
    plain(&world, &arguments, &mut findings)?;
    secure(&world, &arguments, &mut findings)?;
    let [machine, versions] = world.machine()?;
    let markdown = format!(
        "{} products, {} endpoints at {HOSTS} addresses; what delivers on one core, receivers and clients on {}.  \n{machine}  \n{versions}\n\n\
         | What | target | stretch | measured |\n| --- | --- | --- | --- |\n{}",
        arguments.products,
        arguments.endpoints,
        world.load_generator_cores(),
        findings.0
    );
    print!("{markdown}");
    std::fs::write(root.join("target/bench/webhooks.md"), markdown)?;
    Ok(())
}

/// Returns the address of an endpoint's host.
fn host(endpoint: usize) -> String {
    format!("127.0.1.{}", 1 + endpoint % HOSTS)
}

/// Endpoints of a store, and a server that delivers to them.
struct Delivery<'a> {
    world: &'a World,
    store: VitrineStore,
    key_file: String,
    receiver: Receiver,
    scheme: &'static str,
}

impl<'a> Delivery<'a> {
    fn new(world: &'a World, name: &str, certificate: Option<&Certificate>) -> Result<Self> {
        Ok(Self {
            world,
            store: VitrineStore::make(world, &world.vitrine, name)?,
            key_file: world
                .folder
                .join(format!("{name}.key"))
                .display()
                .to_string(),
            receiver: Receiver::start(certificate)?,
            scheme: if certificate.is_some() {
                "https"
            } else {
                "http"
            },
        })
    }

    /// Creates the endpoints of these numbers.
    fn create(&self, endpoints: std::ops::Range<usize>) -> Result<()> {
        let prefix = self.store.key.rsplit_once('.').context("no prefix")?.0;
        let port = self.receiver.address.port();
        for endpoint in endpoints {
            if endpoint % 1_000 == 0 {
                eprintln!("endpoint {endpoint}");
            }
            let url = format!("{}://{}:{port}/{endpoint}", self.scheme, host(endpoint));
            let mut create = Command::new(&self.world.vitrine);
            create.args(["--store", &self.store.url, "webhooks", "create"]);
            create
                .args(["--key", prefix, "--url", &url])
                .args(self.options());
            done(&mut create)?;
        }
        Ok(())
    }

    fn options(&self) -> [&str; 4] {
        [
            "--webhook-key-file",
            &self.key_file,
            "--webhook-networks",
            "127.0.0.0/8",
        ]
    }

    /// Starts a deliverer that serves nobody, at full speed, and waits until it has told all endpoints of a first commit.
    fn deliver(
        &self,
        count: usize,
        commits: &mut Commits<'_>,
        environment: &[(&str, &str)],
    ) -> Result<Process> {
        let start = Start {
            name: "deliverer",
            cores: &self.world.server_cores,
            user: None,
            folder: &self.world.folder,
        };
        let mut command = start.command(&self.world.vitrine);
        command.args(["--store", &self.store.url, "deliver"]);
        command.args(["--public-url", "https://catalog.example"]);
        command
            .args(self.options())
            .envs(environment.iter().copied());
        let deliverer = start.spawn(command, Signal::TERM)?;
        self.commit(count, commits)?;
        Ok(deliverer)
    }

    /// Makes a commit and waits until so many endpoints were told; returns the times from the commit's start to the first and
    /// the last.
    fn commit(&self, count: usize, commits: &mut Commits<'_>) -> Result<[f64; 2]> {
        let begun = Instant::now();
        commits.commit(&self.store)?;
        self.told(count, begun)
    }

    /// Starts a server that delivers, too.
    fn serve(&self) -> Result<Running> {
        let arguments: Vec<&str> = ["--deliver-webhooks"]
            .into_iter()
            .chain(self.options())
            .collect();
        let options = StartOptions {
            arguments: &arguments,
            ..StartOptions::default()
        };
        start_vitrine(
            &contender::ALL[0],
            self.world,
            &self.world.vitrine,
            &self.store,
            options,
        )
    }

    /// Waits until so many endpoints were told; returns the times from a moment to the first and the last.
    fn told(&self, count: usize, since: Instant) -> Result<[f64; 2]> {
        let mut told = HashSet::new();
        let mut times = Vec::new();
        while told.len() < count {
            if since.elapsed() > PATIENCE {
                bail!("{} of {count} endpoints were told", told.len());
            }
            std::thread::sleep(Duration::from_millis(2));
            for taken in self.receiver.take() {
                told.insert(taken.endpoint);
                times.push(taken.at.duration_since(since).as_secs_f64());
            }
        }
        let [first, last] = [f64::min, f64::max].map(|of| times.iter().copied().fold(f64::NAN, of));
        Ok([first, last])
    }
}

/// Returns the rate of events between the first and the last of them.
fn rate(count: usize, [first, last]: [f64; 2]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let count = count.saturating_sub(1) as f64;
    count / (last - first).max(1e-9)
}

fn plain(world: &World, arguments: &Arguments, findings: &mut Findings) -> Result<()> {
    let delivery = Delivery::new(world, "webhooks.db", None)?;
    delivery.create(0..1)?;
    let mut commits = Commits::new(world, 1)?;
    let server = delivery.serve()?;
    one(&delivery, arguments, &mut commits, findings)?;
    drop(server);
    delivery.create(1..arguments.endpoints)?;
    many(&delivery, arguments, &mut commits, findings)?;
    meanwhile(&delivery, arguments, &mut commits, findings)
}

/// Measures the time from commits to the acknowledgement by one endpoint.
fn one(
    delivery: &Delivery<'_>,
    arguments: &Arguments,
    commits: &mut Commits<'_>,
    findings: &mut Findings,
) -> Result<()> {
    let mut latencies = Vec::new();
    for _ in 0..arguments.commits {
        // By the wall clock, as the revision's own time is.
        let committed = commits.commit(&delivery.store)?;
        delivery.told(1, Instant::now())?;
        latencies.push((second_of_today()? - committed).rem_euclid(86_400.0) * 1e3);
    }
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "below the length"
        )]
        let index = ((latencies.len() - 1) as f64 * share).ceil() as usize;
        latencies[index]
    };
    let what = format!(
        "commit to the 2xx of one endpoint, p99 of {} (p50 {} ms)",
        latencies.len(),
        number(at(0.5))
    );
    let measured = format!("{} ms", number(at(0.99)));
    findings.row(&what, "1 s", "150 ms", &measured, at(0.99) <= 1e3);
    Ok(())
}

/// Measures one revision told to all endpoints by a deliverer that serves nobody.
fn many(
    delivery: &Delivery<'_>,
    arguments: &Arguments,
    commits: &mut Commits<'_>,
    findings: &mut Findings,
) -> Result<()> {
    let count = arguments.endpoints;
    let _deliverer = delivery.deliver(count, commits, &[])?;
    let (mut rates, mut durations) = (Vec::new(), Vec::new());
    for _ in 0..arguments.repetitions {
        let told = delivery.commit(count, commits)?;
        durations.push(told[1]);
        rates.push(rate(count, told));
    }
    let [rate, duration] = [rates, durations].map(median);
    let measured = number(rate);
    findings.row(
        "deliveries a second, plain",
        "1,500",
        "5,000",
        &measured,
        rate >= 1_500.0,
    );
    let what = format!("{count} endpoints, one revision, all acknowledged");
    let measured = format!("{} s", number(duration));
    findings.row(&what, "60 s", "10 s", &measured, duration <= 60.0);
    Ok(())
}

/// Measures what clients of a server notice while it tells all endpoints of one revision, and how long that takes.
fn meanwhile(
    delivery: &Delivery<'_>,
    arguments: &Arguments,
    commits: &mut Commits<'_>,
    findings: &mut Findings,
) -> Result<()> {
    let count = arguments.endpoints;
    let server = &delivery.serve()?;
    let (mut durations, mut times) = (Vec::new(), Vec::new());
    for repetition in 0..arguments.repetitions {
        eprintln!("repetition {} of {}", repetition + 1, arguments.repetitions);
        let told = delivery.commit(count, commits)?;
        durations.push(told[1]);
        let ask = || products(delivery.world, arguments, server, repetition, told[1]);
        let quiet = ask()?;
        let (busy, told) = std::thread::scope(|scope| {
            let told = scope.spawn(|| delivery.commit(count, commits));
            let busy = ask();
            let told = told.join();
            let told = told.map_err(|_| anyhow::anyhow!("the commit panicked"))?;
            Ok::<_, anyhow::Error>((busy?, told?))
        })?;
        let last = told[1];
        eprintln!("p99 {quiet:.0} µs quiet, {busy:.0} µs meanwhile; told within {last:.1} s");
        times.push(busy / quiet);
    }
    let [duration, time] = [durations, times].map(median);
    let what = "the same by a server, at its pace";
    let measured = format!("{} s", number(duration));
    findings.row(what, "60 s", "10 s", &measured, duration <= 60.0);
    let asked = number(arguments.product_rate);
    let what = format!("p99 of products at {asked}/s meanwhile, times quiet");
    findings.row(
        &what,
        "2×",
        "1.3×",
        &format!("{}×", number(time)),
        time <= 2.0,
    );
    Ok(())
}

fn secure(world: &World, arguments: &Arguments, findings: &mut Findings) -> Result<()> {
    let addresses = (0..HOSTS).map(host).collect();
    let certificate = Certificate::new(addresses)?;
    let trusted = world.folder.join("receiver.pem");
    std::fs::write(&trusted, &certificate.pem)?;
    let delivery = Delivery::new(world, "secure.db", Some(&certificate))?;
    delivery.create(0..arguments.tls_endpoints)?;
    let trusted = trusted.display().to_string();
    let mut commits = Commits::new(world, 1)?;
    let environment = [("SSL_CERT_FILE", trusted.as_str())];
    let _deliverer = delivery.deliver(arguments.tls_endpoints, &mut commits, &environment)?;
    let mut rates = Vec::new();
    for _ in 0..arguments.repetitions {
        let told = delivery.commit(arguments.tls_endpoints, &mut commits)?;
        rates.push(rate(arguments.tls_endpoints, told));
    }
    let rate = median(rates);
    findings.row(
        "deliveries a second, each over a new TLS connection",
        "300",
        "1,000",
        &number(rate),
        rate >= 300.0,
    );
    Ok(())
}

/// Asks for products at fixed times. Returns the p99 in µs.
fn products(
    world: &World,
    arguments: &Arguments,
    server: &Running,
    repetition: u32,
    seconds: f64,
) -> Result<f64> {
    let mut requests = Work::Product.requests(world, server);
    let plan = Plan {
        address: server.address,
        connections: 64,
        pace: Pace::Open(arguments.product_rate),
        duration: Duration::from_secs_f64(seconds),
        most: u64::MAX,
        expected: 200,
        // Receivers need the core, too.
        may_spin: false,
        next: &mut requests,
    };
    let sample = sample(server, "products", repetition, plan)?;
    if sample.failed > 0 {
        bail!("{} requests for products failed", sample.failed);
    }
    Ok(sample.p99_microseconds)
}

fn second_of_today() -> Result<f64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(now.as_secs_f64().rem_euclid(86_400.0))
}
