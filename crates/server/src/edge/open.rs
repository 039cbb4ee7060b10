//! Open connections, in the order in which they may be closed for others.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::presence::Presence;
use crate::metrics::table::Caller;

/// Connections by the time from which they may be closed for others. A connection in use doesn't update its time, so
/// the time is a lower bound, corrected when the connection is examined.
pub(super) type Queue = BTreeSet<(u64, u64)>;

/// Open connections of a server.
#[derive(Debug, Default)]
pub(super) struct OpenConnections {
    /// Counted connections by number.
    pub(super) connections: HashMap<u64, Entry>,
    pub(super) keyless: Queue,
    pub(super) keyed: Queue,
    pub(super) by_address: HashMap<IpAddr, AddressConnections>,
    /// Numbers of connections that wait for changes, and whose clients have closed their side.
    pub(super) closed: BTreeSet<u64>,
    /// Number of connections told to close for others, which no longer count.
    pub(super) closing: usize,
    pub(super) next: u64,
}

/// Connections from one address.
#[derive(Debug, Default)]
pub(super) struct AddressConnections {
    pub(super) all: usize,
    pub(super) keyless: Queue,
    pub(super) closed: BTreeSet<u64>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) presence: Arc<Presence>,
    pub(super) address: Option<IpAddr>,
    pub(super) caller: Caller,
    /// True if it waits for changes, and the client has closed its side.
    pub(super) is_closed: bool,
    /// Time from which it may be closed for another, as far as known.
    pub(super) due: u64,
}

impl OpenConnections {
    /// Returns the connections from an address.
    pub(super) fn at(&self, address: Option<IpAddr>) -> Option<&AddressConnections> {
        self.by_address.get(&address?)
    }

    /// Counts a connection.
    pub(super) fn insert(&mut self, number: u64, entry: Entry) {
        let place = (entry.due, number);
        match entry.caller {
            Caller::WithoutKey => self.keyless.insert(place),
            Caller::WithKey => self.keyed.insert(place),
        };
        if entry.is_closed {
            self.closed.insert(number);
        }
        if let Some(address) = entry.address {
            let at = self.by_address.entry(address).or_default();
            at.all += 1;
            if entry.is_closed {
                at.closed.insert(number);
            }
            if entry.caller == Caller::WithoutKey {
                at.keyless.insert(place);
            }
        }
        self.connections.insert(number, entry);
    }

    /// Stops counting a connection; returns `None` if it wasn't counted.
    pub(super) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.connections.remove(&number)?;
        let place = (entry.due, number);
        self.keyless.remove(&place);
        self.keyed.remove(&place);
        self.closed.remove(&number);
        if let Some(address) = entry.address
            && let Some(at) = self.by_address.get_mut(&address)
        {
            at.all -= 1;
            at.keyless.remove(&place);
            at.closed.remove(&number);
            if at.all == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(entry)
    }
}
