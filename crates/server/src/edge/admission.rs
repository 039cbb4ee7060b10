//! Limits of connections: in all, per address, and of those without a key. At a limit, all connections are examined, and
//! one is closed for the new one: one that waits for changes and whose client has closed its side, or else the one that has
//! been idle longest, first those without a key.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use super::limits::{Exempt, Limits};
use super::presence::Presence;
use crate::http::access::client::network;
use crate::metrics::table::{Caller, Refusal};

/// Default minimum idle time of a connection before it may be closed for another; a shorter pause counts as use.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Maximum number of connections that are being closed for others at a time.
const MAX_CLOSING: usize = 128;
/// Time for which new connections are refused without another search, after one found nothing to close: a search examines all
/// connections, and floods must not make it frequent.
const SEARCH_PAUSE: Duration = Duration::from_millis(20);

/// Counts of connections. The lock is taken when a connection begins and ends, never for a request.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Limits,
    /// Minimum idle time of a connection before it may be closed for another.
    min_idle: Duration,
    search_pause: Duration,
    open: Mutex<OpenConnections>,
}

/// Open connections of a server.
#[derive(Debug, Default)]
struct OpenConnections {
    /// Counted connections by number.
    connections: HashMap<u64, Entry>,
    all: Count,
    by_address: HashMap<IpAddr, Count>,
    /// Number of connections told to close for others, which no longer count.
    closing: usize,
    next: u64,
}

/// One connection.
#[derive(Debug)]
struct Entry {
    presence: Arc<Presence>,
    address: Option<IpAddr>,
    /// True if it counts as one without a key.
    is_keyless: bool,
}

/// Number of connections, in all or of one address.
#[derive(Debug, Default)]
struct Count {
    all: usize,
    /// Number of those without a key when they were last examined.
    keyless: usize,
    /// End of the pause after a search that found nothing.
    full_until: Option<Instant>,
}

/// An admitted connection, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    number: u64,
    /// Activity of the connection.
    pub(crate) presence: Arc<Presence>,
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Self::with_min_idle(limits, MIN_IDLE)
    }

    /// Returns limits by which a connection may be closed for another after this idle time.
    pub(crate) fn with_min_idle(limits: Limits, min_idle: Duration) -> Self {
        Self {
            limits,
            min_idle,
            search_pause: SEARCH_PAUSE,
            open: Mutex::default(),
        }
    }

    /// Admits a connection if there is room, or an idle one can be closed. Those of a Unix socket have no address.
    pub(crate) fn admit(self: &Arc<Self>, remote: Option<IpAddr>) -> Result<Admitted, Refusal> {
        let address = remote
            .map(|address| address.to_canonical())
            .filter(|address| !(self.limits.exempt)(*address))
            .map(network);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for limit in [Limit::Address(address), Limit::Keyless, Limit::All] {
            if limit.is_met(&open, &self.limits) {
                self.make_room(&mut open, limit)?;
            }
        }
        let presence = Arc::new(Presence::default());
        let number = open.next;
        open.next += 1;
        let entry = Entry {
            presence: Arc::clone(&presence),
            address,
            is_keyless: true,
        };
        open.insert(number, entry);
        drop(open);
        Ok(Admitted {
            admission: Arc::clone(self),
            number,
            presence,
        })
    }

    /// Counts keys presented since; closes a connection for the new one if the limit is still reached.
    fn make_room(&self, open: &mut OpenConnections, limit: Limit) -> Result<(), Refusal> {
        let now = Instant::now();
        let paused = open.count(limit).and_then(|count| count.full_until);
        if paused.is_some_and(|until| now < until) {
            return Err(limit.refusal());
        }
        open.count_keys();
        if !limit.is_met(open, &self.limits) {
            return Ok(());
        }
        let candidates = open.connections.iter().filter_map(|(number, entry)| {
            let kind = entry.kind(now, self.min_idle)?;
            let is_eligible = limit.covers(entry) && limit.frees(kind, open, &self.limits);
            is_eligible.then(|| (kind, entry.presence.last_use(), *number))
        });
        let closed = candidates.min().filter(|_| open.closing < MAX_CLOSING);
        if let Some(entry) = closed.and_then(|(.., number)| open.remove(number)) {
            entry.presence.evict();
            open.closing += 1;
            return Ok(());
        }
        if let Some(count) = open.count_mut(limit) {
            count.full_until = Some(now + self.search_pause);
        }
        Err(limit.refusal())
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let open = &self.admission.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.remove(self.number).is_none() {
            open.closing -= 1;
        }
    }
}

impl OpenConnections {
    /// Counts a connection.
    fn insert(&mut self, number: u64, entry: Entry) {
        let at = entry
            .address
            .map(|at| self.by_address.entry(at).or_default());
        for count in [Some(&mut self.all), at].into_iter().flatten() {
            count.all += 1;
            count.keyless += 1;
        }
        self.connections.insert(number, entry);
    }

    /// Stops counting a connection; returns `None` if it wasn't counted.
    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.connections.remove(&number)?;
        let at = entry.address.and_then(|at| self.by_address.get_mut(&at));
        for count in [Some(&mut self.all), at].into_iter().flatten() {
            count.all -= 1;
            count.keyless -= usize::from(entry.is_keyless);
        }
        if let Some(at) = entry.address
            && self.by_address.get(&at).is_some_and(|count| count.all == 0)
        {
            self.by_address.remove(&at);
        }
        Some(entry)
    }

    /// Counts connections that have presented a key since as ones with a key.
    fn count_keys(&mut self) {
        for entry in self.connections.values_mut() {
            if entry.is_keyless && entry.presence.caller() == Caller::WithKey {
                entry.is_keyless = false;
                self.all.keyless -= 1;
                if let Some(at) = entry.address.and_then(|at| self.by_address.get_mut(&at)) {
                    at.keyless -= 1;
                }
            }
        }
    }

    fn count(&self, limit: Limit) -> Option<&Count> {
        match limit {
            Limit::Address(address) => self.by_address.get(&address?),
            Limit::Keyless | Limit::All => Some(&self.all),
        }
    }

    fn count_mut(&mut self, limit: Limit) -> Option<&mut Count> {
        match limit {
            Limit::Address(address) => self.by_address.get_mut(&address?),
            Limit::Keyless | Limit::All => Some(&mut self.all),
        }
    }
}

/// Kind of a connection that may be closed for another, the first to close first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It waits for changes, and its client has closed its side. It has presented a key.
    Closed,
    /// It is idle, and has presented no key.
    Keyless,
    /// It is idle.
    Keyed,
}

impl Entry {
    /// Returns the kind of a connection; `None` if it is in use.
    fn kind(&self, now: Instant, min_idle: Duration) -> Option<Kind> {
        if self.presence.is_closed() {
            return Some(Kind::Closed);
        }
        let idle = now.saturating_duration_since(self.presence.idle_since()?);
        (idle >= min_idle).then_some(match self.is_keyless {
            true => Kind::Keyless,
            false => Kind::Keyed,
        })
    }
}

/// Limit that a new connection can reach.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Address(Option<IpAddr>),
    Keyless,
    All,
}

impl Limit {
    fn is_met(self, open: &OpenConnections, limits: &Limits) -> bool {
        open.count(self).is_some_and(|count| match self {
            Self::Address(_) => {
                count.all >= limits.per_address || count.keyless >= limits.keyless_per_address()
            }
            Self::Keyless => count.keyless >= limits.keyless(),
            Self::All => count.all >= limits.connections,
        })
    }

    /// Returns true if a connection counts for this limit.
    fn covers(self, entry: &Entry) -> bool {
        match self {
            Self::Address(address) => entry.address == address,
            Self::Keyless | Self::All => true,
        }
    }

    /// Returns true if closing a connection of this kind makes room.
    fn frees(self, kind: Kind, open: &OpenConnections, limits: &Limits) -> bool {
        let all = open.count(self).map_or(0, |count| count.all);
        match (self, kind) {
            (Self::All, _) | (_, Kind::Keyless) => true,
            (Self::Address(_), Kind::Closed) => all >= limits.per_address,
            (Self::Keyless, Kind::Closed) | (_, Kind::Keyed) => false,
        }
    }

    fn refusal(self) -> Refusal {
        match self {
            Self::Address(_) => Refusal::Address,
            Self::Keyless | Self::All => Refusal::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(connections: usize, per_address: usize) -> Arc<Admission> {
        let proxy: IpAddr = "192.0.2.9".parse().unwrap();
        Arc::new(Admission::new(Limits {
            connections,
            per_address,
            exempt: Arc::new(move |address| address == proxy),
        }))
    }

    fn admit(to: &Arc<Admission>, address: &str) -> Result<Admitted, Refusal> {
        to.admit(Some(address.parse().unwrap()))
    }

    #[test]
    fn address_has_its_share_and_proxy_has_no_limit() {
        let admission = admission(100, 2);
        let _first = admit(&admission, "192.0.2.1").unwrap();
        let second = admit(&admission, "::ffff:192.0.2.1").unwrap();
        assert_eq!(
            admit(&admission, "192.0.2.1").unwrap_err(),
            Refusal::Address
        );
        let _other = admit(&admission, "192.0.2.2").unwrap();
        drop(second);
        let _again = admit(&admission, "192.0.2.1").unwrap();
        let _network = ["2001:db8::1", "2001:db8::2"].map(|one| admit(&admission, one).unwrap());
        assert_eq!(
            admit(&admission, "2001:db8::3").unwrap_err(),
            Refusal::Address
        );
        let _next = admit(&admission, "2001:db8:0:1::1").unwrap();
        let _proxy = [0; 5].map(|_| admit(&admission, "192.0.2.9").unwrap());
        let _unix = [0; 5].map(|_| admission.admit(None).unwrap());
    }

    #[test]
    fn full_admission_refuses_and_leaves_no_entries() {
        let admission = admission(3, 2);
        let open = ["192.0.2.1", "192.0.2.9", "192.0.2.2"].map(|one| admit(&admission, one));
        assert!(open.iter().all(Result::is_ok));
        assert_eq!(admit(&admission, "192.0.2.9").unwrap_err(), Refusal::Full);
        assert_eq!(admission.admit(None).unwrap_err(), Refusal::Full);
        drop(open);
        let left = admission.open.lock().unwrap();
        assert_eq!((left.connections.len(), left.by_address.len()), (0, 0));
        assert_eq!((left.all.all, left.all.keyless, left.closing), (0, 0, 0));
    }

    /// Returns an admission that always searches.
    fn searching(connections: usize, per_address: usize) -> Arc<Admission> {
        let mut admission = admission(connections, per_address);
        Arc::get_mut(&mut admission).unwrap().search_pause = Duration::ZERO;
        admission
    }

    /// Makes a connection idle for so long.
    fn idle(admission: &Admission, admitted: &Admitted, time: Duration) {
        let presence = Presence::idle_for(time, admitted.presence.caller());
        let mut open = admission.open.lock().unwrap();
        let entry = open.connections.get_mut(&admitted.number).unwrap();
        entry.presence = Arc::new(presence);
    }

    #[test]
    fn connections_with_a_new_key_make_room_at_once() {
        let admission = admission(400, 40);
        let _open = [0; 40].map(|_| {
            let admitted = admit(&admission, "192.0.2.1").unwrap();
            admitted.presence.note(Caller::WithKey);
            admitted
        });
    }

    #[test]
    fn idlest_keyless_connection_is_closed_first() {
        let admission = searching(4, 4);
        let all = [(5, true), (40, true), (10, false), (20, false)].map(|(seconds, has_key)| {
            let admitted = admit(&admission, "192.0.2.9").unwrap();
            if has_key {
                admitted.presence.note(Caller::WithKey);
            }
            idle(&admission, &admitted, Duration::from_secs(seconds));
            admitted
        });
        let is_open = || {
            let open = admission.open.lock().unwrap();
            all.each_ref()
                .map(|admitted| open.connections.contains_key(&admitted.number))
        };
        let mut new = vec![admit(&admission, "192.0.2.9").unwrap()];
        assert_eq!(is_open(), [true, true, true, false]);
        new.push(admit(&admission, "192.0.2.9").unwrap());
        assert_eq!(is_open(), [true, true, false, false]);
        // The new connections haven't been idle long enough.
        new.push(admit(&admission, "192.0.2.9").unwrap());
        assert_eq!(is_open(), [true, false, false, false]);
        new.push(admit(&admission, "192.0.2.9").unwrap());
        assert_eq!(is_open(), [false; 4]);
        assert_eq!(admit(&admission, "192.0.2.9").unwrap_err(), Refusal::Full);
        assert_eq!(admission.open.lock().unwrap().closing, 4);
        drop((all, new));
        let left = admission.open.lock().unwrap();
        assert_eq!((left.connections.len(), left.closing), (0, 0));
    }

    #[test]
    fn idle_connection_is_found_among_many_in_use() {
        let admission = searching(1000, 1000);
        let all: Vec<Admitted> = (0..750)
            .map(|_| {
                let admitted = admit(&admission, "192.0.2.9").unwrap();
                idle(&admission, &admitted, Duration::from_secs(60));
                // In use since then.
                let open = admission.open.lock().unwrap();
                open.connections[&admitted.number].presence.use_for(50);
                drop(open);
                admitted
            })
            .collect();
        let _new = admit(&admission, "192.0.2.9").unwrap();
        assert_eq!(admission.open.lock().unwrap().closing, 1);
        drop(all);
    }

    #[test]
    fn connections_in_use_are_not_closed() {
        let admission = searching(1, 1);
        let first = admit(&admission, "192.0.2.1").unwrap();
        idle(&admission, &first, Duration::from_secs(60));
        let presence = {
            let open = admission.open.lock().unwrap();
            Arc::clone(&open.connections[&first.number].presence)
        };
        presence.begin_request();
        assert_eq!(admit(&admission, "192.0.2.2").unwrap_err(), Refusal::Full);
        presence.end_request();
        assert_eq!(
            admit(&admission, "192.0.2.2").unwrap_err(),
            Refusal::Full,
            "used a moment ago"
        );
    }

    #[test]
    fn keyless_connections_have_a_smaller_share() {
        let admission = searching(1000, 100);
        let keyless = [0; 50].map(|_| admit(&admission, "192.0.2.1").unwrap());
        let refused = admit(&admission, "192.0.2.1");
        assert_eq!(refused.unwrap_err(), Refusal::Address);
        // Connections that have presented a key since don't count as keyless.
        for admitted in &keyless[..10] {
            admitted.presence.note(Caller::WithKey);
            idle(&admission, admitted, Duration::from_secs(60));
        }
        let _new = [0; 10].map(|_| admit(&admission, "192.0.2.1").unwrap());
        let refused = admit(&admission, "192.0.2.1");
        assert_eq!(refused.unwrap_err(), Refusal::Address);
        assert_eq!(admission.open.lock().unwrap().closing, 0);
    }
}
