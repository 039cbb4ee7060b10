//! Reads requests: query parameters, headers, and the identifier of each request.

pub(crate) mod accept;
pub mod encoding;
pub(crate) mod host;
pub mod parameters;
pub(crate) mod query;
pub(crate) mod request_id;
