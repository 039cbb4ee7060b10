//! Ids of requests: generating them, and the id of the request that a thread is working on, for log messages.
//!
//! A poll of a request doesn't await, so a thread works on one request at a time, and a thread-local holds its id.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

thread_local! {
    static CURRENT: Cell<Option<HeaderValue>> = const { Cell::new(None) };
}

/// Returns the id of the request that this thread is working on, if any.
pub(crate) fn current() -> Option<String> {
    let id = CURRENT.take()?;
    let text = id.to_str().ok().map(str::to_owned);
    CURRENT.set(Some(id));
    text
}

/// Runs one poll of a request: until `poll` returns, log messages of this thread get `id`. `poll` mustn't panic.
pub(crate) fn during<T>(id: &mut HeaderValue, poll: impl FnOnce() -> T) -> T {
    CURRENT.set(Some(mem::replace(id, HeaderValue::from_static(""))));
    let result = poll();
    if let Some(own) = CURRENT.take() {
        *id = own;
    }
    result
}

/// Length of the prefix of a server process's ids: 64 random bits and a hyphen.
const START_BYTES: usize = 17;

/// Generator of request ids: a random prefix and a counter.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// Random prefix and a hyphen, with room for the count.
    start: [u8; START_BYTES + 16],
    next: AtomicU64,
}

impl RequestIds {
    /// Returns a generator whose ids no other server process generates.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut start = [b'-'; START_BYTES + 16];
        let random = format!("{:016x}", getrandom::u64()?);
        start[..START_BYTES - 1].copy_from_slice(random.as_bytes());
        Ok(Self {
            start,
            next: AtomicU64::new(0),
        })
    }

    /// Returns the client's own id if it is valid, else a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let mut given = headers.get_all(X_REQUEST_ID).iter();
        if let (Some(id), None) = (given.next(), given.next())
            && is_fit(id.as_bytes())
        {
            return id.clone();
        }
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = self.start;
        let digits = hexadecimal(count, &mut id);
        HeaderValue::from_bytes(&id[..START_BYTES + digits])
            .unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    }
}

/// Appends a number to the prefix; returns the number of its digits.
fn hexadecimal(number: u64, id: &mut [u8; START_BYTES + 16]) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let length = (number.max(1).ilog2() / 4 + 1) as usize;
    for (index, digit) in id[START_BYTES..][..length].iter_mut().enumerate() {
        *digit = DIGITS[(number >> (4 * (length - 1 - index)) & 15) as usize];
    }
    length
}

/// Returns true for `[A-Za-z0-9._:-]{1,128}` (docs/contract/endpoints.md#request-identifiers).
fn is_fit(id: &[u8]) -> bool {
    (1..=128).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_up_from_a_random_prefix() {
        let ids = RequestIds::new().expect("random numbers");
        let made = |ids: &RequestIds| ids.of(&HeaderMap::new());
        let first = made(&ids);
        let start = first.to_str().expect("text").strip_suffix("-0");
        let start = start.expect("the first").to_owned();
        assert_eq!(start.len(), 16, "{start}");
        assert!(start.bytes().all(|digit| digit.is_ascii_hexdigit()));
        for count in [1, 15, 16, 255, 256, 0x1234_5678_9abc, u64::MAX] {
            ids.next.store(count, Ordering::Relaxed);
            assert_eq!(made(&ids), format!("{start}-{count:x}"));
        }
        let another = RequestIds::new().expect("random numbers");
        assert_ne!(made(&another), first);
    }
}
