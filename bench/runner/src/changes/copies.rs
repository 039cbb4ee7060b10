//! Cost of copies: a copy that is begun, a page of changes, the journal.

use std::time::Duration;

use anyhow::{Result, bail};

use super::commits::Commits;
use super::{Bench, Findings, LOADS, PART, as_float, feed, spread_of};
use crate::contender::Running;
use crate::http;
use crate::load::{Pace, Plan};
use crate::measure::{median, sample};
use crate::report::number;

/// Products that are changed for the page of changes.
const CHANGED: usize = 100;

/// Begins copies, beside walks of the list. Returns a token.
///
/// # Errors
/// If an answer isn't what it should be.
pub(super) fn bootstrap(bench: &Bench<'_>, findings: &mut Findings) -> Result<String> {
    eprintln!("walking everything");
    // What is read first costs page faults.
    let mut token = feed::bootstrap(&bench.server)?.end;
    feed::list(&bench.server, bench.world.products)?;
    let (mut ratios, mut own, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for repetition in 0..bench.arguments.repetitions * 2 + 1 {
        let feed = || feed::bootstrap(&bench.server);
        let list = || feed::list(&bench.server, bench.world.products);
        let (feed, list) = match repetition % 2 {
            0 => (feed()?, list()?),
            _ => {
                let list = list()?;
                (feed()?, list)
            }
        };
        if feed.requests != list.requests || feed.bytes < list.bytes / 2 {
            bail!(
                "{} requests of {} bytes beside {} of {}",
                feed.requests,
                feed.bytes,
                list.requests,
                list.bytes
            );
        }
        token = feed.end;
        ratios.push(feed.cpu.as_secs_f64() / list.cpu.as_secs_f64());
        own.push(feed.cpu.as_secs_f64() * 1e3);
        lists.push(list.cpu.as_secs_f64() * 1e3);
    }
    findings.row(
        "a copy begun by the feed, times a walk of the list, server CPU",
        ("1.1×", "1.02×"),
        spread_of(&ratios),
        median(ratios) <= 1.1,
    );
    findings.other(
        "a copy begun: server CPU",
        format!("{} ms", number(median(own))),
    );
    findings.other(
        "a walk of the list: server CPU",
        format!("{} ms", number(median(lists))),
    );
    Ok(token)
}

/// Asks for a page of changes, beside pages of as many products. Returns the token after the changes.
///
/// # Errors
/// If the load fails, or an answer isn't what it should be.
pub(super) fn page_of_changes(
    bench: &Bench<'_>,
    token: &str,
    findings: &mut Findings,
) -> Result<String> {
    eprintln!("{CHANGED} changes since a token");
    Commits::new(bench.world, CHANGED)?.commit(&bench.store)?;
    let before = token.to_owned();
    let mut token = token.to_owned();
    bench.wait_for("the changes", || {
        token = feed::follow(&bench.server, &before)?;
        Ok(token != before && !is_at_rest(&bench.server, &before)?)
    })?;
    let headers = [("X-Api-Key", bench.server.key.as_str())];
    let since = format!("/v2/product/changes?limit={CHANGED}&since={before}");
    let page = format!("/v2/product?limit={CHANGED}");
    let mut numbers = (0..).map(|number: usize| number % bench.world.asked_for.len());
    let mut starts = numbers
        .by_ref()
        .map(|number| &bench.world.asked_for[number]);
    let mut ask_since = |out: &mut Vec<u8>| http::request(out, &since, &headers);
    let mut ask_page = |out: &mut Vec<u8>| http::request(out, &page, &headers);
    let mut ask_other = |out: &mut Vec<u8>| {
        let after = starts.next().map_or("0", String::as_str);
        http::request(out, &format!("{page}&after={after}"), &headers);
    };
    let cost = |next: &mut dyn FnMut(&mut Vec<u8>), repetition| {
        let seconds = if bench.arguments.quick { 0.3 } else { 3.0 };
        let plan = Plan {
            address: bench.server.address,
            connections: 8,
            pace: Pace::Closed,
            duration: Duration::from_secs_f64(seconds),
            most: u64::MAX,
            expected: 200,
            may_spin: bench.world.has_spare_core,
            next,
        };
        let sample = sample(&bench.server, "a page", repetition, plan)?;
        Ok::<_, anyhow::Error>(sample.cpu_microseconds)
    };
    let mut costs = [const { Vec::new() }; 3];
    for repetition in 0..bench.arguments.repetitions {
        costs[0].push(cost(&mut ask_since, repetition)?);
        costs[1].push(cost(&mut ask_page, repetition)?);
        costs[2].push(cost(&mut ask_other, repetition)?);
    }
    let times = |base: &[f64]| -> Vec<f64> {
        costs[0]
            .iter()
            .zip(base)
            .map(|(own, base)| own / base)
            .collect()
    };
    let (to_same, to_other) = (times(&costs[1]), times(&costs[2]));
    findings.row(
        format!("{CHANGED} changes since a token, times a page of {CHANGED}, server CPU"),
        ("2×", "1.2×"),
        spread_of(&to_same),
        median(to_same) <= 2.0,
    );
    findings.other(
        format!("{CHANGED} changes, times pages of {CHANGED} at a thousand places"),
        spread_of(&to_other),
    );
    let whats = [
        format!("{CHANGED} changes since a token: server CPU a request"),
        format!("the first page of {CHANGED}: server CPU a request"),
        format!("pages of {CHANGED} at a thousand places: server CPU a request"),
    ];
    for (what, costs) in whats.into_iter().zip(costs) {
        findings.other(what, format!("{} µs", number(median(costs))));
    }
    Ok(token)
}

/// Reads the size of the journal.
///
/// # Errors
/// If it has fewer entries than it should.
pub(super) fn journal(bench: &Bench<'_>, findings: &mut Findings) -> Result<()> {
    let entries = bench.metric("vitrine_changes_entries")?;
    let bytes = bench.metric("vitrine_changes_bytes")?;
    let wanted = bench.world.products * (LOADS - 1) / PART;
    if entries < as_float(usize::try_from(wanted)?) {
        bail!("the journal has {entries} entries instead of {wanted}");
    }
    findings.row(
        "the journal, bytes an entry",
        ("120", "70"),
        number(bytes / entries),
        bytes / entries <= 120.0,
    );
    findings.other("entries of the journal", number(entries));
    Ok(())
}

/// Returns true if nothing has changed since a token.
fn is_at_rest(server: &Running, token: &str) -> Result<bool> {
    let answer = http::fetch(
        server.address,
        &feed::path(token, 0),
        &[("X-Api-Key", &server.key)],
    )?;
    Ok(feed::Answer::read(&answer.decoded()?)?.is_empty)
}
