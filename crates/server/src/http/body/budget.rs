//! Memory for bodies on their way to clients.
//!
//! Products go out as references into the snapshot. Whatever is made for an answer instead (compressed pages, texts,
//! products with texts in them, pieces that short runs are copied into) takes memory until its client has taken it.
//! It is reserved here first: in all, for each key, and for each connection. Requests without a key share one account.
//!
//! Each answer reserves the whole of what it sends, even if it shares that with others or the body cache. So what
//! slow clients keep alive never exceeds the budget, whatever the cache has dropped meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::metrics::Counter;

/// Bytes of all answers that are being sent.
const TOTAL_BYTES: u64 = 64 << 20;

/// Bytes of one key's answers, or of all answers without a key.
const KEY_BYTES: u64 = TOTAL_BYTES / 2;

/// Bytes of one connection's answers.
const CONNECTION_BYTES: u64 = TOTAL_BYTES / 8;

/// Bytes reserved by one key, connection or server.
pub(crate) type Account = Arc<AtomicU64>;

/// The accounts of one server.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    total: Account,
    keyless: Account,
    /// Requests refused because an account was full.
    pub(crate) refused: Counter,
}

impl Budget {
    /// The accounts that pay for an answer over `connection`; `key` is the account of its key, if it has one.
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

    /// Bytes reserved at this moment.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// The accounts that pay for one answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    total: &'a Account,
    key: &'a Account,
    connection: &'a Account,
}

impl Payer<'_> {
    /// The account of the key.
    pub(crate) fn key(&self) -> &Account {
        self.key
    }

    /// Reserves room for a body; `None` if an account is full. One body fits into an empty account, however long it is.
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
                // Dropped, the permit gives back what it took so far.
                return None;
            }
        }
        Some(permit)
    }

    /// A body that was made, reserved for until the last reference to it is dropped.
    pub(crate) fn hold(&self, bytes: &Bytes) -> Option<Bytes> {
        Some(self.reserve(bytes.len())?.hold(bytes.clone()))
    }

    /// The accounts, for longer than the request is looked at.
    pub(crate) fn to_owned(self) -> OwnedPayer {
        OwnedPayer([self.total, self.key, self.connection].map(Arc::clone))
    }
}

/// The accounts that pay for an answer which isn't whole yet.
#[derive(Debug, Clone)]
pub(crate) struct OwnedPayer([Account; 3]);

impl OwnedPayer {
    /// The same, borrowed.
    pub(crate) fn payer(&self) -> Payer<'_> {
        let [total, key, connection] = &self.0;
        Payer {
            total,
            key,
            connection,
        }
    }
}

/// Memory reserved for a body, until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    /// In the order of [`LIMITS`]. None only in a permit that was refused.
    accounts: [Option<Account>; 3],
    bytes: u64,
}

/// Limits of a server's, a key's and a connection's account.
const LIMITS: [u64; 3] = [TOTAL_BYTES, KEY_BYTES, CONNECTION_BYTES];

impl Permit {
    /// Sets how much is reserved, once it is known to the byte.
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

    /// The bytes, reserved for until the last reference to them is dropped.
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
        // The refusal left nothing behind in the other accounts.
        assert_eq!(budget.reserved_bytes(), CONNECTION_BYTES);
        permit.resize(3);
        let held = permit.hold(Bytes::from_static(b"abc"));
        let part = held.slice(1..);
        drop(held);
        assert_eq!(key.load(Ordering::Relaxed), 3);
        drop(part);
        assert_eq!(budget.reserved_bytes(), 0);
        // A longer body than the limit is sent if it is alone.
        let alone = payer.reserve(most * 2).unwrap();
        assert!(payer.reserve(1).is_none());
        drop(alone);
        assert_eq!(connection.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_key_leaves_room_for_another() {
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
