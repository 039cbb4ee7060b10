//! Edits of assortments by operators: judged on the catalog that this server shows, planned, and written unless somebody else was
//! faster.

use std::fmt::Write as _;
use std::sync::Arc;

use vitrine_ingest::assortments::{self, Fault};
use vitrine_ingest::load::guard::{Allowance, Exceeded};
use vitrine_model::assortment::Rules;
use vitrine_model::money::Discount;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::StoreError;
use vitrine_store::assortment::{AssortmentVersion, NewAssortment};

use super::page::{NextForm, Told};
use super::{Context, assortments as acts};
use crate::assortments::{Change, live_version, new_version, stored_rules};
use crate::browser::amounts::grouped;
use crate::browser::query::Query;

/// Maximum number of products of each kind that a plan lists.
const MAX_LISTED: usize = 50;

/// An edit that an operator sent.
pub(super) struct Edit<'e> {
    pub(super) name: &'e str,
    pub(super) rules: &'e Rules,
    /// Id of the version that the operator saw; none if there was no live one.
    pub(super) base: Option<&'e str>,
    pub(super) allowances: &'e [Allowance],
    pub(super) note: Option<String>,
}

/// Outcome of an edit.
pub(super) enum Judged {
    /// Another version is live than the operator saw.
    Stale(Option<AssortmentVersion>),
    /// Shares of discounts would be above 1.
    Faults(Vec<Fault>),
    /// These rules are live already, by the version of this number.
    Same(u32),
    /// The guard refuses it.
    Refused { told: Told, exceeded: Exceeded },
    /// It would do this.
    Planned { told: Told, warnings: Vec<Fault> },
    /// It is live.
    Done(Told),
}

impl Edit<'_> {
    /// Judges the edit, and writes it if the operator confirmed it.
    pub(super) fn judge(self, context: &Context<'_>) -> anyhow::Result<Judged> {
        let Some(snapshot) = context.browser.app.live.snapshot() else {
            anyhow::bail!(
                "this server has no catalog yet, so that it can't say what the rules show; try again once one is loaded"
            );
        };
        let store = context.store;
        let live = live_version(store, self.name)?;
        if live.as_ref().map(|live| &*live.id) != self.base {
            return Ok(Judged::Stale(live));
        }
        let stored = live.as_ref().and_then(|live| live.rules.as_deref());
        if let (Some(live), Some(stored)) = (&live, stored)
            && stored == assortments::to_json(self.rules)
        {
            return Ok(Judged::Same(live.number));
        }
        let (before, unreadable) = match stored.map(stored_rules).transpose() {
            Ok(before) => (before, None),
            Err(error) => (
                None,
                Some(format!("The live version can’t be used: {error}.")),
            ),
        };
        let change = match Change::of(&snapshot, before, self.rules) {
            Ok(change) => change,
            Err(faults) => return Ok(Judged::Faults(faults)),
        };
        let mut told = told(&change, &snapshot);
        told.warnings.extend(unreadable);
        if let Some(exceeded) = change.exceeded(self.allowances) {
            told.warnings.push(refusal(&exceeded));
            return Ok(Judged::Refused { told, exceeded });
        }
        if !context.form.is_confirmed() {
            let warnings = change.warnings;
            return Ok(Judged::Planned { told, warnings });
        }
        let by = context.viewer.name.to_string();
        let new = NewAssortment {
            confirmation: context.confirmation.cloned(),
            ..new_version(self.name, self.rules, by, self.note)
        };
        match store.set_assortment(&new, self.base) {
            Ok(set) => Ok(Judged::Done(done(told, &set, live.as_ref()))),
            Err(StoreError::AssortmentChanged { .. }) => {
                Ok(Judged::Stale(live_version(store, self.name)?))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns what was done, with the way back.
fn done(told: Told, set: &AssortmentVersion, before: Option<&AssortmentVersion>) -> Told {
    let AssortmentVersion { name, number, .. } = set;
    let live = format!("Version {number} of {name} is live. Servers follow within a second.");
    let next = match before {
        Some(before) => NextForm {
            path: acts::ROLL_BACK,
            label: "Undo: roll back to the version before",
            fields: vec![
                ("assortment", name.clone()),
                ("version", before.number.to_string()),
            ],
        },
        None => NextForm {
            path: acts::REMOVE,
            label: "Undo: remove the assortment",
            fields: vec![("assortment", name.clone())],
        },
    };
    Told {
        lines: [live].into_iter().chain(told.lines).collect(),
        next: Some(next),
        links: links(name),
        ..told
    }
}

/// Returns the pages about an assortment.
pub(super) fn links(name: &str) -> Vec<(String, &'static str)> {
    vec![
        (format!("/assortments/{name}"), "The assortment"),
        (
            Query::of_assortment(name).address(),
            "The catalog as it shows it",
        ),
    ]
}

/// Returns why the guard refuses an edit.
fn refusal(exceeded: &Exceeded) -> String {
    let Exceeded {
        count,
        live,
        share,
        limit,
        ..
    } = exceeded;
    format!(
        "The guard refuses it: it would take away {count} of the {live} products shown, {share}, more than {limit}."
    )
}

/// Returns the allowance by which the guard lets an edit pass.
pub(super) fn allowance(exceeded: &Exceeded) -> String {
    format!("{}={}", exceeded.rule.name(), exceeded.share)
}

/// Returns what a change shows more, less and otherwise.
pub(super) fn told(change: &Change<'_>, snapshot: &Arc<Snapshot>) -> Told {
    let diff = &change.diff;
    let count = |count: usize| grouped(&count.to_string());
    let products = |number: usize| match number {
        1 => "1 product".to_owned(),
        number => format!("{} products", count(number)),
    };
    let counts = format!(
        "{} gained, {} lost, {} with another discount: {} shown, {} before.",
        products(diff.gained.len()),
        count(diff.lost.len()),
        count(diff.discounts.len()),
        products(change.shown_after),
        count(diff.shown_before),
    );
    let listing = listing(change, snapshot);
    Told {
        lines: vec![counts],
        listing: Some(listing).filter(|listing| !listing.is_empty()),
        ..Told::default()
    }
}

/// Lists the first products that are gained, that have another discount, and that are lost, with their names.
fn listing(change: &Change<'_>, snapshot: &Snapshot) -> String {
    let diff = &change.diff;
    let mut out = String::new();
    let lost = diff.lost.iter().map(|code| (*code, String::new()));
    let gained = diff.gained.iter().map(|code| (*code, String::new()));
    let discounts = diff.discounts.iter().map(|changed| {
        let [before, after] = [changed.before, changed.after].map(Discount::text);
        let words = format!(": {} → {}", before.as_str(), after.as_str());
        (changed.code, words)
    });
    list(&mut out, '+', gained, snapshot);
    list(&mut out, '~', discounts, snapshot);
    list(&mut out, '−', lost, snapshot);
    out
}

fn list<'s>(
    out: &mut String,
    sign: char,
    products: impl ExactSizeIterator<Item = (&'s str, String)>,
    snapshot: &Snapshot,
) {
    let more = products.len().saturating_sub(MAX_LISTED);
    for (code, words) in products.take(MAX_LISTED) {
        let product = code.parse().ok();
        let product = product.and_then(|code| snapshot.product(&code));
        let name = product.map(|product| vitrine_ingest::view::name(product.bytes()));
        // Writing to a string can't fail.
        let _ = writeln!(out, "{sign} {code} {}{words}", name.unwrap_or_default());
    }
    if more > 0 {
        let _ = writeln!(out, "{sign} … and {} more", grouped(&more.to_string()));
    }
}
