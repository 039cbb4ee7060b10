//! Asks all addresses: several at once, but few of one host.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use reqwest::{Client, Url};
use tokio::task::JoinSet;
use vitrine_store::record::FetchedText;

use super::Settings;
use super::answer::{self, Came, Failed};
use super::wanted::{Fetched, Wanted};
use crate::text_spool::TextSpool;

/// How many addresses of one host are asked at once: it is somebody's web server, not ours.
const MOST_OF_A_HOST: usize = 2;

/// Asks all addresses and notes what each gave; texts go into the spool.
pub(super) async fn all(
    client: &Client,
    settings: &Settings,
    wanted: &mut Wanted,
    spool: &mut TextSpool,
) -> anyhow::Result<()> {
    let mut turns = Turns::new(wanted.addresses.keys());
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < settings.most_at_once
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
        let Some(answered) = asked.join_next().await else {
            return Ok(());
        };
        let (slot, url, came) = answered?;
        turns.give_back(slot);
        let outcome = keep(&url, came, spool)?;
        if let Some(address) = wanted.addresses.get_mut(&url) {
            address.outcome = Some(outcome);
        }
    }
}

fn keep(
    url: &str,
    came: Result<Came, Failed>,
    spool: &mut TextSpool,
) -> std::io::Result<Result<Fetched, Failed>> {
    Ok(match came {
        Err(failed) => Err(failed),
        Ok(Came::NotModified) => Ok(Fetched::Unmodified),
        Ok(Came::Text {
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

/// Whose turn it is. Each host has as many slots as it may be asked at once; a slot goes round while its host
/// has addresses left.
struct Turns {
    /// The addresses of each host that wait.
    waiting: Vec<VecDeque<String>>,
    /// The slots that are free, by host.
    free: VecDeque<usize>,
}

impl Turns {
    fn new<'u>(urls: impl Iterator<Item = &'u String>) -> Self {
        let mut hosts = HashMap::new();
        let mut waiting: Vec<VecDeque<String>> = Vec::new();
        for url in urls {
            // What can't be read fails when it is asked.
            let parsed = Url::parse(url).ok();
            let host = parsed.and_then(|url| url.host_str().map(str::to_owned));
            let index = *hosts.entry(host).or_insert(waiting.len());
            if index == waiting.len() {
                waiting.push(VecDeque::new());
            }
            waiting[index].push_back(url.clone());
        }
        let free = (0..MOST_OF_A_HOST).flat_map(|_| 0..waiting.len());
        Self {
            free: free.collect(),
            waiting,
        }
    }

    /// An address that may be asked now, and the slot to give back after that.
    fn next(&mut self) -> Option<(usize, String)> {
        loop {
            let slot = self.free.pop_front()?;
            // A host that has nothing left loses its slot.
            if let Some(url) = self.waiting[slot].pop_front() {
                return Some((slot, url));
            }
        }
    }

    fn give_back(&mut self, slot: usize) {
        self.free.push_back(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_take_turns_and_none_has_more_than_its_share() {
        let urls: Vec<String> = ["a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "c:8080/2", "c/3"]
            .map(|url| format!("https://{url}"))
            .to_vec();
        let mut turns = Turns::new(urls.iter());
        let mut next = || {
            turns
                .next()
                .map(|(slot, url)| (slot, url.replace("https://", "")))
        };
        let first: Vec<_> = std::iter::from_fn(&mut next).collect();
        let first: Vec<_> = first.iter().map(|(_, url)| url.as_str()).collect();
        assert_eq!(first, ["a/1", "b/1", "c/1", "a/2", "c:8080/2"]);
        assert_eq!(turns.next(), None, "all slots are taken");
        turns.give_back(1);
        assert_eq!(turns.next(), None, "b has nothing left");
        turns.give_back(0);
        assert_eq!(turns.next().unwrap().1, "https://a/3");
        turns.give_back(0);
        turns.give_back(2);
        let rest: Vec<_> = std::iter::from_fn(|| turns.next())
            .map(|(_, url)| url)
            .collect();
        assert_eq!(rest, ["https://a/4", "https://c/3"]);
    }
}
