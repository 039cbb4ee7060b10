//! Rows of endpoints, as both stores have them, and what operators and deliverers do to them. A store gives the rows of an open
//! transaction; all rules are here.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    Attempt, DeliveryUpdate, Endpoint, EndpointChange, EndpointStatus, KEPT_ATTEMPTS, Lease,
    MAX_ENDPOINTS, MAX_SECRETS, NewEndpoint, Progress, SecretGeneration, WebhookState,
};
use crate::StoreError;
use crate::audit::{Change, webhook_change};
use crate::values::random_id;

/// Returns a stored document.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Reads a stored document.
pub(crate) fn from_json<T: DeserializeOwned>(document: &str) -> Result<T, StoreError> {
    let read = serde_json::from_str(document);
    read.map_err(|error| StoreError::Damaged(format!("a webhook can't be read: {error}")))
}

/// Result of an operator's change, and its entries for the audit log.
pub(crate) type Changed<T> = (T, Vec<Change>);

/// Endpoint with its lease.
#[derive(Debug, Clone)]
pub(crate) struct StoredEndpoint {
    pub(crate) endpoint: Endpoint,
    pub(crate) fence: u64,
    /// Token of the last lease that wasn't ended, which may be over.
    pub(crate) lease: Option<String>,
    /// True to let the lease last for [`LEASE`](super::LEASE) from the write on; otherwise its end stays.
    pub(crate) renews: bool,
}

/// Selection of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    /// All, oldest first.
    All,
    /// Those with these ids, to be written.
    These(&'a [String]),
    /// Those with these ids whose lease is over, to be written; those that another transaction has are left out.
    Free(&'a [String]),
}

/// Rows of an open transaction.
pub(crate) trait Rows {
    /// Reads the state.
    fn state(&mut self) -> Result<WebhookState, StoreError>;

    /// Writes the state.
    fn set_state(&mut self, state: &WebhookState) -> Result<(), StoreError>;

    /// Reads endpoints.
    fn read(&mut self, which: Which<'_>) -> Result<Vec<StoredEndpoint>, StoreError>;

    /// Inserts an endpoint without lease.
    fn insert(&mut self, endpoint: &Endpoint) -> Result<(), StoreError>;

    /// Writes endpoints that were read.
    fn write(&mut self, rows: &[StoredEndpoint]) -> Result<(), StoreError>;

    /// Deletes endpoints and their attempts.
    fn delete(&mut self, ids: &[String]) -> Result<(), StoreError>;

    /// Adds attempts, and deletes those of the same endpoints before the last `kept`.
    fn add_attempts(&mut self, attempts: &[(&str, &Attempt)], kept: u32) -> Result<(), StoreError>;
}

/// Steps the counter of changes.
fn count(rows: &mut impl Rows) -> Result<(), StoreError> {
    let state = rows.state()?;
    count_with(rows, state.changes, state.key_fingerprint)
}

/// Steps the counter of changes, and sets the fingerprint of the key file.
fn count_with(
    rows: &mut impl Rows,
    changes: u64,
    key_fingerprint: Option<String>,
) -> Result<(), StoreError> {
    let random = u64::from_str_radix(random_id()?.get(..8).unwrap_or("1"), 16).unwrap_or(1);
    rows.set_state(&WebhookState {
        changes: changes.wrapping_add(1 + random) & (u64::MAX >> 1),
        key_fingerprint,
    })
}

/// See [`WebhookStore::create_endpoint`](super::WebhookStore::create_endpoint).
pub(crate) fn create(
    rows: &mut impl Rows,
    new: &NewEndpoint,
    key_fingerprint: &str,
) -> Result<Changed<()>, StoreError> {
    let NewEndpoint {
        id,
        key,
        url,
        filters,
        api_version,
        format,
        salt,
        position,
    } = new.clone();
    let state = rows.state()?;
    let known = state.key_fingerprint;
    if known.is_some_and(|known| known != key_fingerprint) {
        return Err(StoreError::WebhookKeyDiffers);
    }
    if rows.read(Which::All)?.len() >= MAX_ENDPOINTS {
        return Err(StoreError::Unsupported(
            "there are 20,000 webhook endpoints, which is the limit; nothing was changed",
        ));
    }
    let endpoint = Endpoint {
        id,
        key,
        url,
        filters,
        api_version,
        format,
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
    };
    rows.insert(&endpoint)?;
    count_with(rows, state.changes, Some(key_fingerprint.to_owned()))?;
    Ok(((), vec![webhook_change(None, Some(&endpoint))]))
}

/// Returns the present time as it is stored.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// See [`WebhookStore::change_endpoint`](super::WebhookStore::change_endpoint).
pub(crate) fn change(
    rows: &mut impl Rows,
    id: &str,
    change: &EndpointChange,
) -> Result<Changed<Option<Endpoint>>, StoreError> {
    let Some(mut row) = rows.read(Which::These(&[id.to_owned()]))?.pop() else {
        return Ok((None, Vec::new()));
    };
    let before = row.endpoint.clone();
    let endpoint = &mut row.endpoint;
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
            row.fence += 1;
        }
        EndpointChange::Retry => {
            if let Some(reason) = nothing_to_retry(endpoint) {
                let id = id.to_owned();
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
            row.fence += 1;
        }
    }
    let after = row.endpoint.clone();
    rows.write(&[row])?;
    count(rows)?;
    let change = webhook_change(Some(&before), Some(&after));
    Ok((Some(after), vec![change]))
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

/// See [`WebhookStore::move_endpoints`](super::WebhookStore::move_endpoints).
pub(crate) fn move_all(
    rows: &mut impl Rows,
    from_key: &str,
    to_key: &str,
) -> Result<Changed<u64>, StoreError> {
    let all = rows.read(Which::All)?;
    let own = all.into_iter().filter(|row| row.endpoint.key == from_key);
    let ids: Vec<String> = own.map(|row| row.endpoint.id).collect();
    if ids.is_empty() {
        return Ok((0, Vec::new()));
    }
    let mut own = rows.read(Which::These(&ids))?;
    let mut changes = Vec::with_capacity(own.len());
    for row in &mut own {
        let before = row.endpoint.clone();
        to_key.clone_into(&mut row.endpoint.key);
        changes.push(webhook_change(Some(&before), Some(&row.endpoint)));
    }
    rows.write(&own)?;
    count(rows)?;
    Ok((own.len() as u64, changes))
}

/// See [`WebhookStore::delete_endpoint`](super::WebhookStore::delete_endpoint).
pub(crate) fn delete(rows: &mut impl Rows, id: &str) -> Result<Changed<bool>, StoreError> {
    let ids = [id.to_owned()];
    let Some(row) = rows.read(Which::These(&ids))?.pop() else {
        return Ok((false, Vec::new()));
    };
    rows.delete(&ids)?;
    match rows.read(Which::All)?.is_empty() {
        // Secrets of other endpoints may be derived from another file.
        true => {
            let changes = rows.state()?.changes;
            count_with(rows, changes, None)?;
        }
        false => count(rows)?,
    }
    Ok((true, vec![webhook_change(Some(&row.endpoint), None)]))
}

/// Replaces all endpoints by those of a backup, each paused for a reason and without attempts in flight.
pub(crate) fn replace(
    rows: &mut impl Rows,
    endpoints: &[Endpoint],
    attempts: &[(String, Attempt)],
    key_fingerprint: Option<String>,
    reason: &str,
) -> Result<(), StoreError> {
    let standing = rows.read(Which::All)?;
    let ids: Vec<String> = standing.into_iter().map(|row| row.endpoint.id).collect();
    rows.delete(&ids)?;
    for endpoint in endpoints {
        rows.insert(&paused(endpoint.clone(), reason))?;
    }
    let attempts: Vec<(&str, &Attempt)> = attempts.iter().map(|(id, one)| (&**id, one)).collect();
    rows.add_attempts(&attempts, KEPT_ATTEMPTS)?;
    let changes = rows.state()?.changes;
    count_with(rows, changes, key_fingerprint)
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
pub(crate) fn pause_all(rows: &mut impl Rows, reason: &str) -> Result<(), StoreError> {
    let mut all = rows.read(Which::All)?;
    for row in &mut all {
        row.endpoint = paused(row.endpoint.clone(), reason);
        row.fence += 1;
        row.lease = None;
    }
    rows.write(&all)?;
    count(rows)
}

/// See [`WebhookStore::take_endpoints`](super::WebhookStore::take_endpoints).
pub(crate) fn take(
    rows: &mut impl Rows,
    ids: &[String],
) -> Result<Vec<(Lease, Endpoint)>, StoreError> {
    let mut free = rows.read(Which::Free(ids))?;
    let token = random_id()?;
    for row in &mut free {
        row.fence += 1;
        (row.lease, row.renews) = (Some(token.clone()), true);
    }
    rows.write(&free)?;
    let taken = free.into_iter().map(|row| {
        let lease = Lease {
            endpoint: row.endpoint.id.clone(),
            token: token.clone(),
            fence: row.fence,
        };
        (lease, row.endpoint)
    });
    Ok(taken.collect())
}

/// See [`WebhookStore::update_deliveries`](super::WebhookStore::update_deliveries).
pub(crate) fn update(
    rows: &mut impl Rows,
    updates: &[DeliveryUpdate],
) -> Result<Vec<bool>, StoreError> {
    let ids: Vec<String> = updates
        .iter()
        .map(|one| one.lease.endpoint.clone())
        .collect();
    let found = rows.read(Which::These(&ids))?;
    let mut found: HashMap<String, StoredEndpoint> = (found.into_iter())
        .map(|row| (row.endpoint.id.clone(), row))
        .collect();
    let mut written = Vec::with_capacity(updates.len());
    let mut attempts = Vec::new();
    for update in updates {
        let row = found.get_mut(&update.lease.endpoint);
        let is_written = row.is_some_and(|row| apply(row, update));
        written.push(is_written);
        if is_written {
            attempts.extend(
                update
                    .attempt
                    .as_ref()
                    .map(|one| (&*update.lease.endpoint, one)),
            );
        }
    }
    let found: Vec<StoredEndpoint> = found.into_values().collect();
    rows.write(&found)?;
    rows.add_attempts(&attempts, KEPT_ATTEMPTS)?;
    Ok(written)
}

/// Applies an update; false if the fence was raised, so that only the lease may be ended.
fn apply(row: &mut StoredEndpoint, update: &DeliveryUpdate) -> bool {
    let is_holder = row.lease.as_deref() == Some(&*update.lease.token);
    let is_written = is_holder && row.fence == update.lease.fence;
    if is_written {
        let endpoint = &mut row.endpoint;
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
        row.renews = !update.release;
    }
    if is_holder && update.release {
        row.lease = None;
    }
    is_written
}
