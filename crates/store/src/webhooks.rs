//! Webhook endpoints: what is stored of them, and the store's methods about them
//! (docs/contract/webhooks.md). Positions and bodies are opaque texts here.
//!
//! - `rows`: rows, and what operators and deliverers do to them; `place`: where they are; `backup`: those of backups

pub(crate) mod backup;
pub(crate) mod place;
mod rows;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::audit::AuditContext;

pub(crate) use rows::{from_json, to_json};

/// Time for which an endpoint is leased, by the store's clock: the database's, or that of the machine since its start.
pub const LEASE: Duration = Duration::from_secs(30);

/// Maximum number of endpoints.
pub const MAX_ENDPOINTS: usize = 20_000;

/// Number of attempts that are kept of an endpoint.
pub const KEPT_ATTEMPTS: u32 = 50;

/// Number of generations of an endpoint's secret that may be valid together.
pub const MAX_SECRETS: usize = 4;

/// A webhook endpoint: a durable reader of the changes feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Random id, such as `wh_2f6c…`.
    pub id: String,
    /// Prefix of the key whose catalog it is told of.
    pub key: String,
    /// Address that events are sent to.
    pub url: String,
    /// Its own filters: a query string, as in `changes_url`; empty for none.
    pub filters: String,
    /// API version of `changes_url`; by default the key's.
    pub api_version: Option<String>,
    /// Format of its events.
    pub format: EventFormat,
    /// Time at which it was created.
    pub created_at: Timestamp,
    /// Status.
    pub status: EndpointStatus,
    /// Reason of the status, for operators; none while it is active.
    pub status_reason: Option<String>,
    /// Generations of its secret, newest first, at most [`MAX_SECRETS`].
    pub secrets: Vec<SecretGeneration>,
    /// State of delivery, which deliverers write.
    pub progress: Progress,
    /// Id of a test event that an operator asked for.
    pub test: Option<String>,
}

/// Format of an endpoint's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum EventFormat {
    /// One event for all that changed since the last one.
    #[default]
    CatalogChanged,
    /// One event for each product and revision.
    ProductUpdate,
}

impl EventFormat {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::CatalogChanged, Self::ProductUpdate];

    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CatalogChanged => "catalog.changed",
            Self::ProductUpdate => "product.update",
        }
    }
}

/// State of delivery of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Position that the endpoint acknowledged.
    pub position: String,
    /// Event that isn't acknowledged yet, stored before its first attempt.
    pub pending: Option<PendingEvent>,
    /// Time of the first of the failures in a row.
    pub failing_since: Option<Timestamp>,
    /// Time of the next attempt of the pending event, by the clock of the deliverer that wrote it.
    pub next_attempt_at: Option<Timestamp>,
}

/// An event that isn't acknowledged yet, whole: an attempt repeats the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingEvent {
    /// Id, the same for each attempt.
    pub id: String,
    /// Body, at most 16 kB.
    pub body: String,
    /// Position that is acknowledged with it.
    pub end: String,
    /// Number of failed attempts.
    pub failures: u32,
}

/// Status of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EndpointStatus {
    /// It is told of changes.
    Active,
    /// An operator or a restore paused it.
    Paused,
    /// Failures or its receiver's 410 disabled it.
    Disabled,
}

impl EndpointStatus {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }
}

/// A generation of an endpoint's secret: with the key file and the id, the secret is derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretGeneration {
    /// Random salt.
    pub salt: [u8; 16],
    /// Time at which it ends, while a newer one overlaps it; none for the newest.
    pub ends_at: Option<Timestamp>,
}

/// An endpoint to create. It begins active, with nothing pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEndpoint {
    /// Random id.
    pub id: String,
    /// Prefix of its key.
    pub key: String,
    /// Address that events are sent to.
    pub url: String,
    /// Filters, a query string.
    pub filters: String,
    /// API version of `changes_url`.
    pub api_version: Option<String>,
    /// Format of its events.
    pub format: EventFormat,
    /// Salt of its secret.
    pub salt: [u8; 16],
    /// Position from which on it is told of changes.
    pub position: String,
}

/// An operator's change of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointChange {
    /// Makes it paused, for a reason.
    Pause(String),
    /// Makes it active, with no failures and its pending event due at once. The position stays.
    Enable,
    /// Makes the next attempt of its pending event due at once. Failures go on counting.
    Retry,
    /// Adds a generation of its secret; all others end at `overlap_ends_at` at the latest. Those that ended are deleted, and
    /// the oldest beyond [`MAX_SECRETS`].
    Rotate {
        /// Salt of the new generation.
        salt: [u8; 16],
        /// End of the older ones.
        overlap_ends_at: Timestamp,
    },
    /// Asks for a test event of this id.
    Test(String),
    /// Sets the position, and drops the pending event.
    Replay(String),
}

/// State of all endpoints, in one cheap read. Compare for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookState {
    /// Counter of operators' changes, which grows by random steps.
    pub changes: u64,
    /// Fingerprint of the key file from which all secrets are derived; none while there is no endpoint.
    pub key_fingerprint: Option<String>,
}

/// A lease of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Id of the endpoint.
    pub endpoint: String,
    /// Random token of the holder.
    pub token: String,
    /// Counter that fences late writers: a later lease, a replay and a deletion raise it.
    pub fence: u64,
}

/// Outcome of work on a leased endpoint, as a deliverer writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryUpdate {
    /// The lease.
    pub lease: Lease,
    /// New state of delivery.
    pub progress: Progress,
    /// Attempt that was made.
    pub attempt: Option<Attempt>,
    /// Reason for which an active endpoint becomes disabled.
    pub disable: Option<String>,
    /// Id of the test event that was attempted: it isn't asked for any more.
    pub tested: Option<String>,
    /// True to end the lease; otherwise it lasts for [`LEASE`] from now on.
    pub release: bool,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Time at which it began.
    pub at: Timestamp,
    /// Id of the event.
    pub event: String,
    /// Type of the event.
    pub event_type: String,
    /// Status of the response, or the reason for which there was none; never a part of a body.
    pub outcome: String,
    /// True if it was taken: a 2xx.
    pub is_taken: bool,
    /// Duration, in milliseconds.
    pub milliseconds: u32,
}

impl crate::Store {
    /// Returns the state of all endpoints: poll it, and read more only if it differs.
    ///
    /// Endpoints that came with a copy of a database made by its own tools are paused here, before anything is delivered.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn webhook_state(&self) -> Result<WebhookState, StoreError> {
        place::state_of(self.db())
    }

    /// Returns all endpoints, oldest first.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        let rows = place::read_all(self.db(), |tx| rows::read(tx, rows::Which::All))?;
        Ok(rows.into_iter().map(|row| row.endpoint).collect())
    }

    /// Returns an endpoint.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, StoreError> {
        place::read(self.db(), |tx| rows::one(tx, id))
    }

    /// Returns the last attempts of an endpoint, at most [`KEPT_ATTEMPTS`], newest first.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn attempts(&self, id: &str) -> Result<Vec<Attempt>, StoreError> {
        place::read(self.db(), |tx| rows::attempts(tx, id))
    }

    /// Creates an endpoint, and records the fingerprint of the key file if there was no endpoint before.
    ///
    /// # Errors
    ///
    /// If secrets are derived from another key file ([`StoreError::WebhookKeyDiffers`]), there would be more than
    /// [`MAX_ENDPOINTS`], or the store can't be written.
    pub fn create_endpoint(
        &self,
        new: &NewEndpoint,
        key_fingerprint: &str,
        context: &AuditContext,
    ) -> Result<(), StoreError> {
        place::change(self.db(), true, context, |tx| {
            rows::create(tx, new, key_fingerprint)
        })
    }

    /// Changes an endpoint. Returns it as it is then; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::NothingToRetry`] for [`EndpointChange::Retry`] if no event waits; if the store can't be written.
    pub fn change_endpoint(
        &self,
        id: &str,
        change: &EndpointChange,
        context: &AuditContext,
    ) -> Result<Option<Endpoint>, StoreError> {
        place::change(self.db(), false, context, |tx| rows::change(tx, id, change))
    }

    /// Makes all endpoints of a key those of its successor. Returns their number.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn move_endpoints(
        &self,
        from_key: &str,
        to_key: &str,
        context: &AuditContext,
    ) -> Result<u64, StoreError> {
        place::change(self.db(), false, context, |tx| {
            rows::move_all(tx, from_key, to_key)
        })
    }

    /// Deletes an endpoint and its attempts; with the last one also the fingerprint of the key file. Returns whether there
    /// was one.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn delete_endpoint(&self, id: &str, context: &AuditContext) -> Result<bool, StoreError> {
        place::change(self.db(), false, context, |tx| rows::delete_one(tx, id))
    }

    /// Leases those of the endpoints that exist and that nobody else leases, whatever their status, for [`LEASE`]. Returns
    /// each as it is then.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn take_endpoints(&self, ids: &[String]) -> Result<Vec<(Lease, Endpoint)>, StoreError> {
        place::deliver(self.db(), |tx| rows::take(tx, ids))
    }

    /// Writes the state of delivery of leased endpoints, in one transaction. Returns for each whether it was written: false
    /// if the fence was raised meanwhile; a release then still ends a lease with the same token.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn update_deliveries(&self, updates: &[DeliveryUpdate]) -> Result<Vec<bool>, StoreError> {
        place::deliver(self.db(), |tx| rows::update(tx, updates))
    }
}
