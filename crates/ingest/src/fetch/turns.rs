//! Order of requests: round-robin over hosts, with few concurrent requests to each; a host that doesn't respond is
//! given up.

use std::collections::{HashMap, VecDeque};

use reqwest::Url;

use super::answer::Host;

/// Maximum number of concurrent requests to a host, which belongs to somebody else.
const MAX_OF_A_HOST: usize = 2;

/// Number of consecutive failures to respond after which a host is given up.
pub(super) const MAX_SILENT: u32 = 3;

/// Waiting addresses. Each host has as many slots as concurrent requests; a slot returns to the queue while its host
/// has addresses.
pub(super) struct Turns {
    /// Waiting addresses of each host.
    waiting: Vec<VecDeque<String>>,
    /// Free slots, by host.
    free: VecDeque<usize>,
    /// Number of consecutive failures to respond, by host and port.
    silent: HashMap<String, u32>,
}

/// A host that was given up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// Its name, with the port if the addresses name one.
    pub(super) host: String,
    /// Number of its addresses that weren't requested.
    pub(super) addresses: u64,
}

impl Turns {
    pub(super) fn new<'u>(urls: impl Iterator<Item = &'u String>) -> Self {
        let mut hosts = HashMap::new();
        let mut waiting: Vec<VecDeque<String>> = Vec::new();
        for url in urls {
            // An invalid address fails when it is requested.
            let parsed = Url::parse(url).ok();
            let host = parsed.and_then(|url| url.host_str().map(str::to_owned));
            let index = *hosts.entry(host).or_insert(waiting.len());
            if index == waiting.len() {
                waiting.push(VecDeque::new());
            }
            waiting[index].push_back(url.clone());
        }
        let free = (0..MAX_OF_A_HOST).flat_map(|_| 0..waiting.len());
        Self {
            free: free.collect(),
            waiting,
            silent: HashMap::new(),
        }
    }

    /// Returns the next address, and the slot to give back afterwards.
    pub(super) fn next(&mut self) -> Option<(usize, String)> {
        loop {
            let slot = self.free.pop_front()?;
            // A host without waiting addresses loses its slot.
            if let Some(url) = self.waiting[slot].pop_front() {
                return Some((slot, url));
            }
        }
    }

    /// Gives back the slot of a requested address. Returns its host if that is given up now.
    pub(super) fn give_back(&mut self, slot: usize, url: &str, host: Host) -> Option<GivenUp> {
        self.free.push_back(slot);
        let place = place(url)?;
        if host == Host::Answered {
            self.silent.remove(&place);
            return None;
        }
        let count = self.silent.entry(place.clone()).or_default();
        *count += 1;
        if *count < MAX_SILENT {
            return None;
        }
        let waiting = &mut self.waiting[slot];
        let before = waiting.len();
        waiting.retain(|url| self::place(url).as_deref() != Some(&place));
        let addresses = before - waiting.len();
        (addresses > 0).then_some(GivenUp {
            host: place,
            addresses: addresses as u64,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_requested_in_turn_within_their_share() {
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
        assert_eq!(turns.give_back(1, "https://b/1", Host::Answered), None);
        assert_eq!(turns.next(), None, "b has nothing left");
        assert_eq!(turns.give_back(0, "https://a/1", Host::Answered), None);
        assert_eq!(turns.next().unwrap().1, "https://a/3");
        turns.give_back(0, "https://a/2", Host::Answered);
        turns.give_back(2, "https://c/1", Host::Answered);
        let rest: Vec<_> = std::iter::from_fn(|| turns.next())
            .map(|(_, url)| url)
            .collect();
        assert_eq!(rest, ["https://a/4", "https://c/3"]);
    }
    #[test]
    fn silent_host_is_given_up_but_not_its_other_ports() {
        let urls = (0..9).map(|n| format!("https://dead/{n}"));
        let mut urls: Vec<String> = urls.collect();
        urls.push("https://dead:8443/a".to_owned());
        let mut turns = Turns::new(urls.iter());
        let mut ask = |host| {
            let (slot, url) = turns.next().unwrap();
            turns.give_back(slot, &url, host)
        };
        for host in [
            Host::Silent,
            Host::Silent,
            Host::Answered,
            Host::Silent,
            Host::Silent,
        ] {
            assert_eq!(ask(host), None, "{host:?}");
        }
        let given_up = ask(Host::Silent).unwrap();
        assert_eq!((given_up.host.as_str(), given_up.addresses), ("dead", 3));
        assert_eq!(turns.next().unwrap().1, "https://dead:8443/a");
        assert_eq!(turns.next(), None);
    }
}
