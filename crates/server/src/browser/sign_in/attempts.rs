//! Limits of failed attempts to sign in, by address and by name. The limit of a name holds for addresses from which it didn't sign in
//! before: nobody else can lock an operator out of the place where it works. All limits end by themselves.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vitrine_model::quota::{Quota, QuotaState};
use vitrine_store::operators::OperatorName;

use crate::http::access::client::{Peer, network};

/// Failed attempts of an address, in seconds.
const OF_ADDRESS: (u32, u32) = (20, 300);

/// Failed attempts with a name, from all addresses that are new to it, in seconds.
const OF_NAME: (u32, u32) = (10, 300);

/// Number of counts in a table; those that share one share its limit.
const SLOTS: usize = 1 << 12;

/// Maximum number of remembered sign-ins.
const MAX_REMEMBERED: usize = 1_000;

/// Counts in a table of fixed size, randomly keyed.
struct Counts {
    limit: Option<Quota>,
    slots: Box<[QuotaState]>,
    hashes: RandomState,
}

impl Counts {
    fn new((requests, seconds): (u32, u32)) -> Self {
        Self {
            limit: Quota::new(requests, seconds).ok(),
            slots: (0..SLOTS).map(|_| QuotaState::default()).collect(),
            hashes: RandomState::new(),
        }
    }

    fn of(&self, counted: impl Hash) -> Option<(&QuotaState, Quota)> {
        let slot = self.hashes.hash_one(counted) % SLOTS as u64;
        let slot = self.slots.get(usize::try_from(slot).ok()?)?;
        Some((slot, self.limit?))
    }

    fn has_left(&self, counted: impl Hash, now: Duration) -> bool {
        let found = self.of(counted);
        found.is_some_and(|(slot, limit)| slot.remaining(limit, now).requests > 0)
    }

    fn take(&self, counted: impl Hash, now: Duration) {
        if let Some((slot, limit)) = self.of(counted) {
            slot.take(limit, now);
        }
    }
}

/// Counts of failed attempts.
pub(super) struct Attempts {
    started: Instant,
    addresses: Counts,
    names: Counts,
    /// Of names at addresses from which they signed in before.
    known: Counts,
    /// Names that signed in, with their addresses, the newest last.
    remembered: Mutex<VecDeque<(OperatorName, Option<IpAddr>)>>,
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            addresses: Counts::new(OF_ADDRESS),
            names: Counts::new(OF_NAME),
            known: Counts::new(OF_NAME),
            remembered: Mutex::default(),
        }
    }

    /// Returns true if one more attempt is allowed. `name` may be that of nobody.
    pub(super) fn allows(&self, client: Peer, name: &str) -> bool {
        let (now, address) = (self.started.elapsed(), address(client));
        match self.knows(client, name) {
            true => self.known.has_left((address, name), now),
            false => self.addresses.has_left(address, now) && self.names.has_left(name, now),
        }
    }

    /// Counts a failed attempt.
    pub(super) fn count(&self, client: Peer, name: &str) {
        let (now, address) = (self.started.elapsed(), address(client));
        if self.knows(client, name) {
            self.known.take((address, name), now);
        } else {
            self.addresses.take(address, now);
            self.names.take(name, now);
        }
    }

    /// Remembers a sign-in.
    pub(super) fn remember(&self, client: Peer, name: &OperatorName) {
        let new = (name.clone(), address(client));
        let mut remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        remembered.retain(|known| *known != new);
        if remembered.len() == MAX_REMEMBERED {
            remembered.pop_front();
        }
        remembered.push_back(new);
    }

    fn knows(&self, client: Peer, name: &str) -> bool {
        let remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let own = address(client);
        (remembered.iter()).any(|(known, from)| known.as_str() == name && *from == own)
    }
}

/// Returns the address or network that a client is counted as; none over a Unix socket.
fn address(client: Peer) -> Option<IpAddr> {
    match client {
        Peer::Address(address) => Some(network(address)),
        Peer::Unix => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::Address(IpAddr::from([192, 0, 2, last]))
    }

    fn fail(attempts: &Attempts, client: Peer, name: &str) -> bool {
        let is_allowed = attempts.allows(client, name);
        if is_allowed {
            attempts.count(client, name);
        }
        is_allowed
    }

    #[test]
    fn failed_attempts_of_an_address_are_limited() {
        let attempts = Attempts::new();
        let allowed = (0..100).filter(|number| {
            let name = format!("operator {number}");
            fail(&attempts, peer(1), &name)
        });
        assert_eq!(allowed.count(), 20);
        assert!(attempts.allows(peer(2), "ines"));
    }

    #[test]
    fn failed_attempts_elsewhere_lock_nobody_out() {
        let attempts = Attempts::new();
        attempts.remember(peer(1), &"ines".parse().unwrap());
        let allowed = (2..=200).filter(|last| fail(&attempts, peer(*last), "ines"));
        assert_eq!(allowed.count(), 10);
        assert!(attempts.allows(peer(1), "ines"));
        assert!(!attempts.allows(peer(201), "ines"));
        assert!(attempts.allows(peer(201), "olga"));
        // Others at its own address don't, either; guesses of its password there are limited.
        for number in 0..30 {
            fail(&attempts, peer(1), &format!("operator {number}"));
        }
        assert!(!attempts.allows(peer(1), "olga"));
        let allowed = (0..30).filter(|_| fail(&attempts, peer(1), "ines"));
        assert_eq!(allowed.count(), 10);
    }
}
