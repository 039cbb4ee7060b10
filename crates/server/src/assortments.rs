//! Edits of assortments, which commands and the console make alike: versions and their rules, the changes that an edit makes for
//! the clients of its keys, and the guard of edits (docs/contract/assortments.md#edits).

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use vitrine_ingest::assortments::{self, Fault, excesses, warnings};
use vitrine_ingest::load::guard::{Allowance, Exceeded, exceeded_by_edit};
use vitrine_ingest::load::report::shown;
use vitrine_model::assortment::{Assortment, Diff, Rules, View, diff};
use vitrine_model::changes::StateId;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::Store;
use vitrine_store::assortment::{AssortmentVersion, NewAssortment};

/// Change that an edit makes, on a catalog.
pub(crate) struct Change<'s> {
    pub(crate) diff: Diff<'s>,
    /// Number of products that are shown afterwards.
    pub(crate) shown_after: usize,
    /// Names in the rules that no product has, with their places.
    pub(crate) warnings: Vec<Fault>,
}

impl<'s> Change<'s> {
    /// Compares rules with those before, on a catalog. An assortment that is new, or was removed, showed nothing.
    ///
    /// # Errors
    ///
    /// If shares would be above 1 for products that are shown.
    pub(crate) fn of(
        snapshot: &'s Arc<Snapshot>,
        before: Option<Rules>,
        after: &Rules,
    ) -> Result<Self, Vec<Fault>> {
        let before = view(before.unwrap_or_else(nothing), snapshot);
        let after_view = view(after.clone(), snapshot);
        let excesses = excesses(&after_view, snapshot);
        if !excesses.is_empty() {
            return Err(excesses);
        }
        Ok(Self {
            diff: diff(snapshot, Some(&before), Some(&after_view)),
            shown_after: after_view.count(snapshot),
            warnings: warnings(after, snapshot),
        })
    }

    /// Compares what a key sees by two assortments; by none, it sees everything.
    pub(crate) fn of_key(snapshot: &'s Arc<Snapshot>, rules: [Option<Rules>; 2]) -> Self {
        let [before, after] = rules.map(|rules| rules.map(|rules| view(rules, snapshot)));
        let shown_after = after
            .as_ref()
            .map_or(snapshot.len(), |view| view.count(snapshot));
        Self {
            diff: diff(snapshot, before.as_deref(), after.as_deref()),
            shown_after,
            warnings: Vec::new(),
        }
    }

    /// Returns the limit of the guard that the edit exceeds.
    pub(crate) fn exceeded(&self, allowances: &[Allowance]) -> Option<Exceeded> {
        let Diff {
            shown_before, lost, ..
        } = &self.diff;
        exceeded_by_edit(lost, *shown_before as u64, allowances)
    }
}

fn view(rules: Rules, snapshot: &Arc<Snapshot>) -> Arc<View> {
    Assortment::new(String::new(), StateId::default(), rules).view(snapshot)
}

/// Returns rules that show nothing.
pub(crate) fn nothing() -> Rules {
    Rules {
        allow: Some(Vec::new()),
        ..Rules::default()
    }
}

/// Returns the live version, if there is one.
pub(crate) fn live_version(store: &Store, name: &str) -> anyhow::Result<Option<AssortmentVersion>> {
    let newest = store.assortment_versions(name, 1)?.into_iter().next();
    Ok(newest.filter(|version| version.rules.is_some()))
}

/// Returns the rules of a version, by default of the live one.
///
/// # Errors
///
/// If there never was an assortment of this name, it has no such version, or the version is its removal.
pub(crate) fn rules_at(store: &Store, name: &str, number: Option<u32>) -> anyhow::Result<String> {
    let newest = store.assortment_versions(name, 1)?.into_iter().next();
    let newest = newest.ok_or_else(|| unknown(name))?;
    let version = match number {
        None => newest,
        Some(number) if number == newest.number => newest,
        Some(number) => {
            let missing = || {
                format!(
                    "`{name}` has no version {number}; the newest is {}",
                    newest.number
                )
            };
            // Versions are numbered from 1, without gaps. Those between are read, too.
            let back = newest.number.checked_sub(number).filter(|_| number > 0);
            let back = back.with_context(missing)?;
            let versions = store.assortment_versions(name, back.saturating_add(1))?;
            let found = versions.into_iter().find(|one| one.number == number);
            found.with_context(missing)?
        }
    };
    version.rules.with_context(|| match number {
        None => {
            format!("the assortment `{name}` was removed; see `vitrine assortments history {name}`")
        }
        Some(number) => format!("version {number} of `{name}` is its removal; it has no rules"),
    })
}

/// Returns the error of a name that no assortment ever had.
pub(crate) fn unknown(name: &str) -> anyhow::Error {
    anyhow!(
        "there is no assortment `{}`; see `vitrine assortments list`",
        shown(name)
    )
}

/// Parses stored rules, which were checked when they were set.
pub(crate) fn stored_rules(stored: &str) -> anyhow::Result<Rules> {
    assortments::parse(stored).map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        anyhow!("its rules were stored by a newer release, or changed since: {first}")
    })
}

/// Returns rules without the byte order mark with which some editors begin files.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the version that makes rules live.
pub(crate) fn new_version(
    name: &str,
    rules: &Rules,
    by: String,
    note: Option<String>,
) -> NewAssortment {
    NewAssortment {
        name: name.to_owned(),
        rules: Some(assortments::to_json(rules)),
        codes: u32::try_from(rules.code_count()).unwrap_or(u32::MAX),
        by: Some(by),
        note,
        confirmation: None,
    }
}

/// Returns the version that removes an assortment.
pub(crate) fn removal(name: &str, by: String, note: Option<String>) -> NewAssortment {
    NewAssortment {
        name: name.to_owned(),
        rules: None,
        codes: 0,
        by: Some(by),
        note,
        confirmation: None,
    }
}

/// Returns the note of a rollback that has none.
pub(crate) fn rollback_note(number: u32) -> String {
    format!("rollback to version {number}")
}
