//! Ids of requests: how they are made, and the one that a thread is judging, for messages that belong to it.
//!
//! Judging never awaits, so a thread judges one request at a time, and its id can lie beside it at no cost.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

thread_local! {
    static CURRENT: Cell<Option<HeaderValue>> = const { Cell::new(None) };
}

/// The id of the request that this thread is judging, if it is.
pub(crate) fn current() -> Option<String> {
    let id = CURRENT.take()?;
    let text = id.to_str().ok().map(str::to_owned);
    CURRENT.set(Some(id));
    text
}

/// Judges a request: until `judge` returns, messages of this thread belong to `id`. It mustn't panic.
pub(crate) fn during<T>(id: &mut HeaderValue, judge: impl FnOnce() -> T) -> T {
    CURRENT.set(Some(mem::replace(id, HeaderValue::from_static(""))));
    let judged = judge();
    if let Some(own) = CURRENT.take() {
        *id = own;
    }
    judged
}

/// Length of the prefix of a server process's ids: 64 random bits and a hyphen.
const START_BYTES: usize = 17;

/// Makes ids of requests: a random start, then counting.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// The random start and a hyphen; room for the count.
    start: [u8; START_BYTES + 16],
    next: AtomicU64,
}

impl RequestIds {
    /// Ids that no other server process makes.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut start = [b'-'; START_BYTES + 16];
        let random = format!("{:016x}", getrandom::u64()?);
        start[..START_BYTES - 1].copy_from_slice(random.as_bytes());
        Ok(Self {
            start,
            next: AtomicU64::new(0),
        })
    }

    /// The client's own id where it is a fit one, else a new one.
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

/// Writes a number behind the start of an id; returns how many digits it has.
fn hexadecimal(number: u64, id: &mut [u8; START_BYTES + 16]) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let length = (number.max(1).ilog2() / 4 + 1) as usize;
    for (index, digit) in id[START_BYTES..][..length].iter_mut().enumerate() {
        *digit = DIGITS[(number >> (4 * (length - 1 - index)) & 15) as usize];
    }
    length
}

/// `[A-Za-z0-9._:-]{1,128}` (docs/contract/endpoints.md#request-identifiers).
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
    fn ids_count_on_from_a_random_start() {
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
