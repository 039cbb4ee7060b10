//! The `Host` header. RFC 9112, section 3.2, makes a server refuse an HTTP/1.1 request without `Host`, with several, or
//! with an invalid one. If a proxy and a server disagree about the host, a request for one can be answered as
//! another's.

use http::header::HOST;
use http::request::Parts;
use http::{HeaderValue, Version};

use crate::http::error::ApiError;

/// Refuses a request whose `Host` breaks the RFC.
pub(crate) fn check(request: &Parts) -> Result<(), ApiError> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let is_right = match (hosts.next(), hosts.next()) {
        // HTTP/2 has it in the target, HTTP/1.0 may omit it.
        (None, _) => request.version != Version::HTTP_11,
        (Some(host), None) => can_be_host(host),
        (Some(_), Some(_)) => false,
    };
    is_right.then_some(()).ok_or_else(ApiError::bad_host)
}

/// Characters of a host and a port (RFC 3986, section 3.2).
static IN_HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut others: &[u8] = b"-._~%!$&'()*+,;=:[]";
    while let [other, rest @ ..] = others {
        table[*other as usize] = true;
        others = rest;
    }
    table
};

/// Returns true if the value has only characters of a host and a port. It may be empty.
fn can_be_host(host: &HeaderValue) -> bool {
    host.as_bytes()
        .iter()
        .all(|byte| IN_HOST[usize::from(*byte)])
}
