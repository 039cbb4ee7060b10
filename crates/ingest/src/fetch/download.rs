//! Requests all addresses concurrently, but few of one host at a time. A host that doesn't respond is given up.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::stream::{self, LocalBoxStream, StreamExt as _};
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
    let mut outcomes = Vec::new();
    let mut given_up: BTreeMap<String, u64> = BTreeMap::new();
    let turns = Turns::new(settings.max_concurrent, |url| {
        let address = wanted.addresses.get(url);
        let before = address.and_then(|address| address.before.as_ref());
        answer::ask(client, url, before, settings.reach, settings.patience)
    });
    let mut asked = turns.all(wanted.addresses.keys().map(String::as_str));
    let (mut done, mut failed) = (0, 0);
    loop {
        match timeout(TELL_EVERY, asked.next()).await {
            Err(_) => {}
            Ok(None) => break,
            Ok(Some(Asked::GivenUp(host))) => {
                (done, failed) = (done + 1, failed + 1);
                *given_up.entry(host).or_default() += 1;
            }
            Ok(Some(Asked::Answered(url, came))) => {
                (done, failed) = (done + 1, failed + u64::from(came.is_err()));
                outcomes.push((url.to_owned(), keep(url, came, spool)?));
            }
        }
        progress.asked(done, failed);
    }
    drop(asked);
    for (host, addresses) in &given_up {
        progress.gave_up(host, *addresses);
    }
    for (url, outcome) in outcomes {
        if let Some(address) = wanted.addresses.get_mut(&url) {
            address.outcome = Some(outcome);
        }
    }
    wanted.given_up = given_up;
    Ok(())
}

/// Result of an address.
#[derive(Debug)]
enum Asked<'u> {
    /// The result of its request.
    Answered(&'u str, Result<Usable, Failed>),
    /// It wasn't requested, because this host was given up.
    GivenUp(String),
}

/// Limits of requests, and the hosts that don't respond.
struct Turns<A> {
    /// Requests an address.
    ask: A,
    /// Free turns. Waiting requests get them in order, so that no host holds up another one.
    free: Semaphore,
    /// Number of consecutive failures to respond, by host and port.
    silent: RefCell<HashMap<String, u32>>,
}

impl<A> Turns<A> {
    fn new(max_concurrent: usize, ask: A) -> Self {
        Self {
            ask,
            free: Semaphore::new(max_concurrent),
            silent: RefCell::default(),
        }
    }

    /// Requests all addresses.
    fn all<'t, 'u: 't, F>(
        &'t self,
        urls: impl Iterator<Item = &'u str>,
    ) -> LocalBoxStream<'t, Asked<'u>>
    where
        A: Fn(&'u str) -> F,
        F: Future<Output = Result<Usable, Failed>> + 't,
    {
        let mut hosts: BTreeMap<Option<String>, Vec<&str>> = BTreeMap::new();
        for url in urls {
            // An invalid address fails when it is requested.
            let parsed = Url::parse(url).ok();
            let host = parsed.and_then(|url| url.host_str().map(str::to_owned));
            hosts.entry(host).or_default().push(url);
        }
        let of_host = |urls: Vec<&'u str>| {
            let asked = stream::iter(urls).map(|url| self.one(url));
            asked.buffer_unordered(MAX_OF_A_HOST)
        };
        let hosts = stream::iter(hosts.into_values()).map(of_host);
        hosts.flatten_unordered(None).boxed_local()
    }

    async fn one<'u, F>(&self, url: &'u str) -> Asked<'u>
    where
        A: Fn(&'u str) -> F,
        F: Future<Output = Result<Usable, Failed>>,
    {
        let _turn = self.free.acquire().await;
        let place = place(url).unwrap_or_default();
        if self.silent.borrow().get(&place) >= Some(&MAX_SILENT) {
            return Asked::GivenUp(place);
        }
        let came = (self.ask)(url).await;
        let is_silent = matches!(&came, Err(failed) if failed.host == Host::Silent);
        let mut silent = self.silent.borrow_mut();
        match is_silent {
            true => *silent.entry(place).or_default() += 1,
            false => drop(silent.remove(&place)),
        }
        Asked::Answered(url, came)
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failed(host: Host) -> Result<Usable, Failed> {
        Err(Failed {
            rule: "status",
            message: String::new(),
            host,
        })
    }

    #[tokio::test]
    async fn requests_stay_within_all_limits() {
        let urls: Vec<String> = (0..60)
            .map(|n| format!("https://{}/{n}", ["a", "b", "b:8443", "c"][n % 4]))
            .collect();
        let running = RefCell::new(HashMap::<char, usize>::new());
        let most = Cell::new((0, 0));
        let turns = Turns::new(4, |url: &str| {
            let host = url.chars().nth("https://".len()).unwrap();
            let (running, most) = (&running, &most);
            async move {
                *running.borrow_mut().entry(host).or_default() += 1;
                let (of_host, of_all) = (running.borrow()[&host], running.borrow().values().sum());
                most.set((of_host.max(most.get().0), most.get().1.max(of_all)));
                tokio::task::yield_now().await;
                running.borrow_mut().entry(host).and_modify(|n| *n -= 1);
                Ok(Usable::NotModified)
            }
        });
        let asked: Vec<_> = turns.all(urls.iter().map(String::as_str)).collect().await;
        assert_eq!(asked.len(), urls.len());
        assert_eq!(most.get(), (MAX_OF_A_HOST, 4));
    }

    #[tokio::test]
    async fn silent_host_is_given_up_but_not_its_other_ports() {
        let mut urls: Vec<String> = (0..9).map(|n| format!("https://dead/{n}")).collect();
        urls.push("https://dead:8443/a".to_owned());
        let turns = Turns::new(1, |url: &str| {
            let host = match url {
                "https://dead/2" | "https://dead:8443/a" => Host::Answered,
                _ => Host::Silent,
            };
            std::future::ready(failed(host))
        });
        let asked: Vec<_> = turns.all(urls.iter().map(String::as_str)).collect().await;
        let given_up = |asked: &&Asked<'_>| matches!(asked, Asked::GivenUp(host) if host == "dead");
        assert_eq!(asked.iter().filter(given_up).count(), 3);
        let other = |asked: &Asked<'_>| matches!(asked, Asked::Answered("https://dead:8443/a", _));
        assert!(asked.iter().any(other), "{asked:?}");
    }
}
