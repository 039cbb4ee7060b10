//! Requests all addresses concurrently, but few of one host at a time. A host that doesn't respond is given up.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use reqwest::{Client, Url};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use vitrine_store::record::FetchedText;

use super::answer::{self, Failed, Host, Usable};
use super::wanted::{Fetched, Wanted};
use super::{FetchSettings, Progress};
use crate::text_spool::TextSpool;

/// Maximum number of concurrent requests to a host, which belongs to somebody else.
const MAX_OF_A_HOST: usize = 2;

/// Number of consecutive failures to respond after which a host is given up.
pub(super) const MAX_SILENT: u32 = 3;

/// Interval of progress reports while no address responds.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Requests all addresses and records the results; texts go to the spool. A host that doesn't respond several times in
/// a row is given up.
pub(super) async fn all(
    client: &Client,
    settings: &FetchSettings,
    wanted: &mut Wanted,
    spool: &mut TextSpool,
    progress: &dyn Progress,
) -> anyhow::Result<()> {
    let mut hosts: BTreeMap<Option<String>, Vec<(String, Option<FetchedText>)>> = BTreeMap::new();
    for (url, address) in &wanted.addresses {
        // An invalid address fails when it is requested.
        let host = Url::parse(url).ok();
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        let addresses = hosts.entry(host).or_default();
        addresses.push((url.clone(), address.before.clone()));
    }
    let silence = RefCell::new(Silence::default());
    // Waiting requests get their turns in order, so that no host holds up another one.
    let turns = Semaphore::new(settings.max_concurrent);
    let ask = async |url: String, before: Option<FetchedText>| {
        let _turn = turns.acquire().await;
        let place = place(&url);
        if silence.borrow().is_given_up(place.as_deref()) {
            return Asked::GivenUp(place.unwrap_or_default());
        }
        let (reach, patience) = (settings.reach, settings.patience);
        let came = answer::ask(client, &url, before.as_ref(), reach, patience).await;
        silence.borrow_mut().note(place, &came);
        Asked::Answered(url, came)
    };
    let of_host = |addresses: Vec<(String, Option<FetchedText>)>| {
        stream::iter(addresses)
            .map(|(url, before)| ask(url, before))
            .buffer_unordered(MAX_OF_A_HOST)
    };
    let mut asked = stream::iter(hosts.into_values())
        .map(of_host)
        .flatten_unordered(None)
        .boxed_local();
    let (mut done, mut failed) = (0, 0);
    let mut outcomes = Vec::new();
    loop {
        match timeout(TELL_EVERY, asked.next()).await {
            Err(_) => {}
            Ok(None) => break,
            Ok(Some(Asked::GivenUp(host))) => {
                (done, failed) = (done + 1, failed + 1);
                *wanted.given_up.entry(host).or_default() += 1;
            }
            Ok(Some(Asked::Answered(url, came))) => {
                done += 1;
                failed += u64::from(came.is_err());
                outcomes.push((url.clone(), keep(&url, came, spool)?));
            }
        }
        progress.asked(done, failed);
    }
    for (host, addresses) in &wanted.given_up {
        progress.gave_up(host, *addresses);
    }
    for (url, outcome) in outcomes {
        if let Some(address) = wanted.addresses.get_mut(&url) {
            address.outcome = Some(outcome);
        }
    }
    Ok(())
}

/// Result of an address.
enum Asked {
    Answered(String, Result<Usable, Failed>),
    /// It wasn't requested, because this host was given up.
    GivenUp(String),
}

/// Number of consecutive failures to respond, by host and port.
#[derive(Default)]
struct Silence(HashMap<String, u32>);

impl Silence {
    fn is_given_up(&self, place: Option<&str>) -> bool {
        let count = place.and_then(|place| self.0.get(place));
        count.is_some_and(|count| *count >= MAX_SILENT)
    }

    fn note(&mut self, place: Option<String>, came: &Result<Usable, Failed>) {
        let Some(place) = place else { return };
        let count = self.0.entry(place).or_default();
        match came {
            Err(failed) if failed.host == Host::Silent => *count += 1,
            _ => *count = 0,
        }
    }
}

/// Returns the host of an address, with the port if it names one.
fn place(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

fn keep(
    url: &str,
    came: Result<Usable, Failed>,
    spool: &mut TextSpool,
) -> std::io::Result<Result<Fetched, Failed>> {
    Ok(match came {
        Err(failed) => Err(failed),
        Ok(Usable::NotModified) => Ok(Fetched::Unmodified),
        Ok(Usable::Text {
            markdown,
            etag,
            last_modified,
        }) => Ok(Fetched::Text(FetchedText {
            url: url.to_owned(),
            digest: spool.put(&markdown)?,
            etag,
            last_modified,
            fetched_at: Timestamp::now(),
        })),
    })
}
