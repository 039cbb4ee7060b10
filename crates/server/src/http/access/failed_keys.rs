//! Limit of requests with invalid keys per client address. Beyond it, such requests get a 429; requests with a valid
//! key are always answered.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use vitrine_model::quota::{Admission, Quota, QuotaState};

use super::client::{Peer, network};

/// Number of slots, of 8 bytes each. Addresses that share a slot share its limit: while a thousand addresses fail, the
/// chance is one in 65.
const SLOTS: usize = 1 << 16;

/// Counts in a table of fixed size that evicts nothing. An attacker with many addresses can fill it; then all clients
/// with invalid keys have to wait. So both memory and the number of guesses are bounded.
#[derive(Debug, Default)]
pub struct FailedKeys {
    limit: Option<Quota>,
    slots: Box<[QuotaState]>,
    /// Randomly keyed, so that no client can choose to share a slot with another.
    hashes: RandomState,
}

impl FailedKeys {
    /// Creates a table with this limit; without one, nothing is counted.
    #[must_use]
    pub fn new(limit: Option<Quota>) -> Self {
        let slots = limit.map_or(0, |_| SLOTS);
        Self {
            limit,
            slots: (0..slots).map(|_| QuotaState::default()).collect(),
            hashes: RandomState::new(),
        }
    }

    /// Counts a request of this client with an invalid key.
    pub(crate) fn take(&self, client: Peer, now: Duration) -> Admission {
        let Some(limit) = self.limit else {
            return Admission::Granted;
        };
        let hash = self.hashes.hash_one(counted_as(client));
        let place = usize::try_from(hash % SLOTS as u64).unwrap_or(0);
        match self.slots.get(place) {
            Some(slot) => slot.take(limit, now).admission,
            None => Admission::Granted,
        }
    }
}

/// Returns the peer that a client is counted as: its address or network; all clients of a Unix socket are one.
fn counted_as(client: Peer) -> Peer {
    match client {
        Peer::Address(address) => Peer::Address(network(address)),
        Peer::Unix => Peer::Unix,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Address(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_counted_separately() {
        let counts = FailedKeys::new(Some("2/60".parse().unwrap()));
        let now = Duration::from_secs(100);
        let granted = |client: Peer| counts.take(client, now) == Admission::Granted;
        let counted_alike = [
            [peer("192.0.2.1"), peer("::ffff:192.0.2.1")],
            [peer("2001:db8:0:1::1"), peer("2001:db8:0:1:ffff::2")],
            [peer("2001:db8:0:2::1"), peer("2001:db8:0:2::1")],
            [Peer::Unix, Peer::Unix],
        ];
        for [one, same] in counted_alike {
            assert!(granted(one) && granted(same), "{one}");
            assert!(!granted(one) && !granted(same), "{one}");
        }
        let later = now + Duration::from_secs(30);
        assert_eq!(counts.take(peer("192.0.2.1"), later), Admission::Granted);
    }

    #[test]
    fn many_addresses_do_not_grow_memory() {
        let counts = FailedKeys::new(Some("1/3600".parse().unwrap()));
        let granted = (0..300_000_u32).filter(|address| {
            let client = Peer::Address(IpAddr::V4((*address).into()));
            counts.take(client, Duration::from_secs(1)) == Admission::Granted
        });
        assert!(granted.count() <= SLOTS);
        assert_eq!(counts.slots.len(), SLOTS);
    }

    #[test]
    fn without_a_limit_no_client_is_refused() {
        let counts = FailedKeys::default();
        for _ in 0..1_000 {
            let admission = counts.take(peer("192.0.2.1"), Duration::ZERO);
            assert_eq!(admission, Admission::Granted);
        }
    }
}
