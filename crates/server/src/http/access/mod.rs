//! Access: authentication, client addresses, quotas, limits of failed keys, CORS, simulated errors.

pub(crate) mod authentication;
pub mod client;
pub mod cors;
pub mod failed_keys;
pub(crate) mod quota;
pub(crate) mod simulation;

use std::sync::Arc;

use crate::limits::SharedLimits;

/// Limits and trust settings. By default only the quotas of keys apply, for this server alone.
#[derive(Debug, Default)]
pub struct Access {
    /// Quotas shared with other servers.
    pub shared: Option<Arc<SharedLimits>>,
    /// Requests with invalid keys, counted per client address.
    pub failed_keys: failed_keys::FailedKeys,
    /// Proxies that are trusted to name the client's address.
    pub proxies: client::Proxies,
    /// Origins whose pages may read endpoints that need a key.
    pub cors: Arc<cors::Cors>,
}
