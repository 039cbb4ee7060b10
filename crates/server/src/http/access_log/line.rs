//! One line of the access log.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::Serialize;
use vitrine_ingest::escape::lines;

use crate::http::access::client::Peer;

/// Line of an answered request.
#[derive(Debug)]
pub struct Line<'a> {
    /// Time at which the response was ready.
    pub time: Timestamp,
    /// Id of the request.
    pub request_id: &'a str,
    /// Address of the client.
    pub remote: Peer,
    /// Method, cut to 16 characters.
    pub method: &'a str,
    /// Path as sent, cut to 256 characters. If it contains a key, it is decoded, and cut before the secret.
    pub path: &'a str,
    /// Template of the route; null without a route.
    pub route: Option<&'static str>,
    /// Status code.
    pub status: u16,
    /// Length of the body, in bytes.
    pub bytes: u64,
    /// Time from the arrival of the head to the response being ready.
    pub duration_microseconds: u64,
    /// Prefix of the key.
    pub key: Option<&'a str>,
    /// API version of the response.
    pub version: Option<&'static str>,
    /// Number of the snapshot's revision.
    pub revision: Option<u64>,
    /// Id of the request's trace.
    pub trace_id: Option<&'a str>,
}

impl Line<'_> {
    /// Appends the line as a JSON object with a line feed. It is formatted by hand, because it is written for every
    /// request, and a general serialiser also looks for characters to escape in names.
    pub(super) fn write(&self, time: &mut TimeText, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"time\":\"");
        out.extend_from_slice(time.of(self.time).as_bytes());
        out.extend_from_slice(b"\",\"request_id\":");
        text(self.request_id, out);
        out.extend_from_slice(b",\"remote\":");
        peer(self.remote, out);
        out.extend_from_slice(b",\"method\":");
        text(self.method, out);
        out.extend_from_slice(b",\"path\":");
        text(self.path, out);
        out.extend_from_slice(b",\"route\":");
        plain_or_null(self.route, out);
        out.extend_from_slice(b",\"status\":");
        other(&self.status, out);
        out.extend_from_slice(b",\"bytes\":");
        other(&self.bytes, out);
        out.extend_from_slice(b",\"duration_microseconds\":");
        other(&self.duration_microseconds, out);
        out.extend_from_slice(b",\"key\":");
        text_or_null(self.key, out);
        out.extend_from_slice(b",\"version\":");
        plain_or_null(self.version, out);
        out.extend_from_slice(b",\"revision\":");
        other(&self.revision, out);
        out.extend_from_slice(b",\"trace_id\":");
        text_or_null(self.trace_id, out);
        out.extend_from_slice(b"}\n");
    }
}

fn text_or_null(value: Option<&str>, out: &mut Vec<u8>) {
    match value {
        Some(value) => text(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends a constant text, which needs no escaping.
fn plain_or_null(value: Option<&'static str>, out: &mut Vec<u8>) {
    match value {
        Some(value) => plain(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends a text as JSON, with terminal control characters escaped; printable ASCII is copied.
fn text(value: &str, out: &mut Vec<u8>) {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\');
    if value.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        return plain(value, out);
    }
    // A text is always JSON.
    let json = serde_json::to_string(value).unwrap_or_default();
    out.extend_from_slice(lines(&json).as_bytes());
}

fn plain(value: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Appends an address as JSON. IPv4 addresses, the common case, are formatted by hand, which is faster.
fn peer(peer: Peer, out: &mut Vec<u8>) {
    let Peer::Address(IpAddr::V4(address)) = peer else {
        return other(&peer, out);
    };
    let mut before = b'"';
    for octet in address.octets() {
        out.push(before);
        other(&octet, out);
        before = b'.';
    }
    out.push(b'"');
}

/// Appends any other value as JSON.
fn other(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // Neither serialising texts and numbers nor writing to memory can fail.
    let _ = serde_json::to_writer(out, value);
}

/// Formatter of times (RFC 3339, to the nanosecond), which caches the text of the last second.
#[derive(Debug, Default)]
pub(super) struct TimeText {
    second: Option<i64>,
    text: String,
    /// Length of the text up to the second, in bytes.
    second_bytes: usize,
}

impl TimeText {
    fn of(&mut self, time: Timestamp) -> &str {
        // Clamped, so that no fraction of a second is negative; such a clock is wrong anyway.
        let time = time.max(Timestamp::UNIX_EPOCH);
        let second = time.as_second();
        if self.second != Some(second) {
            let whole = Timestamp::from_second(second).unwrap_or(time).to_string();
            self.text = whole.trim_end_matches('Z').to_owned();
            self.second_bytes = self.text.len();
            self.second = Some(second);
        }
        self.text.truncate(self.second_bytes);
        let nanosecond = time.subsec_nanosecond();
        if nanosecond != 0 {
            // The next power of ten is added, to get leading zeros.
            let mut digits = itoa::Buffer::new();
            self.text.push('.');
            self.text
                .push_str(&digits.format(1_000_000_000 + nanosecond)[1..]);
            let digits = self.text.trim_end_matches('0').len();
            self.text.truncate(digits);
        }
        self.text.push('Z');
        &self.text
    }
}

#[cfg(test)]
impl<'a> Line<'a> {
    /// Returns an example.
    pub(super) fn example(path: &'a str, bytes: u64) -> Self {
        Self {
            time: Timestamp::UNIX_EPOCH,
            request_id: "id",
            remote: Peer::Unix,
            method: "GET",
            path,
            route: None,
            status: 200,
            bytes,
            duration_microseconds: 1,
            key: None,
            version: None,
            revision: None,
            trace_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn line_of_any_request_is_valid_json(
            path in "\\PC*|[\\x00-\\u{9f}\u{61c}\u{200e}-\u{206f}\"\\\\]*",
            request_id in "\\PC*",
            key in proptest::option::of("\\PC*"),
            numbers in any::<(u64, u64, u16)>(),
            remote in any::<IpAddr>(),
        ) {
            let line = Line {
                request_id: &request_id,
                remote: Some(remote).into(),
                key: key.as_deref(),
                duration_microseconds: numbers.1,
                status: numbers.2,
                ..Line::example(&path, numbers.0)
            };
            let mut text = Vec::new();
            line.write(&mut TimeText::default(), &mut text);
            prop_assert_eq!(text.pop(), Some(b'\n'));
            let shown = std::str::from_utf8(&text)?;
            prop_assert!(!shown.contains(vitrine_ingest::escape::is_steering), "{shown}");
            let read: serde_json::Value = serde_json::from_slice(&text)?;
            let expected = serde_json::json!({
                "time": "1970-01-01T00:00:00Z",
                "request_id": request_id,
                "remote": remote.to_string(),
                "method": "GET",
                "path": path,
                "route": null,
                "status": numbers.2,
                "bytes": numbers.0,
                "duration_microseconds": numbers.1,
                "key": key,
                "version": null,
                "revision": null,
                "trace_id": null,
            });
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn times_are_formatted_like_the_library(nanoseconds in proptest::collection::vec(0..5_000_000_000_i64, 1..20)) {
            let mut text = TimeText::default();
            for nanosecond in nanoseconds {
                // Fewer digits as well, down to the whole second.
                for unit in [1, 1_000, 1_000_000, 1_000_000_000] {
                    let time = i128::from(nanosecond / unit * unit);
                    let time = Timestamp::from_nanosecond(time).unwrap();
                    let expected = time.to_string();
                    prop_assert_eq!(text.of(time), expected.as_str());
                }
            }
        }
    }
}
