//! Endpoints that wait for their turn, by host: at most eight attempts at a time for one, fewer while it is overloaded.
//!
//! Endpoints whose last attempt failed may take only a part of all places and half of those at a host, since receivers
//! that hang hold a place for the whole time limit of an attempt.

use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum number of attempts at a time for one host.
const MAX_AT_A_TIME: usize = 8;

/// Number of hosts from which on idle ones are forgotten, though they were overloaded.
const MAX_HOSTS: usize = 1_024;

/// Statuses of an overloaded host.
const OVERLOADED: [u16; 4] = [429, 502, 503, 504];

/// Queue of endpoints.
#[derive(Debug)]
pub(super) struct Hosts {
    by_name: HashMap<String, Host>,
    /// Hosts with a free place and an endpoint that waits, each once, in turn: for endpoints that don't fail, and for those
    /// that do.
    ready: [VecDeque<String>; 2],
    /// Failing endpoints that wait or are in flight.
    failing: HashSet<String>,
    failing_in_flight: usize,
    max_failing_in_flight: usize,
    /// True if it is the turn of a failing endpoint.
    is_failing_next: bool,
}

/// Waiting endpoints of a host, and those in flight. Of two values, the first is of endpoints that don't fail.
#[derive(Debug)]
struct Host {
    waiting: [VecDeque<String>; 2],
    in_flight: [usize; 2],
    limit: usize,
    is_ready: [bool; 2],
}

impl Host {
    fn new() -> Self {
        Self {
            waiting: Default::default(),
            in_flight: [0; 2],
            limit: MAX_AT_A_TIME,
            is_ready: [false; 2],
        }
    }

    /// Returns true if it becomes ready for an endpoint that fails, or for one that doesn't.
    fn becomes_ready(&mut self, is_failing: bool) -> bool {
        let class = usize::from(is_failing);
        let has_place = self.in_flight.iter().sum::<usize>() < self.limit
            && (!is_failing || self.in_flight[class] < (self.limit / 2).max(1));
        let is_ready = !self.waiting[class].is_empty() && has_place;
        let becomes = is_ready && !self.is_ready[class];
        self.is_ready[class] |= is_ready;
        becomes
    }

    fn is_idle(&self) -> bool {
        self.in_flight == [0; 2] && self.waiting.iter().all(VecDeque::is_empty)
    }
}

impl Hosts {
    /// Returns an empty queue that lets this number of failing endpoints be in flight.
    pub(super) fn new(max_failing_in_flight: usize) -> Self {
        Self {
            by_name: HashMap::new(),
            ready: Default::default(),
            failing: HashSet::new(),
            failing_in_flight: 0,
            max_failing_in_flight,
            is_failing_next: false,
        }
    }

    /// Adds an endpoint. `is_failing` if its last attempt failed.
    pub(super) fn push(&mut self, host: &str, endpoint: String, is_failing: bool) {
        if is_failing {
            self.failing.insert(endpoint.clone());
        }
        if self.by_name.len() >= MAX_HOSTS && !self.by_name.contains_key(host) {
            self.by_name.retain(|_, host| !host.is_idle());
        }
        let found = self
            .by_name
            .entry(host.to_owned())
            .or_insert_with(Host::new);
        found.waiting[usize::from(is_failing)].push_back(endpoint);
        self.note_ready(host);
    }

    /// Takes the next endpoint and gives it a place at its host. Endpoints that fail and those that don't take turns.
    pub(super) fn next(&mut self) -> Option<String> {
        let first = self.is_failing_next;
        let taken = self.take(first).or_else(|| self.take(!first))?;
        self.is_failing_next = !first;
        Some(taken)
    }

    fn take(&mut self, is_failing: bool) -> Option<String> {
        if is_failing && self.failing_in_flight >= self.max_failing_in_flight {
            return None;
        }
        let class = usize::from(is_failing);
        loop {
            let name = self.ready[class].pop_front()?;
            let Some(host) = self.by_name.get_mut(&name) else {
                continue;
            };
            host.is_ready[class] = false;
            // The other class may have taken the last place meanwhile.
            if !host.becomes_ready(is_failing) {
                continue;
            }
            host.is_ready[class] = false;
            let endpoint = host.waiting[class].pop_front()?;
            host.in_flight[class] += 1;
            self.failing_in_flight += class;
            self.note_ready(&name);
            return Some(endpoint);
        }
    }

    /// Frees the place of an endpoint, after an attempt with this status or without one.
    pub(super) fn done(&mut self, name: &str, endpoint: &str, status: Option<u16>) {
        let class = usize::from(self.failing.remove(endpoint));
        self.failing_in_flight = self.failing_in_flight.saturating_sub(class);
        let Some(host) = self.by_name.get_mut(name) else {
            return;
        };
        host.in_flight[class] = host.in_flight[class].saturating_sub(1);
        match status {
            Some(status) if OVERLOADED.contains(&status) => host.limit = (host.limit / 2).max(1),
            Some(200..300) => host.limit = (host.limit + 1).min(MAX_AT_A_TIME),
            _ => {}
        }
        if host.is_idle() && host.limit == MAX_AT_A_TIME {
            self.by_name.remove(name);
        } else {
            self.note_ready(name);
        }
    }

    /// Notes that a host has become ready, if it has.
    fn note_ready(&mut self, name: &str) {
        let Some(host) = self.by_name.get_mut(name) else {
            return;
        };
        for (class, ready) in self.ready.iter_mut().enumerate() {
            if host.becomes_ready(class == 1) {
                ready.push_back(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_FAILING: usize = 128;

    fn taken(hosts: &mut Hosts) -> Vec<String> {
        std::iter::from_fn(|| hosts.next()).collect()
    }

    #[test]
    fn host_gets_eight_at_a_time_and_others_dont_wait() {
        let mut hosts = Hosts::new(MAX_FAILING);
        for number in 0..20 {
            hosts.push("slow", format!("s{number}"), false);
        }
        hosts.push("other", "o".to_owned(), false);
        let first = taken(&mut hosts);
        assert_eq!(first.len(), MAX_AT_A_TIME + 1);
        assert!(first.contains(&"o".to_owned()));
        hosts.done("slow", "s0", None);
        assert_eq!(taken(&mut hosts), ["s8"]);
    }

    #[test]
    fn overloaded_host_gets_fewer() {
        let mut hosts = Hosts::new(MAX_FAILING);
        for number in 0..40 {
            hosts.push("a", number.to_string(), false);
        }
        assert_eq!(taken(&mut hosts).len(), 8);
        for _ in 0..3 {
            hosts.done("a", "0", Some(503));
        }
        assert_eq!(taken(&mut hosts), [""; 0], "five of one are in flight");
        for _ in 0..5 {
            hosts.done("a", "0", Some(429));
        }
        assert_eq!(taken(&mut hosts).len(), 1);
        hosts.done("a", "0", Some(204));
        assert_eq!(taken(&mut hosts).len(), 2, "it grows again");
    }

    #[test]
    fn idle_host_is_forgotten_though_it_was_overloaded() {
        let mut hosts = Hosts::new(MAX_FAILING);
        hosts.push("busy", "b".to_owned(), false);
        hosts.push("busy", "c".to_owned(), false);
        assert_eq!(taken(&mut hosts).len(), 2);
        hosts.done("busy", "b", Some(503));
        for number in 0..3 * MAX_HOSTS {
            let host = format!("h{number}");
            hosts.push(&host, "e".to_owned(), false);
            assert_eq!(taken(&mut hosts), ["e"]);
            hosts.done(&host, "e", Some(503));
        }
        assert!(hosts.by_name.len() <= MAX_HOSTS, "{}", hosts.by_name.len());
        assert_eq!(hosts.by_name["busy"].limit, MAX_AT_A_TIME / 2);
    }

    #[test]
    fn failing_endpoints_take_a_part_of_the_places() {
        let mut hosts = Hosts::new(MAX_FAILING);
        for number in 0..2 * MAX_FAILING {
            hosts.push(&format!("h{number}"), format!("f{number}"), true);
        }
        let first = taken(&mut hosts);
        assert_eq!(first.len(), MAX_FAILING);
        hosts.push("good", "g".to_owned(), false);
        assert_eq!(taken(&mut hosts), ["g"]);
        // It failed meanwhile, but took a place of the others.
        hosts.done("good", "g", None);
        assert_eq!(taken(&mut hosts), [""; 0]);
        hosts.done("h0", "f0", None);
        assert_eq!(taken(&mut hosts).len(), 1);
    }

    #[test]
    fn failing_endpoints_take_half_of_a_host() {
        let mut hosts = Hosts::new(MAX_FAILING);
        for number in 0..20 {
            hosts.push("shared", format!("f{number}"), true);
        }
        assert_eq!(taken(&mut hosts).len(), MAX_AT_A_TIME / 2);
        for number in 0..20 {
            hosts.push("shared", format!("g{number}"), false);
        }
        assert_eq!(taken(&mut hosts).len(), MAX_AT_A_TIME / 2);
        hosts.done("shared", "g0", Some(204));
        assert_eq!(taken(&mut hosts), ["g4"]);
        hosts.done("shared", "f0", None);
        assert_eq!(taken(&mut hosts).len(), 1);
    }

    #[test]
    fn failing_and_good_endpoints_take_turns() {
        let mut hosts = Hosts::new(MAX_FAILING);
        for number in 0..3 {
            hosts.push(&format!("a{number}"), format!("g{number}"), false);
            hosts.push(&format!("b{number}"), format!("f{number}"), true);
        }
        assert_eq!(taken(&mut hosts), ["g0", "f0", "g1", "f1", "g2", "f2"]);
    }
}
