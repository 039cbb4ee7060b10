//! Maximum numbers of connections.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Predicate for addresses without a limit, such as those of proxies.
pub type Exempt = dyn Fn(IpAddr) -> bool + Send + Sync;

/// Maximum numbers of connections.
#[derive(Clone)]
pub struct Limits {
    /// Maximum number of connections in all.
    pub connections: usize,
    /// Maximum number from one IPv4 address, or one IPv6 /64.
    pub per_address: usize,
    /// Addresses without a limit of their own.
    pub exempt: Arc<Exempt>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            per_address: 2000,
            exempt: Arc::new(|_| false),
        }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Limits")
            .field("connections", &self.connections)
            .field("per_address", &self.per_address)
            .finish_non_exhaustive()
    }
}

/// Minimum of both limits of keyless connections: a client may open several before one presents its key.
const MIN_SHARE: usize = 16;

impl Limits {
    /// Returns the maximum number of connections that haven't presented a valid key: three quarters of all.
    pub(super) fn keyless(&self) -> usize {
        (self.connections / 4 * 3)
            .max(MIN_SHARE)
            .min(self.connections)
    }

    /// Returns the maximum number of such connections from one address: half of its limit.
    pub(super) fn keyless_per_address(&self) -> usize {
        (self.per_address / 2).max(MIN_SHARE).min(self.per_address)
    }
}
