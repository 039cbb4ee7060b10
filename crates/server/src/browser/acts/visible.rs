//! Effects of a change of a key: products that it gains and loses by another assortment, and what makes it useless.

use anyhow::bail;
use jiff::Timestamp;
use vitrine_model::assortment::Rules;
use vitrine_model::key::KeyRecord;
use vitrine_store::Store;

use super::Context;
use super::edits::told;
use super::page::Told;
use crate::assortments::{Change, live_version, nothing, stored_rules};
use crate::browser::times::minute;

/// Returns what the client of a key gains and loses by a change of it; nothing to tell if its assortment stays.
pub(super) fn difference(
    context: &Context<'_>,
    before: &KeyRecord,
    after: &KeyRecord,
) -> anyhow::Result<Told> {
    if before.assortment == after.assortment {
        return Ok(Told::default());
    }
    Ok(match context.browser.app.live.snapshot() {
        Some(snapshot) => {
            let rules = |key: &KeyRecord| rules_of(context.store, key);
            let rules = [rules(before)?, rules(after)?];
            told(&Change::of_key(&snapshot, rules), &snapshot)
        }
        None => Told {
            warnings: vec![
                "This server has no catalog yet, and can’t say what the key gains and loses."
                    .to_owned(),
            ],
            ..Told::default()
        },
    })
}

/// Returns the rules by which a key sees; `None` if it sees everything. It sees nothing by rules that are missing or unreadable.
fn rules_of(store: &Store, key: &KeyRecord) -> anyhow::Result<Option<Rules>> {
    let Some(name) = &key.assortment else {
        return Ok(None);
    };
    let live = live_version(store, name)?;
    let stored = live.as_ref().and_then(|live| live.rules.as_deref());
    let rules = stored.and_then(|stored| stored_rules(stored).ok());
    Ok(Some(rules.unwrap_or_else(nothing)))
}

/// Returns a warning of a key that isn't accepted any more.
pub(super) fn expired(record: &KeyRecord, now: Timestamp) -> Vec<String> {
    let expired = record.expires_at.filter(|at| *at <= now);
    let warning = expired.map(|at| format!("It has expired already, at {}.", minute(&at)));
    warning.into_iter().collect()
}

/// Refuses an assortment that doesn't exist.
pub(super) fn require_assortment(store: &Store, name: &str) -> anyhow::Result<()> {
    match live_version(store, name)? {
        Some(_) => Ok(()),
        None => bail!(
            "Assortment: there is no assortment `{}`",
            name.replace('`', "'")
        ),
    }
}
