//! The client's span, from `traceparent` (W3C Trace Context, level 1).

use http::{HeaderMap, HeaderName};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of a version 00 header in bytes: `00-` + 32 + `-` + 16 + `-` + 2.
const BYTES: usize = 55;

/// The client's span: the parent of the request's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent<'r> {
    /// Id of the trace: 32 hexadecimal digits in lower case, not all 0.
    pub trace_id: &'r str,
    /// Id of the client's span: 16 such digits.
    pub span_id: &'r str,
    /// True if the client samples the trace.
    pub is_sampled: bool,
}

impl<'r> TraceParent<'r> {
    /// Parses the header. A malformed or repeated one is ignored, as W3C Trace Context demands.
    pub(crate) fn of(headers: &'r HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Self::parse(value.to_str().ok()?),
            _ => None,
        }
    }

    fn parse(text: &'r str) -> Option<Self> {
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
        let flags = u8::from_str_radix(flags, 16).ok()?;
        fits.then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn only_exact_traceparents_are_read() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, HeaderValue::from_static(text));
            let read = TraceParent::of(&headers);
            read.map(|read| {
                (
                    read.trace_id.to_owned(),
                    read.span_id.to_owned(),
                    read.is_sampled,
                )
            })
        };
        let expected = |is_sampled| Some((TRACE.to_owned(), SPAN.to_owned(), is_sampled));
        for (text, is_sampled) in [
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                true,
            ),
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
                false,
            ),
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03",
                true,
            ),
            (
                "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                true,
            ),
            (
                "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what.the.future",
                true,
            ),
        ] {
            assert_eq!(read(text), expected(is_sampled), "{text}");
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
        assert_eq!(TraceParent::of(&twice), None);
    }
}
