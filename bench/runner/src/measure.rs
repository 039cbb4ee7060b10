//! Measuring: each work of each server in turn, again and again.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::check::Turn;
use crate::contender::Running;
use crate::load::{self, Outcome, Pace, Plan};
use crate::process;
use crate::work::Work;
use crate::world::World;

/// Duration and repetitions.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Effort {
    /// Number of repetitions.
    pub repetitions: u32,
    /// Seconds of one measurement.
    pub seconds: f64,
    /// Connections of the closed loop.
    pub connections: usize,
    /// Products a second of the open loop.
    pub product_rate: f64,
    /// Pages of 50 a second of the open loop.
    pub page_rate: f64,
}

impl Effort {
    /// Returns the work of the open loop, with its requests a second.
    pub fn open_loop(&self) -> [(Work, f64); 2] {
        [
            (Work::Product, self.product_rate),
            (Work::SmallPage, self.page_rate),
        ]
    }

    fn warm_up(&self) -> f64 {
        self.seconds / 3.0
    }
}

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Kind of request.
    pub work: &'static str,
    /// Name of the server.
    pub server: &'static str,
    /// In which repetition, from 0.
    pub repetition: u32,
    /// Requests that were answered well.
    pub answered: u64,
    /// Requests that weren't.
    pub failed: u64,
    /// Answers a second.
    pub per_second: f64,
    /// User and system time of the server's processes, µs a request.
    pub cpu_microseconds: f64,
    /// Half of the answers came within so many µs.
    pub p50_microseconds: f64,
    /// 99 % of the answers did.
    pub p99_microseconds: f64,
}

/// Runs one plan.
///
/// # Errors
/// If the server can't be reached, or Ctrl-C was pressed.
pub fn sample(server: &Running, name: &'static str, repetition: u32, plan: Plan) -> Result<Sample> {
    let roots = server.roots();
    let before = process::cpu(&roots)?;
    let outcome: Outcome = load::run(plan)?;
    let cpu = process::cpu(&roots)?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let answered = outcome.answered as f64;
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1e6;
    Ok(Sample {
        work: name,
        server: server.kind.name,
        repetition,
        answered: outcome.answered,
        failed: outcome.failed,
        per_second: answered / outcome.elapsed.as_secs_f64(),
        cpu_microseconds: microseconds(cpu) / answered,
        p50_microseconds: microseconds(outcome.percentile(0.50)),
        p99_microseconds: microseconds(outcome.percentile(0.99)),
    })
}

/// All works of all servers, round and round; each repetition begins with another server.
///
/// # Errors
/// If any request isn't answered as it should be.
pub fn closed(
    world: &World,
    servers: &[Running],
    turns: &[Turn],
    effort: &Effort,
) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for repetition in 0..effort.repetitions {
        eprintln!("repetition {} of {}", repetition + 1, effort.repetitions);
        for work in Work::ALL {
            let mut own: Vec<usize> = turns
                .iter()
                .filter(|turn| turn.0 == work)
                .map(|turn| turn.1)
                .collect();
            let first = repetition as usize % own.len().max(1);
            own.rotate_left(first);
            for index in own {
                let server = &servers[index];
                let mut requests = work.requests(world, server);
                let mut plan = |seconds: f64, share: u64| {
                    let plan = Plan {
                        address: server.address,
                        connections: effort.connections,
                        pace: Pace::Closed,
                        duration: Duration::from_secs_f64(seconds),
                        most: work.most() / share,
                        expected: work.expected(),
                        may_spin: world.has_spare_core,
                        next: &mut requests,
                    };
                    sample(server, work.name(), repetition, plan)
                };
                let measured = plan(effort.warm_up(), 10).and_then(|_| plan(effort.seconds, 1));
                let measured = measured.and_then(all_answered);
                let of_what = || format!("{} of {}", work.name(), server.kind.name);
                samples.push(measured.with_context(of_what)?);
            }
        }
    }
    Ok(samples)
}

/// Requests at fixed times: single products, and pages of 50 under two filters.
///
/// # Errors
/// If any request isn't answered as it should be.
pub fn open(world: &World, servers: &[Running], effort: &Effort) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for repetition in 0..effort.repetitions {
        for (work, rate) in effort.open_loop() {
            // The web server is no measure of a page that is another one each time.
            let takes_part = |server: &&Running| {
                server.kind.name == "vitrine" || server.kind.has_files && work == Work::Product
            };
            for server in servers.iter().filter(takes_part) {
                let mut requests = work.requests(world, server);
                let mut plan = |seconds: f64| {
                    let plan = Plan {
                        address: server.address,
                        connections: 64,
                        pace: Pace::Open(rate),
                        duration: Duration::from_secs_f64(seconds),
                        most: u64::MAX,
                        expected: work.expected(),
                        may_spin: world.has_spare_core,
                        next: &mut requests,
                    };
                    sample(server, work.name(), repetition, plan)
                };
                plan(effort.warm_up())?;
                samples.push(all_answered(plan(effort.seconds * 2.0)?)?);
            }
        }
    }
    Ok(samples)
}

fn all_answered(sample: Sample) -> Result<Sample> {
    if sample.failed > 0 || sample.answered == 0 {
        bail!(
            "{} requests failed, {} were answered",
            sample.failed,
            sample.answered
        );
    }
    Ok(sample)
}

/// The middle of some values; of an even number the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}
