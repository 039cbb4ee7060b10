//! Requests all addresses concurrently, but few of one host at a time.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Client;
use tokio::task::{JoinError, JoinSet};
use vitrine_store::record::FetchedText;

use super::answer::{self, Failed, Host, Usable};
use super::turns::{GivenUp, Turns};
use super::wanted::{Fetched, Wanted};
use super::{FetchSettings, Progress};
use crate::text_spool::TextSpool;

/// Interval of progress reports while no address responds.
const TELL_EVERY: Duration = Duration::from_secs(1);

type Answered = (usize, String, Result<Usable, Failed>);

/// Requests all addresses and records the results; texts go to the spool. A host that doesn't respond several times in
/// a row is given up.
pub(super) async fn all(
    client: &Client,
    settings: &FetchSettings,
    wanted: &mut Wanted,
    spool: &mut TextSpool,
    progress: &dyn Progress,
) -> anyhow::Result<()> {
    let mut turns = Turns::new(wanted.addresses.keys());
    let mut asked = JoinSet::new();
    let (mut done, mut failed) = (0, 0);
    loop {
        while asked.len() < settings.max_concurrent
            && let Some((slot, url)) = turns.next()
        {
            let before = wanted
                .addresses
                .get(&url)
                .and_then(|address| address.before.clone());
            let (client, reach, patience) = (client.clone(), settings.reach, settings.patience);
            asked.spawn(async move {
                let came = answer::ask(&client, &url, before.as_ref(), reach, patience).await;
                (slot, url, came)
            });
        }
        let Some(answered) = next(&mut asked, || progress.asked(done, failed)).await else {
            return Ok(());
        };
        let (slot, url, came) = answered?;
        done += 1;
        failed += u64::from(came.is_err());
        let host = came
            .as_ref()
            .map_or_else(|error| error.host, |_| Host::Answered);
        if let Some(GivenUp { host, addresses }) = turns.give_back(slot, &url, host) {
            done += addresses;
            failed += addresses;
            progress.gave_up(&host, addresses);
            wanted.given_up.insert(host, addresses);
        }
        progress.asked(done, failed);
        let outcome = keep(&url, came, spool)?;
        if let Some(address) = wanted.addresses.get_mut(&url) {
            address.outcome = Some(outcome);
        }
    }
}

/// Waits for the next result, and calls `waiting` at intervals.
async fn next(
    asked: &mut JoinSet<Answered>,
    waiting: impl Fn(),
) -> Option<Result<Answered, JoinError>> {
    loop {
        tokio::select! {
            answered = asked.join_next() => return answered,
            () = tokio::time::sleep(TELL_EVERY) => waiting(),
        }
    }
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
