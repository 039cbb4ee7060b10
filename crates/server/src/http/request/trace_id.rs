//! The trace that a request belongs to, from `traceparent` (W3C Trace Context, level 1).

use http::{HeaderMap, HeaderName};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of a version 00 header in bytes: `00-` + 32 + `-` + 16 + `-` + 2.
const BYTES: usize = 55;

/// Returns the trace of a request: 32 hexadecimal digits in lower case, not all 0. A malformed or repeated header is ignored,
/// as W3C Trace Context demands.
pub(crate) fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => parse(value.to_str().ok()?),
        _ => None,
    }
}

fn parse(text: &str) -> Option<&str> {
    let is_hex = |text: &str| {
        let mut digits = text.bytes();
        digits.all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |text: &str| is_hex(text) && text.bytes().any(|digit| digit != b'0');
    if !text.is_ascii() || text.len() < BYTES {
        return None;
    }
    // A later version may have more fields after another hyphen.
    let (known, more) = text.split_at(BYTES);
    let mut parts = known.split('-');
    let (version, trace_id, span_id, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let fits = parts.next().is_none()
        && [version.len(), trace_id.len(), span_id.len(), flags.len()] == [2, 32, 16, 2]
        && is_hex(version)
        && version != "ff"
        && is_id(trace_id)
        && is_id(span_id)
        && is_hex(flags)
        && (more.is_empty() || (version != "00" && more.starts_with('-')));
    fits.then_some(trace_id)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn only_exact_traceparents_are_read() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, HeaderValue::from_static(text));
            trace_id(&headers).map(str::to_owned)
        };
        for text in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what.the.future",
        ] {
            assert_eq!(read(text).as_deref(), Some(TRACE), "{text}");
        }
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
            "0--0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "\"},{\"level\":\"ERROR\",\"message\":\"0af7651916cd43dd8448eb21\"",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            let value = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
            twice.append(TRACEPARENT, HeaderValue::from_static(value));
        }
        assert_eq!(trace_id(&twice), None);
    }
}
