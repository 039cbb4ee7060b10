//! Webhook endpoints: what is stored of them, and what operators and deliverers do to them
//! (docs/contract/webhooks.md). Positions and bodies are opaque texts here.
//!
//! Deliverers lease rows by a clock that nobody sets: the database's in PostgreSQL, the machine's since its start in SQLite.
//!
//! - `place`: where the rows are, in stores and in backups

pub(crate) mod place;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::audit::{AuditContext, webhook_change};
use crate::db::{Row, Tx, Value, values};
use crate::named::named;
use crate::values::{random_id, random_step};

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
    /// Prefix of the key whose catalog it reads.
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

impl Endpoint {
    /// Returns a new endpoint of this id: active, with nothing pending, notified of all that changes after `position`. `salt` is that of its secret.
    #[must_use]
    pub fn new(id: String, key: String, url: String, salt: [u8; 16], position: String) -> Self {
        Self {
            id,
            key,
            url,
            filters: String::new(),
            api_version: None,
            format: EventFormat::default(),
            created_at: now(),
            status: EndpointStatus::Active,
            status_reason: None,
            secrets: vec![SecretGeneration {
                salt,
                ends_at: None,
            }],
            progress: Progress {
                position,
                ..Progress::default()
            },
            test: None,
        }
    }
}

named! {
    /// Format of an endpoint's events.
    #[derive(Default, Serialize, Deserialize)]
    pub enum EventFormat {
        /// One event for all that changed since the last one.
        #[default]
        CatalogChanged = "catalog.changed",
        /// One event for each product and revision.
        ProductUpdate = "product.update",
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

named! {
    /// Status of an endpoint.
    #[derive(Serialize, Deserialize)]
    pub enum EndpointStatus {
        /// It is notified of changes.
        Active = "active",
        /// An operator or a restore paused it.
        Paused = "paused",
        /// Failures or its receiver's 410 disabled it.
        Disabled = "disabled",
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
    pub fn webhook_state(&self) -> Result<WebhookState, StoreError> {
        let db = self.db();
        place::pause_copy(db)?;
        place::read(db, state)
    }

    /// Returns all endpoints, oldest first.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        let rows = place::read_all(self.db(), |tx| read(tx, Which::All))?;
        Ok(rows.into_iter().map(|row| row.endpoint).collect())
    }

    /// Returns an endpoint.
    pub fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, StoreError> {
        let sql = "select document, fence, lease from vitrine.webhook_endpoint where id = $1";
        place::read(self.db(), |tx| {
            tx.row(sql, values![id], |row| Ok(stored(row)?.endpoint))
        })
    }

    /// Returns the last attempts of an endpoint, at most [`KEPT_ATTEMPTS`], newest first.
    pub fn attempts(&self, id: &str) -> Result<Vec<Attempt>, StoreError> {
        let sql = "select document from vitrine.webhook_attempt where endpoint = $1 \
                   order by number desc";
        place::read(self.db(), |tx| {
            tx.rows(sql, values![id], |row| from_json(row.get(0)?))
        })
    }

    /// Creates an endpoint, and records the fingerprint of the key file if there was no endpoint before.
    ///
    /// # Errors
    ///
    /// If secrets are derived from another key file ([`StoreError::WebhookKeyDiffers`]), there would be more than
    /// [`MAX_ENDPOINTS`], or the store can't be written.
    pub fn create_endpoint(
        &self,
        new: &Endpoint,
        key_fingerprint: &str,
        context: &AuditContext,
    ) -> Result<(), StoreError> {
        place::change(self.db(), true, context, |tx| {
            let known = state(tx)?.key_fingerprint;
            if known.is_some_and(|known| known != key_fingerprint) {
                return Err(StoreError::WebhookKeyDiffers);
            }
            if read(tx, Which::All)?.len() >= MAX_ENDPOINTS {
                return Err(StoreError::Unsupported(
                    "there are 20,000 webhook endpoints, which is the limit; nothing was changed",
                ));
            }
            insert(tx, new)?;
            set_fingerprint(tx, Some(key_fingerprint))?;
            count(tx)?;
            Ok(((), vec![webhook_change(None, Some(new))]))
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
        place::change(self.db(), false, context, |tx| {
            let Some(mut row) = read(tx, Which::These(&[id.to_owned()]))?.pop() else {
                return Ok((None, Vec::new()));
            };
            let before = row.endpoint.clone();
            row.apply(change)?;
            let after = row.endpoint.clone();
            write(tx, &[row])?;
            count(tx)?;
            let change = webhook_change(Some(&before), Some(&after));
            Ok((Some(after), vec![change]))
        })
    }

    /// Makes all endpoints of a key those of its successor. Returns their number.
    pub fn move_endpoints(
        &self,
        from_key: &str,
        to_key: &str,
        context: &AuditContext,
    ) -> Result<u64, StoreError> {
        place::change(self.db(), false, context, |tx| {
            let all = read(tx, Which::All)?.into_iter();
            let own = all.filter(|row| row.endpoint.key == from_key);
            let ids: Vec<String> = own.map(|row| row.endpoint.id).collect();
            if ids.is_empty() {
                return Ok((0, Vec::new()));
            }
            let mut own = read(tx, Which::These(&ids))?;
            let changes = own.iter_mut().map(|row| {
                let before = row.endpoint.clone();
                to_key.clone_into(&mut row.endpoint.key);
                webhook_change(Some(&before), Some(&row.endpoint))
            });
            let changes = changes.collect();
            write(tx, &own)?;
            count(tx)?;
            Ok((own.len() as u64, changes))
        })
    }

    /// Deletes an endpoint and its attempts; with the last one also the fingerprint of the key file. Returns whether there
    /// was one.
    pub fn delete_endpoint(&self, id: &str, context: &AuditContext) -> Result<bool, StoreError> {
        place::change(self.db(), false, context, |tx| {
            let ids = [id.to_owned()];
            let Some(row) = read(tx, Which::These(&ids))?.pop() else {
                return Ok((false, Vec::new()));
            };
            delete(tx, &ids)?;
            if read(tx, Which::All)?.is_empty() {
                // Secrets of other endpoints may be derived from another file.
                set_fingerprint(tx, None)?;
            }
            count(tx)?;
            Ok((true, vec![webhook_change(Some(&row.endpoint), None)]))
        })
    }

    /// Leases those of the endpoints that exist and that nobody else leases, whatever their status, for [`LEASE`]. Returns
    /// each as it is then.
    pub fn take_endpoints(&self, ids: &[String]) -> Result<Vec<(Lease, Endpoint)>, StoreError> {
        place::deliver(self.db(), |tx| {
            let mut free = read(tx, Which::Free(ids))?;
            let token = random_id()?;
            for row in &mut free {
                row.fence += 1;
                (row.lease, row.renews) = (Some(token.clone()), true);
            }
            write(tx, &free)?;
            let taken = free.into_iter().map(|row| {
                let lease = Lease {
                    endpoint: row.endpoint.id.clone(),
                    token: token.clone(),
                    fence: row.fence,
                };
                (lease, row.endpoint)
            });
            Ok(taken.collect())
        })
    }

    /// Writes the state of delivery of leased endpoints, in one transaction. Returns for each whether it was written: false
    /// if the fence was raised meanwhile; a release then still ends a lease with the same token.
    pub fn update_deliveries(&self, updates: &[DeliveryUpdate]) -> Result<Vec<bool>, StoreError> {
        let ids = updates.iter().map(|one| one.lease.endpoint.clone());
        let ids: Vec<String> = ids.collect();
        place::deliver(self.db(), |tx| {
            let found = read(tx, Which::These(&ids))?.into_iter();
            let mut found: HashMap<String, StoredEndpoint> =
                found.map(|row| (row.endpoint.id.clone(), row)).collect();
            let mut written = Vec::with_capacity(updates.len());
            let mut attempts = Vec::new();
            for update in updates {
                let id = &*update.lease.endpoint;
                let row = found.get_mut(id);
                let is_written = row.is_some_and(|row| row.deliver(update));
                written.push(is_written);
                if let (true, Some(attempt)) = (is_written, &update.attempt) {
                    attempts.push((id, attempt));
                }
            }
            write(tx, &found.into_values().collect::<Vec<_>>())?;
            add_attempts(tx, &attempts)?;
            Ok(written)
        })
    }
}

/// Returns a stored document.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Reads a stored document.
pub(crate) fn from_json<T: DeserializeOwned>(document: &str) -> Result<T, StoreError> {
    let read = serde_json::from_str(document);
    read.map_err(|error| StoreError::Damaged(format!("a webhook can't be read: {error}")))
}

/// Endpoint with its lease.
#[derive(Debug, Clone)]
struct StoredEndpoint {
    endpoint: Endpoint,
    fence: u64,
    /// Token of the last lease that wasn't ended, which may be over.
    lease: Option<String>,
    /// True to let the lease last for [`LEASE`] from the write on; otherwise its end stays.
    renews: bool,
}

impl StoredEndpoint {
    /// Applies an operator's change.
    fn apply(&mut self, change: &EndpointChange) -> Result<(), StoreError> {
        let endpoint = &mut self.endpoint;
        match change {
            EndpointChange::Pause(reason) => {
                (endpoint.status, endpoint.status_reason) =
                    (EndpointStatus::Paused, Some(reason.clone()));
            }
            EndpointChange::Enable => {
                (endpoint.status, endpoint.status_reason) = (EndpointStatus::Active, None);
                let progress = &mut endpoint.progress;
                (progress.failing_since, progress.next_attempt_at) = (None, None);
                if let Some(pending) = &mut progress.pending {
                    pending.failures = 0;
                }
                self.fence += 1;
            }
            EndpointChange::Retry => {
                if let Some(reason) = nothing_to_retry(endpoint) {
                    let id = endpoint.id.clone();
                    return Err(StoreError::NothingToRetry { id, reason });
                }
                // Without a step of the fence: an attempt in flight is the one that is wanted.
                endpoint.progress.next_attempt_at = None;
            }
            EndpointChange::Rotate {
                salt,
                overlap_ends_at,
            } => rotate(endpoint, *salt, *overlap_ends_at),
            EndpointChange::Test(event) => endpoint.test = Some(event.clone()),
            EndpointChange::Replay(position) => {
                endpoint.progress = Progress {
                    position: position.clone(),
                    ..Progress::default()
                };
                self.fence += 1;
            }
        }
        Ok(())
    }

    /// Applies a deliverer's update; false if the fence was raised, so that only the lease may be ended.
    fn deliver(&mut self, update: &DeliveryUpdate) -> bool {
        let is_holder = self.lease.as_deref() == Some(&*update.lease.token);
        let is_written = is_holder && self.fence == update.lease.fence;
        if is_written {
            let endpoint = &mut self.endpoint;
            // A test changes none, and an operator may have, meanwhile.
            if update.tested.is_none() {
                endpoint.progress = update.progress.clone();
            }
            if let (Some(reason), EndpointStatus::Active) = (&update.disable, endpoint.status) {
                (endpoint.status, endpoint.status_reason) =
                    (EndpointStatus::Disabled, Some(reason.clone()));
            }
            if update.tested.is_some() && endpoint.test == update.tested {
                endpoint.test = None;
            }
            self.renews = !update.release;
        }
        if is_holder && update.release {
            self.lease = None;
        }
        is_written
    }
}

/// Returns the reason for which an endpoint has no attempt that could be made earlier, if there is one.
fn nothing_to_retry(endpoint: &Endpoint) -> Option<&'static str> {
    let Progress {
        pending,
        next_attempt_at,
        ..
    } = &endpoint.progress;
    match endpoint.status {
        EndpointStatus::Paused => Some("is paused; enable it: `vitrine webhooks enable`"),
        EndpointStatus::Disabled => Some("is disabled; enable it: `vitrine webhooks enable`"),
        EndpointStatus::Active if pending.is_none() || next_attempt_at.is_none() => {
            Some("has no event that waits for another attempt")
        }
        EndpointStatus::Active => None,
    }
}

/// Adds a generation of the secret.
fn rotate(endpoint: &mut Endpoint, salt: [u8; 16], overlap_ends_at: Timestamp) {
    let now = now();
    for older in &mut endpoint.secrets {
        let end = older.ends_at.unwrap_or(overlap_ends_at);
        older.ends_at = Some(end.min(overlap_ends_at));
    }
    let is_over = |secret: &SecretGeneration| secret.ends_at.is_some_and(|end| end <= now);
    endpoint.secrets.retain(|secret| !is_over(secret));
    endpoint.secrets.truncate(MAX_SECRETS - 1);
    let newest = SecretGeneration {
        salt,
        ends_at: None,
    };
    endpoint.secrets.insert(0, newest);
}

/// Returns the present time as it is stored.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// Selection of rows.
#[derive(Debug, Clone, Copy)]
enum Which<'a> {
    /// All, oldest first.
    All,
    /// Those with these ids, to be written.
    These(&'a [String]),
    /// Those with these ids whose lease is over, to be written; those that another transaction has are left out.
    Free(&'a [String]),
}

/// Steps the counter of changes.
fn count(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = "update vitrine.webhook_state set changes = changes + $1";
    tx.execute(sql, values![random_step()?]).map(drop)
}

/// Sets the fingerprint of the key file.
fn set_fingerprint(tx: &mut Tx<'_>, fingerprint: Option<&str>) -> Result<(), StoreError> {
    let sql = "update vitrine.webhook_state set key_fingerprint = $1";
    tx.execute(sql, values![fingerprint]).map(drop)
}

/// Returns an endpoint as paused for a reason; a disabled one stays so.
fn paused(endpoint: Endpoint, reason: &str) -> Endpoint {
    match endpoint.status {
        EndpointStatus::Disabled => endpoint,
        EndpointStatus::Active | EndpointStatus::Paused => Endpoint {
            status: EndpointStatus::Paused,
            status_reason: Some(reason.to_owned()),
            test: None,
            ..endpoint
        },
    }
}

/// Pauses all active endpoints for a reason, and fences late writers.
fn pause_all(tx: &mut Tx<'_>, reason: &str) -> Result<(), StoreError> {
    let mut all = read(tx, Which::All)?;
    for row in &mut all {
        row.endpoint = paused(row.endpoint.clone(), reason);
        row.fence += 1;
        row.lease = None;
    }
    write(tx, &all)?;
    count(tx)
}

/// Reads the state; the default if there is none.
fn state(tx: &mut Tx<'_>) -> Result<WebhookState, StoreError> {
    let sql = "select changes, key_fingerprint from vitrine.webhook_state";
    let found = tx.row(sql, &[], |row| {
        Ok(WebhookState {
            changes: row.count(0)?,
            key_fingerprint: row.get(1)?,
        })
    });
    Ok(found?.unwrap_or_default())
}

/// Reads endpoints.
fn read(tx: &mut Tx<'_>, which: Which<'_>) -> Result<Vec<StoredEndpoint>, StoreError> {
    let select = "select document, fence, lease from vitrine.webhook_endpoint";
    // Rows are locked in one order, since batches of deliverers meet.
    match which {
        Which::All => tx.rows(&format!("{select} order by number"), &[], stored),
        Which::These(ids) => {
            let sql = format!("{select} where id = any($1) order by id for update");
            tx.rows(&sql, values![as_texts(ids).as_slice()], stored)
        }
        Which::Free(ids) => {
            let clock = tx.lease_clock()?;
            let sql = format!(
                "{select} where id = any($2) and (lease is null or leased_until is null \
                    or clock is distinct from $3 or leased_until <= {}) \
                 order by id for update skip locked",
                clock.now
            );
            let ids = as_texts(ids);
            tx.rows(&sql, values![clock.value, ids.as_slice(), clock.id], stored)
        }
    }
}

fn as_texts(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

fn stored(row: &Row<'_>) -> Result<StoredEndpoint, StoreError> {
    Ok(StoredEndpoint {
        endpoint: from_json(row.get(0)?)?,
        fence: row.count(1)?,
        lease: row.get(2)?,
        renews: false,
    })
}

/// Inserts an endpoint without lease.
fn insert(tx: &mut Tx<'_>, endpoint: &Endpoint) -> Result<(), StoreError> {
    let sql = "insert into vitrine.webhook_endpoint (id, document) values ($1, $2)";
    tx.execute(sql, values![&endpoint.id, &to_json(endpoint)?])
        .map(drop)
}

/// Writes endpoints that were read.
fn write(tx: &mut Tx<'_>, rows: &[StoredEndpoint]) -> Result<(), StoreError> {
    let (clock, lease) = (tx.lease_clock()?, LEASE.as_millis() as u64);
    let sql = format!(
        "update vitrine.webhook_endpoint set document = $3, fence = $4, lease = $5, \
            leased_until = case when $6 then {} + $7 else leased_until end, \
            clock = case when $6 then $8 else clock end \
         where id = $2",
        clock.now
    );
    let documents = rows.iter().map(|row| to_json(&row.endpoint));
    let documents = documents.collect::<Result<Vec<String>, StoreError>>()?;
    let values = rows.iter().zip(&documents).map(|(row, document)| {
        let (now, id) = (clock.value, &row.endpoint.id);
        let (fence, lease_token) = (row.fence, &row.lease);
        values![
            now,
            id,
            document,
            fence,
            lease_token,
            row.renews,
            lease,
            clock.id
        ]
        .to_vec()
    });
    tx.execute_each(&sql, &values.collect::<Vec<_>>()).map(drop)
}

/// Deletes endpoints and their attempts.
fn delete(tx: &mut Tx<'_>, ids: &[String]) -> Result<(), StoreError> {
    let ids = as_texts(ids);
    for sql in [
        "delete from vitrine.webhook_endpoint where id = any($1)",
        "delete from vitrine.webhook_attempt where endpoint = any($1)",
    ] {
        tx.execute(sql, values![ids.as_slice()])?;
    }
    Ok(())
}

/// Adds attempts, and deletes those of the same endpoints before the last [`KEPT_ATTEMPTS`].
fn add_attempts(tx: &mut Tx<'_>, attempts: &[(&str, &Attempt)]) -> Result<(), StoreError> {
    let sql = "insert into vitrine.webhook_attempt (endpoint, number, document) \
               select $1, coalesce(max(number), 0) + 1, $2 \
               from vitrine.webhook_attempt where endpoint = $1";
    let documents = attempts.iter().map(|(_, attempt)| to_json(attempt));
    let documents = documents.collect::<Result<Vec<String>, StoreError>>()?;
    let values = attempts.iter().zip(&documents);
    let values = values.map(|((endpoint, _), document)| values![*endpoint, document].to_vec());
    tx.execute_each(sql, &values.collect::<Vec<_>>())?;
    let sql = "delete from vitrine.webhook_attempt where endpoint = $1 and number <= \
                  (select max(number) - $2 from vitrine.webhook_attempt where endpoint = $1)";
    let values = attempts
        .iter()
        .map(|(endpoint, _)| values![*endpoint, KEPT_ATTEMPTS].to_vec());
    tx.execute_each(sql, &values.collect::<Vec<Vec<Value<'_>>>>())
        .map(drop)
}
