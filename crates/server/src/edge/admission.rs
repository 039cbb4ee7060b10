//! How many connections there may be: in all, and from one address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::http::client::network;
use crate::metrics::Refusal;

/// Says of an address whether it may have any number of connections, as a proxy does that others come through.
pub type Exempt = dyn Fn(IpAddr) -> bool + Send + Sync;

/// How many connections there may be.
#[derive(Clone)]
pub struct Limits {
    /// In all.
    pub connections: usize,
    /// From one IPv4 address, or one IPv6 network of 64 bits.
    pub per_address: usize,
    /// Addresses that have no limit of their own.
    pub exempt: Arc<Exempt>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            per_address: 2000,
            exempt: Arc::new(|_| false),
        }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Limits")
            .field("connections", &self.connections)
            .field("per_address", &self.per_address)
            .finish_non_exhaustive()
    }
}

/// Counts connections. The lock is taken as one begins and ends, never for a request.
#[derive(Debug)]
pub(super) struct Admission {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A connection that was let in, until this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Arc<Admission>,
    counted: Option<IpAddr>,
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: Mutex::default(),
        }
    }

    /// Lets a connection in, where there is room; one of a Unix socket has no address.
    pub(super) fn admit(self: &Arc<Self>, remote: Option<IpAddr>) -> Result<Admitted, Refusal> {
        let counted = remote
            .map(|address| address.to_canonical())
            .filter(|address| !(self.limits.exempt)(*address))
            .map(network);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.limits.connections {
            return Err(Refusal::Full);
        }
        if let Some(address) = counted {
            let count = open.by_address.entry(address).or_default();
            // Only an address with connections is at its limit, so none is remembered for nothing.
            if *count >= self.limits.per_address {
                return Err(Refusal::Address);
            }
            *count += 1;
        }
        open.all += 1;
        drop(open);
        Ok(Admitted {
            admission: Arc::clone(self),
            counted,
        })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let open = &self.admission.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        let counted = self.counted.map(|address| open.by_address.entry(address));
        if let Some(Entry::Occupied(mut count)) = counted {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
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
    fn an_address_has_its_share_and_proxies_have_any() {
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
    fn nobody_is_let_in_where_it_is_full_and_nothing_is_remembered() {
        let admission = admission(3, 2);
        let open = ["192.0.2.1", "192.0.2.9", "192.0.2.2"].map(|one| admit(&admission, one));
        assert!(open.iter().all(Result::is_ok));
        assert_eq!(admit(&admission, "192.0.2.9").unwrap_err(), Refusal::Full);
        assert_eq!(admission.admit(None).unwrap_err(), Refusal::Full);
        drop(open);
        let left = admission.open.lock().unwrap();
        assert_eq!((left.all, left.by_address.len()), (0, 0));
    }
}
