//! The id of the request that a thread is judging, for messages that belong to it.
//!
//! Judging never awaits, so a thread judges one request at a time, and its id can lie beside it at no cost.

use std::cell::Cell;
use std::mem;

use http::HeaderValue;

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
pub(super) fn during<T>(id: &mut HeaderValue, judge: impl FnOnce() -> T) -> T {
    CURRENT.set(Some(mem::replace(id, HeaderValue::from_static(""))));
    let judged = judge();
    if let Some(own) = CURRENT.take() {
        *id = own;
    }
    judged
}
