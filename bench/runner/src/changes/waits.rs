//! Thousands of clients wait: how soon a commit reaches the last, what each holds, and what others notice.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::commits::Commits;
use super::waiters::Waiters;
use super::{Bench, Findings, as_float, feed, spread_of};
use crate::load::{Pace, Plan};
use crate::measure::{median, sample};
use crate::own::SETTLES_IN;
use crate::process;
use crate::report::number;
use crate::work::Work;

/// Numbers of products that commits change.
const CHANGED: [usize; 2] = [1, 100];
/// Commits before anything is measured: what the first ones need of memory is no client's.
const WARM_UP: usize = 5;
const DAY_SECONDS: f64 = 86_400.0;
/// Timeout of a commit's reaching all clients.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measurements; latencies of one commit are in milliseconds, ascending.
#[derive(Default)]
struct Measured {
    /// Latencies of commits, by the number of changed products, with nothing else at work.
    alone: [Vec<Vec<f64>>; 2],
    /// Latencies of commits of one product while others ask.
    beside: Vec<Vec<f64>>,
    /// KiB of each client: when it waits first, and after commits.
    memory: [Vec<f64>; 2],
    /// p99 of products, in µs: while nobody waits, and while all wait and wake.
    products: [Vec<f64>; 2],
}

/// Measures all of it, with clients that have what the token says.
///
/// # Errors
/// If a client fails, or a commit doesn't reach all of them.
pub(super) fn measure(bench: &Bench<'_>, token: &str, findings: &mut Findings) -> Result<()> {
    let [few, many] = CHANGED;
    let mut commits = [
        Commits::new(bench.world, few)?,
        Commits::new(bench.world, many)?,
    ];
    for _ in 0..WARM_UP {
        for commits in &mut commits {
            commits.commit(&bench.store)?;
            std::thread::sleep(SETTLES_IN);
        }
    }
    let mut token = token.to_owned();
    let mut measured = Measured::default();
    for repetition in 0..bench.arguments.repetitions {
        let of = bench.arguments.repetitions;
        eprintln!("waits, repetition {} of {of}", repetition + 1);
        token = feed::follow(&bench.server, &token)?;
        repeat(bench, &token, repetition, &mut commits, &mut measured)?;
    }
    if bench.metric("vitrine_changes_waits_refused_total")? > 0.0 {
        bail!("the server refused waits");
    }
    tell(bench, findings, &measured);
    Ok(())
}

fn repeat(
    bench: &Bench<'_>,
    token: &str,
    repetition: u32,
    commits: &mut [Commits<'_>; 2],
    measured: &mut Measured,
) -> Result<()> {
    let resident = || Ok::<_, anyhow::Error>(process::resident(bench.server.process.id())?.now);
    measured.products[0].push(products(bench, repetition)?);
    std::thread::sleep(SETTLES_IN);
    let before = resident()?;
    let count = bench.arguments.waits;
    let mut waiters = Waiters::start(bench.server.address, count, &bench.keys, token);
    for (index, commits) in commits.iter_mut().enumerate() {
        all_wait(bench, &mut waiters)?;
        std::thread::sleep(SETTLES_IN);
        let each = (resident()? - before) * 1024.0 / as_float(count);
        // Later repetitions take the memory that the first gave back.
        if repetition == 0 {
            measured.memory[index].push(each);
        }
        measured.alone[index].extend(commit_all(bench, &mut waiters, commits)?);
    }
    all_wait(bench, &mut waiters)?;
    let (p99, beside) = std::thread::scope(|scope| {
        let commits = scope.spawn(|| commit_all(bench, &mut waiters, &mut commits[0]));
        let p99 = products(bench, repetition);
        let commits = commits.join();
        let commits = commits.map_err(|_| anyhow::anyhow!("the commits panicked"))?;
        Ok::<_, anyhow::Error>((p99?, commits?))
    })?;
    measured.products[1].push(p99);
    measured.beside.extend(beside);
    waiters.end()?;
    bench.wait_for("the end of all waits", || {
        Ok(bench.metric("vitrine_changes_waiting")? == 0.0)
    })
}

fn all_wait(bench: &Bench<'_>, waiters: &mut Waiters) -> Result<()> {
    bench.wait_for("the clients", || {
        waiters.count()?;
        Ok(bench.metric("vitrine_changes_waiting")? == as_float(bench.arguments.waits))
    })
}

/// Commits as often as wanted; each has to reach all clients before the next. Returns the latencies of each.
fn commit_all(
    bench: &Bench<'_>,
    waiters: &mut Waiters,
    commits: &mut Commits<'_>,
) -> Result<Vec<Vec<f64>>> {
    let interval = Duration::from_secs_f64(bench.arguments.interval);
    let mut all = Vec::new();
    for _ in 0..bench.arguments.commits {
        let start = Instant::now();
        waiters.take();
        let committed = commits.commit(&bench.store)?;
        while waiters.count()? < bench.arguments.waits {
            if start.elapsed() > PATIENCE {
                bail!("a commit reached {} clients only", waiters.count()?);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let answered = waiters.take();
        if answered.len() > bench.arguments.waits {
            bail!("a commit was told {} times", answered.len());
        }
        let latency = |at: Duration| (at.as_secs_f64() - committed).rem_euclid(DAY_SECONDS) * 1e3;
        let mut latencies: Vec<f64> = answered.into_iter().map(latency).collect();
        latencies.sort_by(f64::total_cmp);
        all.push(latencies);
        std::thread::sleep(interval.saturating_sub(start.elapsed()));
    }
    Ok(all)
}

/// Asks for products at fixed times, as long as the commits of one measurement take. Returns the p99 in µs.
fn products(bench: &Bench<'_>, repetition: u32) -> Result<f64> {
    let arguments = bench.arguments;
    let mut requests = Work::Product.requests(bench.world, &bench.server);
    let plan = Plan {
        address: bench.server.address,
        connections: 64,
        pace: Pace::Open(arguments.product_rate),
        duration: Duration::from_secs_f64(arguments.interval * f64::from(arguments.commits)),
        most: u64::MAX,
        expected: 200,
        // The clients that wait need the core, too.
        may_spin: false,
        next: &mut requests,
    };
    let sample = sample(&bench.server, "products", repetition, plan)?;
    if sample.failed > 0 {
        bail!("{} requests for products failed", sample.failed);
    }
    Ok(sample.p99_microseconds)
}

fn tell(bench: &Bench<'_>, findings: &mut Findings, measured: &Measured) {
    let count = number(as_float(bench.arguments.waits));
    let [few, many] = CHANGED;
    for (limits, changed, alone) in [
        (true, few, &measured.alone[0]),
        (false, many, &measured.alone[1]),
    ] {
        let what = format!("commit of {changed} changed to the answer at the last of {count}");
        let last = of_all(alone, 1.0);
        match limits {
            true => findings.row(
                what,
                ("1 s", "400 ms"),
                in_unit(&last, "ms"),
                last.iter().all(|last| *last <= 1e3),
            ),
            false => findings.other(what, in_unit(&last, "ms")),
        }
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            let what = format!("commit of {changed} changed to the answer, {name} of the clients");
            findings.other(what, in_unit(&of_all(alone, share), "ms"));
        }
    }
    let what =
        format!("commit of {few} changed to the answer at the last of {count}, others asking");
    findings.other(what, in_unit(&of_all(&measured.beside, 1.0), "ms"));
    let [first, later] = measured.memory.clone().map(median);
    findings.row(
        "memory for each waiting client",
        ("16 KiB", "8 KiB"),
        format!("{} KiB", number(later.max(first))),
        later.max(first) <= 16.0,
    );
    findings.other("… when they wait first", format!("{} KiB", number(first)));
    findings.other("… after commits", format!("{} KiB", number(later)));
    let [quiet, busy] = &measured.products;
    let times: Vec<f64> = busy
        .iter()
        .zip(quiet)
        .map(|(busy, quiet)| busy / quiet)
        .collect();
    findings.row(
        format!(
            "p99 of products at {}/s while {count} wait and wake, times quiet",
            number(bench.arguments.product_rate)
        ),
        ("3×", "1.5×"),
        spread_of(&times),
        median(times) <= 3.0,
    );
    for (what, p99) in [("nobody waits", quiet), ("they wait and wake", busy)] {
        findings.other(format!("p99 of products while {what}"), in_unit(p99, "µs"));
    }
}

/// Returns the latency of each commit that this share of its answers didn't exceed.
fn of_all(commits: &[Vec<f64>], share: f64) -> Vec<f64> {
    let of_one = |latencies: &Vec<f64>| {
        let last = latencies.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the length"
        )]
        let index = (as_float(last) * share).ceil() as usize;
        latencies.get(index).copied().unwrap_or(f64::NAN)
    };
    commits.iter().map(of_one).collect()
}

/// Returns the median with the least and the greatest.
fn in_unit(values: &[f64], unit: &str) -> String {
    let least = values.iter().copied().fold(f64::NAN, f64::min);
    let greatest = values.iter().copied().fold(f64::NAN, f64::max);
    format!(
        "{} {unit} ({} to {})",
        number(median(values.iter().copied())),
        number(least),
        number(greatest)
    )
}
