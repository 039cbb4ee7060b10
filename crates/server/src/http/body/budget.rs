//! Budget of memory for bodies in flight.
//!
//! Products are sent as references into the snapshot. Everything that is made for a response (compressed pages, texts,
//! products with texts in them, pieces that short runs are copied into) takes memory until the client has read it. It
//! is reserved here first: in the server's account, the key's and the connection's. Requests without a key share one
//! account.
//!
//! Each response reserves all bytes that it sends, even if it shares them with others or with the body cache. So the
//! memory that slow clients hold never exceeds the budget, even after the cache dropped the bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::metrics::values::Counter;

/// Limit of all bodies in flight, in bytes.
const TOTAL_BYTES: u64 = 64 << 20;

/// Limit of one key, and of all requests without a key, in bytes.
const KEY_BYTES: u64 = TOTAL_BYTES / 2;

/// Limit of one connection, in bytes.
const CONNECTION_BYTES: u64 = TOTAL_BYTES / 8;

/// Bytes reserved for one key, connection or server.
pub(crate) type Account = Arc<AtomicU64>;

/// Accounts of one server.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    total: Account,
    keyless: Account,
    /// Number of requests refused because an account was full.
    pub(crate) refused: Counter,
}

impl Budget {
    /// Returns the accounts for a response over `connection`; `key` is the account of its key, if it has one.
    pub(crate) fn payer<'a>(
        &'a self,
        key: Option<&'a Account>,
        connection: &'a Account,
    ) -> Payer<'a> {
        Payer {
            total: &self.total,
            key: key.unwrap_or(&self.keyless),
            connection,
        }
    }

    /// Returns the bytes reserved now.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// Accounts of one response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    total: &'a Account,
    key: &'a Account,
    connection: &'a Account,
}

impl Payer<'_> {
    /// Returns the account of the key.
    pub(crate) fn key(&self) -> &Account {
        self.key
    }

    /// Reserves memory for a body; `None` if an account is full. An empty account accepts one body of any length.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<Permit> {
        let mut permit = Permit {
            accounts: [const { None }; 3],
            bytes: bytes as u64,
        };
        let accounts = [self.total, self.key, self.connection].into_iter();
        for ((account, limit), place) in accounts.zip(LIMITS).zip(&mut permit.accounts) {
            let before = account.fetch_add(permit.bytes, Ordering::Relaxed);
            *place = Some(Arc::clone(account));
            if before > 0 && before + permit.bytes > limit {
                // Dropping the permit returns what it has reserved so far.
                return None;
            }
        }
        Some(permit)
    }

    /// Reserves memory for a body that exists already, until the last reference to it is dropped.
    pub(crate) fn hold(&self, bytes: &Bytes) -> Option<Bytes> {
        Some(self.reserve(bytes.len())?.hold(bytes.clone()))
    }

    /// Returns owned accounts, which may outlive the request.
    pub(crate) fn to_owned(self) -> OwnedPayer {
        OwnedPayer([self.total, self.key, self.connection].map(Arc::clone))
    }
}

/// Owned accounts of a response whose body is still being put together.
#[derive(Debug, Clone)]
pub(crate) struct OwnedPayer([Account; 3]);

impl OwnedPayer {
    /// Returns the accounts, borrowed.
    pub(crate) fn payer(&self) -> Payer<'_> {
        let [total, key, connection] = &self.0;
        Payer {
            total,
            key,
            connection,
        }
    }
}

/// Memory reserved for a body; dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct Permit {
    /// Accounts in the order of [`LIMITS`]; `None` only in a permit that was refused.
    accounts: [Option<Account>; 3],
    bytes: u64,
}

/// Limits of the server's, the key's and the connection's account.
const LIMITS: [u64; 3] = [TOTAL_BYTES, KEY_BYTES, CONNECTION_BYTES];

impl Permit {
    /// Changes the reserved length, once the exact one is known.
    pub(crate) fn resize(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        for account in self.accounts.iter().flatten() {
            if bytes > self.bytes {
                account.fetch_add(bytes - self.bytes, Ordering::Relaxed);
            } else {
                account.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            }
        }
        self.bytes = bytes;
    }

    /// Ties the reservation to these bytes, until the last reference to them is dropped.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held {
            bytes,
            _permit: self,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.resize(0);
    }
}

struct Held<B> {
    bytes: B,
    _permit: Permit,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_account_refuses_until_bodies_are_dropped() {
        let budget = Budget::default();
        let (key, connection) = (Account::default(), Account::default());
        let payer = budget.payer(Some(&key), &connection);
        let most = usize::try_from(CONNECTION_BYTES).unwrap();
        let mut permit = payer.reserve(most).unwrap();
        assert!(payer.reserve(1).is_none());
        // The refused reservation left nothing in the other accounts.
        assert_eq!(budget.reserved_bytes(), CONNECTION_BYTES);
        permit.resize(3);
        let held = permit.hold(Bytes::from_static(b"abc"));
        let part = held.slice(1..);
        drop(held);
        assert_eq!(key.load(Ordering::Relaxed), 3);
        drop(part);
        assert_eq!(budget.reserved_bytes(), 0);
        // A body longer than the limit is sent if it is alone.
        let alone = payer.reserve(most * 2).unwrap();
        assert!(payer.reserve(1).is_none());
        drop(alone);
        assert_eq!(connection.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn full_key_leaves_room_for_another() {
        let budget = Budget::default();
        let greedy = Account::default();
        let most = usize::try_from(CONNECTION_BYTES).unwrap();
        let connections: Vec<Account> = (0..10).map(|_| Account::default()).collect();
        let taken: Vec<Permit> = connections
            .iter()
            .filter_map(|connection| budget.payer(Some(&greedy), connection).reserve(most))
            .collect();
        assert_eq!(taken.len() as u64, KEY_BYTES / CONNECTION_BYTES);
        let (other, connection) = (Account::default(), Account::default());
        let other = budget.payer(Some(&other), &connection);
        assert!(other.reserve(most).is_some());
    }
}
