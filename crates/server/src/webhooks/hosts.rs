//! Endpoints that wait for their turn, by host: at most eight attempts at a time for one, fewer while it is overloaded.

use std::collections::{HashMap, VecDeque};

/// Maximum number of attempts at a time for one host.
const MAX_AT_A_TIME: usize = 8;

/// Statuses of an overloaded host.
const OVERLOADED: [u16; 4] = [429, 502, 503, 504];

/// Queue of endpoints.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    by_name: HashMap<String, Host>,
    /// Hosts with an endpoint that waits and a free place, each once, in turn.
    ready: VecDeque<String>,
}

#[derive(Debug)]
struct Host {
    waiting: VecDeque<String>,
    in_flight: usize,
    limit: usize,
    is_ready: bool,
}

impl Host {
    fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: 0,
            limit: MAX_AT_A_TIME,
            is_ready: false,
        }
    }

    /// Returns true if it becomes ready.
    fn becomes_ready(&mut self) -> bool {
        let is_ready = !self.waiting.is_empty() && self.in_flight < self.limit;
        let becomes = is_ready && !self.is_ready;
        self.is_ready |= is_ready;
        becomes
    }
}

impl Hosts {
    /// Adds an endpoint.
    pub(super) fn push(&mut self, host: &str, endpoint: String) {
        let found = self
            .by_name
            .entry(host.to_owned())
            .or_insert_with(Host::new);
        found.waiting.push_back(endpoint);
        if found.becomes_ready() {
            self.ready.push_back(host.to_owned());
        }
    }

    /// Takes the next endpoint and gives it a place at its host.
    pub(super) fn next(&mut self) -> Option<String> {
        let name = self.ready.pop_front()?;
        let host = self.by_name.get_mut(&name)?;
        host.is_ready = false;
        let endpoint = host.waiting.pop_front()?;
        host.in_flight += 1;
        if host.becomes_ready() {
            self.ready.push_back(name);
        }
        Some(endpoint)
    }

    /// Frees a place, after an attempt with this status or without one.
    pub(super) fn done(&mut self, name: &str, status: Option<u16>) {
        let Some(host) = self.by_name.get_mut(name) else {
            return;
        };
        host.in_flight = host.in_flight.saturating_sub(1);
        match status {
            Some(status) if OVERLOADED.contains(&status) => host.limit = (host.limit / 2).max(1),
            Some(200..300) => host.limit = (host.limit + 1).min(MAX_AT_A_TIME),
            _ => {}
        }
        if host.becomes_ready() {
            self.ready.push_back(name.to_owned());
        } else if host.in_flight == 0 && host.waiting.is_empty() && host.limit == MAX_AT_A_TIME {
            self.by_name.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(hosts: &mut Hosts) -> Vec<String> {
        std::iter::from_fn(|| hosts.next()).collect()
    }

    #[test]
    fn host_gets_eight_at_a_time_and_others_dont_wait() {
        let mut hosts = Hosts::default();
        for number in 0..20 {
            hosts.push("slow", format!("s{number}"));
        }
        hosts.push("other", "o".to_owned());
        let first = taken(&mut hosts);
        assert_eq!(first.len(), MAX_AT_A_TIME + 1);
        assert!(first.contains(&"o".to_owned()));
        hosts.done("slow", None);
        assert_eq!(taken(&mut hosts), ["s8"]);
    }

    #[test]
    fn overloaded_host_gets_fewer() {
        let mut hosts = Hosts::default();
        for number in 0..40 {
            hosts.push("a", number.to_string());
        }
        assert_eq!(taken(&mut hosts).len(), 8);
        for _ in 0..3 {
            hosts.done("a", Some(503));
        }
        assert_eq!(taken(&mut hosts), [""; 0], "five of one are in flight");
        for _ in 0..5 {
            hosts.done("a", Some(429));
        }
        assert_eq!(taken(&mut hosts).len(), 1);
        hosts.done("a", Some(204));
        assert_eq!(taken(&mut hosts).len(), 2, "it grows again");
    }
}
