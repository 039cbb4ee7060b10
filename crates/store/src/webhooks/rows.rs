//! Rows of endpoints, and what operators and deliverers do to them in a transaction.
//!
//! Deliverers lease rows by a clock that nobody sets: the database's in PostgreSQL, the machine's since its start in SQLite.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    Attempt, DeliveryUpdate, Endpoint, EndpointChange, EndpointStatus, KEPT_ATTEMPTS, LEASE, Lease,
    MAX_ENDPOINTS, MAX_SECRETS, NewEndpoint, Progress, SecretGeneration, WebhookState,
};
use crate::StoreError;
use crate::audit::{Change, webhook_change};
use crate::db::{Row, Tx, Value, values};
use crate::values::{random_id, random_step};

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

/// Steps the counter of changes.
fn count(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let state = state(tx)?;
    count_with(tx, state.changes, state.key_fingerprint)
}

/// Steps the counter of changes, and sets the fingerprint of the key file.
fn count_with(
    tx: &mut Tx<'_>,
    changes: u64,
    key_fingerprint: Option<String>,
) -> Result<(), StoreError> {
    let state = WebhookState {
        changes: changes.wrapping_add(random_step()?.unsigned_abs()) & (u64::MAX >> 1),
        key_fingerprint,
    };
    set_state(tx, &state)
}

/// See [`Store::create_endpoint`](crate::Store::create_endpoint).
pub(crate) fn create(
    tx: &mut Tx<'_>,
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
    let state = state(tx)?;
    let known = state.key_fingerprint;
    if known.is_some_and(|known| known != key_fingerprint) {
        return Err(StoreError::WebhookKeyDiffers);
    }
    if read(tx, Which::All)?.len() >= MAX_ENDPOINTS {
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
    insert(tx, &endpoint)?;
    count_with(tx, state.changes, Some(key_fingerprint.to_owned()))?;
    Ok(((), vec![webhook_change(None, Some(&endpoint))]))
}

/// Returns the present time as it is stored.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// See [`Store::change_endpoint`](crate::Store::change_endpoint).
pub(crate) fn change(
    tx: &mut Tx<'_>,
    id: &str,
    change: &EndpointChange,
) -> Result<Changed<Option<Endpoint>>, StoreError> {
    let Some(mut row) = read(tx, Which::These(&[id.to_owned()]))?.pop() else {
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
    write(tx, &[row])?;
    count(tx)?;
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

/// See [`Store::move_endpoints`](crate::Store::move_endpoints).
pub(crate) fn move_all(
    tx: &mut Tx<'_>,
    from_key: &str,
    to_key: &str,
) -> Result<Changed<u64>, StoreError> {
    let all = read(tx, Which::All)?;
    let own = all.into_iter().filter(|row| row.endpoint.key == from_key);
    let ids: Vec<String> = own.map(|row| row.endpoint.id).collect();
    if ids.is_empty() {
        return Ok((0, Vec::new()));
    }
    let mut own = read(tx, Which::These(&ids))?;
    let mut changes = Vec::with_capacity(own.len());
    for row in &mut own {
        let before = row.endpoint.clone();
        to_key.clone_into(&mut row.endpoint.key);
        changes.push(webhook_change(Some(&before), Some(&row.endpoint)));
    }
    write(tx, &own)?;
    count(tx)?;
    Ok((own.len() as u64, changes))
}

/// See [`Store::delete_endpoint`](crate::Store::delete_endpoint).
pub(crate) fn delete_one(tx: &mut Tx<'_>, id: &str) -> Result<Changed<bool>, StoreError> {
    let ids = [id.to_owned()];
    let Some(row) = read(tx, Which::These(&ids))?.pop() else {
        return Ok((false, Vec::new()));
    };
    delete(tx, &ids)?;
    match read(tx, Which::All)?.is_empty() {
        // Secrets of other endpoints may be derived from another file.
        true => {
            let changes = state(tx)?.changes;
            count_with(tx, changes, None)?;
        }
        false => count(tx)?,
    }
    Ok((true, vec![webhook_change(Some(&row.endpoint), None)]))
}

/// Replaces all endpoints by those of a backup, each paused for a reason and without attempts in flight.
pub(crate) fn replace(
    tx: &mut Tx<'_>,
    endpoints: &[Endpoint],
    attempts: &[(String, Attempt)],
    key_fingerprint: Option<String>,
    reason: &str,
) -> Result<(), StoreError> {
    let standing = read(tx, Which::All)?;
    let ids: Vec<String> = standing.into_iter().map(|row| row.endpoint.id).collect();
    delete(tx, &ids)?;
    for endpoint in endpoints {
        insert(tx, &paused(endpoint.clone(), reason))?;
    }
    let attempts: Vec<(&str, &Attempt)> = attempts.iter().map(|(id, one)| (&**id, one)).collect();
    add_attempts(tx, &attempts, KEPT_ATTEMPTS)?;
    let changes = state(tx)?.changes;
    count_with(tx, changes, key_fingerprint)
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
pub(crate) fn pause_all(tx: &mut Tx<'_>, reason: &str) -> Result<(), StoreError> {
    let mut all = read(tx, Which::All)?;
    for row in &mut all {
        row.endpoint = paused(row.endpoint.clone(), reason);
        row.fence += 1;
        row.lease = None;
    }
    write(tx, &all)?;
    count(tx)
}

/// See [`Store::take_endpoints`](crate::Store::take_endpoints).
pub(crate) fn take(tx: &mut Tx<'_>, ids: &[String]) -> Result<Vec<(Lease, Endpoint)>, StoreError> {
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
}

/// See [`Store::update_deliveries`](crate::Store::update_deliveries).
pub(crate) fn update(tx: &mut Tx<'_>, updates: &[DeliveryUpdate]) -> Result<Vec<bool>, StoreError> {
    let ids: Vec<String> = updates
        .iter()
        .map(|one| one.lease.endpoint.clone())
        .collect();
    let found = read(tx, Which::These(&ids))?;
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
    write(tx, &found)?;
    add_attempts(tx, &attempts, KEPT_ATTEMPTS)?;
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

/// Reads the state; the default if there is none.
pub(crate) fn state(tx: &mut Tx<'_>) -> Result<WebhookState, StoreError> {
    let sql = "select changes, key_fingerprint from vitrine.webhook_state";
    let found = tx.row(sql, &[], |row| {
        Ok(WebhookState {
            changes: row.count(0)?,
            key_fingerprint: row.get(1)?,
        })
    });
    Ok(found?.unwrap_or_default())
}

fn set_state(tx: &mut Tx<'_>, state: &WebhookState) -> Result<(), StoreError> {
    let sql = "update vitrine.webhook_state set changes = $1, key_fingerprint = $2";
    tx.execute(sql, values![state.changes, &state.key_fingerprint])
        .map(drop)
}

/// Reads endpoints.
pub(crate) fn read(tx: &mut Tx<'_>, which: Which<'_>) -> Result<Vec<StoredEndpoint>, StoreError> {
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

/// Reads an endpoint.
pub(crate) fn one(tx: &mut Tx<'_>, id: &str) -> Result<Option<Endpoint>, StoreError> {
    let sql = "select document, fence, lease from vitrine.webhook_endpoint where id = $1";
    tx.row(sql, values![id], |row| Ok(stored(row)?.endpoint))
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

/// Adds attempts, and deletes those of the same endpoints before the last `kept`.
fn add_attempts(
    tx: &mut Tx<'_>,
    attempts: &[(&str, &Attempt)],
    kept: u32,
) -> Result<(), StoreError> {
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
        .map(|(endpoint, _)| values![*endpoint, kept].to_vec());
    tx.execute_each(sql, &values.collect::<Vec<Vec<Value<'_>>>>())
        .map(drop)
}

/// Returns the attempts of an endpoint, newest first.
pub(crate) fn attempts(tx: &mut Tx<'_>, id: &str) -> Result<Vec<Attempt>, StoreError> {
    let sql = "select document from vitrine.webhook_attempt where endpoint = $1 \
               order by number desc";
    tx.rows(sql, values![id], |row| from_json(row.get(0)?))
}
