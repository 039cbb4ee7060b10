//! `vitrine keys rotate`: creates the successor of a key.

use std::io::Write as _;

use anyhow::anyhow;
use jiff::Timestamp;
use vitrine_model::key::{KeyRecord, NewKey};
use vitrine_store::Store;
use vitrine_store::audit::AuditContext;

use super::create::{new_key, show};
use super::prefix_of;
use crate::cli::output::stderr;
use crate::cli::time::{after, to_second};
use crate::cli::webhooks::in_part;
use crate::cli::{Outcome, OutputArgs, exit_with_usage_error};

/// Creates a successor of the single key in use that `name` means; the old key expires after `overlap`. Prints the keys
/// that expire, with the time.
pub(super) fn rotate(
    store: &dyn Store,
    context: &AuditContext,
    output: OutputArgs,
    name: &str,
    overlap: &str,
) -> anyhow::Result<Outcome> {
    let now = to_second(Timestamp::now());
    let overlap_ends = after(overlap, now)
        .unwrap_or_else(|error| exit_with_usage_error(&format!("--overlap: {error}")));
    let prefix = prefix_of(name);
    let mut outcome = Err(anyhow!(
        "no key in use has the label or prefix `{prefix}`; see `vitrine keys list`"
    ));
    store.change_keys(context, &mut |records| {
        let in_use: Vec<&KeyRecord> = records
            .iter()
            .filter(|record| record.label == name || record.prefix == prefix)
            .filter(|record| record.is_active(now) && record.rotated_at.is_none())
            .collect();
        let [old] = in_use.as_slice() else {
            if !in_use.is_empty() {
                outcome = Err(anyhow!(
                    "{} keys in use have the label `{name}`; rotate one by its prefix, see `vitrine keys list`",
                    in_use.len()
                ));
            }
            return Vec::new();
        };
        match new_key(old.kind) {
            Ok(key) => {
                let successor = successor(old, &key, now);
                // Keys rotated earlier expire at the latest with this one.
                let ending: Vec<KeyRecord> = predecessors(records, old, now)
                    .into_iter()
                    .chain([*old])
                    .map(|record| expiring_record(record, now, overlap_ends))
                    .collect();
                let changed = ending.iter().chain([&successor]).cloned().collect();
                outcome = Ok((key, successor, ending));
                changed
            }
            Err(error) => {
                outcome = Err(error);
                Vec::new()
            }
        }
    })?;
    let (key, successor, ending) = outcome?;
    let mut outcome = show(&key, &successor, &ending, output)?;
    // Those of keys rotated earlier, too: a command that was killed may have left them.
    for old in &ending {
        match in_part(store.move_endpoints(&old.prefix, &successor.prefix, context)) {
            Ok((_, Outcome::Done)) => {}
            Ok(_) => outcome = Outcome::Partial,
            Err(error) => {
                let old = &old.prefix;
                writeln!(
                    stderr(),
                    "vitrine: the key is rotated, but its webhook endpoints are still those of {old}, and end with it; rotate it again: {error:#}"
                )?;
                outcome = Outcome::Partial;
            }
        }
    }
    Ok(outcome)
}

/// Returns the keys that were rotated before `old` was created and are still accepted. None if several keys of the
/// label are in use, because then it's unknown whose predecessors they are.
fn predecessors<'r>(
    records: &'r [KeyRecord],
    old: &KeyRecord,
    now: Timestamp,
) -> Vec<&'r KeyRecord> {
    let (rotated, in_use): (Vec<_>, Vec<_>) = records
        .iter()
        .filter(|record| record.label == old.label && record.is_active(now))
        .partition(|record| record.rotated_at.is_some());
    match in_use.len() {
        1 => rotated,
        _ => Vec::new(),
    }
}

/// Returns the record of a successor, with the same label, kind, version, assortment, quota and expiry.
fn successor(old: &KeyRecord, key: &NewKey, now: Timestamp) -> KeyRecord {
    KeyRecord {
        prefix: key.prefix().to_owned(),
        secret_hash: key.secret_hash(),
        created_at: now,
        last_used_at: None,
        ..old.clone()
    }
}

/// Returns the record of a rotated key, which expires at the end of the overlap at the latest.
fn expiring_record(old: &KeyRecord, now: Timestamp, overlap_ends: Timestamp) -> KeyRecord {
    let expires = old
        .expires_at
        .map_or(overlap_ends, |own| own.min(overlap_ends));
    KeyRecord {
        expires_at: Some(expires),
        rotated_at: old.rotated_at.or(Some(now)),
        ..old.clone()
    }
}
