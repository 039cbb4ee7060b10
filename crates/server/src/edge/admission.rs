//! Limits of connections: in all, per address, and of those without a key. At a limit, the connection that has been
//! idle longest is closed for the new one; before it, one that waits for changes and whose client has closed its side.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use super::limits::{Exempt, Limits};
use super::open::{Entry, OpenConnections, Queue};
use super::presence::Presence;
use crate::http::access::client::network;
use crate::metrics::table::{Caller, Refusal};

/// Default minimum idle time of a connection before it may be closed for another; a shorter pause counts as use.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Maximum number of connections that are being closed for others at a time.
const MAX_CLOSING: usize = 128;
/// Maximum number of connections examined to find one to close.
const MAX_CANDIDATES: usize = 64;

/// Counts of connections. The lock is taken when a connection begins and ends, never for a request.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Limits,
    /// Minimum idle time of a connection before it may be closed for another.
    min_idle: Duration,
    /// Origin of all times below, which are in milliseconds.
    start: Instant,
    open: Mutex<OpenConnections>,
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
            start: Instant::now(),
            open: Mutex::default(),
        }
    }

    /// Admits a connection if there is room, or an idle one can be closed. Those of a Unix socket have no address.
    pub(crate) fn admit(self: &Arc<Self>, remote: Option<IpAddr>) -> Result<Admitted, Refusal> {
        let address = remote
            .map(|address| address.to_canonical())
            .filter(|address| !(self.limits.exempt)(*address))
            .map(network);
        let now = self.milliseconds(Instant::now());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for limit in [Limit::Address(address), Limit::Keyless, Limit::All] {
            self.make_room(&mut open, limit, now)?;
        }
        let presence = Arc::new(Presence::default());
        let number = open.next;
        open.next += 1;
        let entry = Entry {
            due: self.due(&presence, now),
            presence: Arc::clone(&presence),
            address,
            caller: Caller::WithoutKey,
            is_closed: false,
        };
        open.insert(number, entry);
        drop(open);
        Ok(Admitted {
            admission: Arc::clone(self),
            number,
            presence,
        })
    }

    /// Closes a connection if `limit` is reached: of those examined, the one that was idle longest.
    fn make_room(&self, open: &mut OpenConnections, limit: Limit, now: u64) -> Result<(), Refusal> {
        if limit.is_met(open, &self.limits)
            && open.closing < MAX_CLOSING
            && let Some(closed) = limit.closed(open, &self.limits)
            && let Some(entry) = open.remove(closed)
        {
            entry.presence.evict();
            open.closing += 1;
        }
        let mut idlest: Option<(u64, u64)> = None;
        for _ in 0..MAX_CANDIDATES {
            if !limit.is_met(open, &self.limits) {
                return Ok(());
            }
            let Some(place) = limit.candidate(open, now) else {
                break;
            };
            let Some(entry) = open.remove(place.1) else {
                break;
            };
            let (caller, due) = (entry.presence.caller(), self.due(&entry.presence, now));
            let is_right = (caller, due) == (entry.caller, entry.due);
            let entry = Entry {
                caller,
                due,
                ..entry
            };
            open.insert(place.1, entry);
            if due <= now && limit.includes(caller) {
                let place = (due, place.1);
                idlest = Some(idlest.map_or(place, |idlest| idlest.min(place)));
            }
            if is_right {
                break;
            }
        }
        let idlest = idlest.filter(|_| open.closing < MAX_CLOSING);
        if limit.is_met(open, &self.limits) {
            let entry = idlest.and_then(|(_, number)| open.remove(number));
            entry.ok_or(limit.refusal())?.presence.evict();
            open.closing += 1;
        }
        Ok(())
    }

    /// Returns the time from which a connection may be closed for another; a lower bound for one in use.
    fn due(&self, presence: &Presence, now: u64) -> u64 {
        let grace = u64::try_from(self.min_idle.as_millis()).unwrap_or(u64::MAX);
        let since = presence
            .idle_since()
            .map_or(now, |since| self.milliseconds(since));
        since.saturating_add(grace)
    }

    fn milliseconds(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.start);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Admitted {
    /// Records that the connection waits for changes, and that its client has closed its side.
    pub(super) fn note_closed(&self) {
        let open = &self.admission.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = open.remove(self.number) {
            let entry = Entry {
                caller: entry.presence.caller(),
                is_closed: true,
                ..entry
            };
            open.insert(self.number, entry);
        }
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

/// Limit that a new connection can reach.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Address(Option<IpAddr>),
    Keyless,
    All,
}

impl Limit {
    fn is_met(self, open: &OpenConnections, limits: &Limits) -> bool {
        match self {
            Self::Address(address) => open.at(address).is_some_and(|at| {
                at.all >= limits.per_address || at.keyless.len() >= limits.keyless_per_address()
            }),
            Self::Keyless => open.keyless.len() >= limits.keyless(),
            Self::All => open.connections.len() >= limits.connections,
        }
    }

    /// Returns a closed connection whose end makes room. It has presented a key.
    fn closed(self, open: &OpenConnections, limits: &Limits) -> Option<u64> {
        let closed = match self {
            Self::Address(address) => {
                let at = open.at(address)?;
                (at.all >= limits.per_address).then_some(&at.closed)?
            }
            Self::Keyless => return None,
            Self::All => &open.closed,
        };
        closed.first().copied()
    }

    /// Returns the connection to examine first. If a limit of keyless connections is reached, it needn't be idle yet:
    /// if it has presented a key since, recounting it makes room.
    fn candidate(self, open: &OpenConnections, now: u64) -> Option<(u64, u64)> {
        let first = |queue: &Queue| queue.first().copied();
        let idle = |queue: &Queue| first(queue).filter(|(due, _)| *due <= now);
        match self {
            Self::Address(address) => first(&open.at(address)?.keyless),
            Self::Keyless => first(&open.keyless),
            Self::All => idle(&open.keyless).or_else(|| idle(&open.keyed)),
        }
    }

    /// Returns true if closing a connection of this caller makes room.
    fn includes(self, caller: Caller) -> bool {
        matches!(self, Self::All) || caller == Caller::WithoutKey
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
        assert_eq!((left.keyless.len(), left.closing), (0, 0));
    }

    /// Returns an admission that started long ago, so that connections of a test can have been idle for long.
    fn aged(connections: usize, per_address: usize) -> Arc<Admission> {
        let mut admission = admission(connections, per_address);
        let start = Instant::now() - Duration::from_secs(1000);
        Arc::get_mut(&mut admission).unwrap().start = start;
        admission
    }

    /// Makes a connection idle for so long.
    fn idle(admission: &Admission, admitted: &Admitted, time: Duration) {
        let mut open = admission.open.lock().unwrap();
        let mut entry = open.remove(admitted.number).unwrap();
        let presence = Presence::idle_for(time, admitted.presence.caller());
        entry.presence = Arc::new(presence);
        entry.due = admission.due(&entry.presence, 0);
        open.insert(admitted.number, entry);
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
        let admission = aged(4, 4);
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
        let admission = aged(1000, 1000);
        let all: Vec<Admitted> = (0..750)
            .map(|_| {
                let admitted = admit(&admission, "192.0.2.9").unwrap();
                idle(&admission, &admitted, Duration::from_secs(60));
                // In use since then; the queue doesn't know.
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
        let admission = aged(1, 1);
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
        let admission = aged(1000, 100);
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
