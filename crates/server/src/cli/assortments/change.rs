//! What an edit of an assortment changes for the clients of its keys, and the guard of edits.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use vitrine_ingest::load::guard::{Allowance, Exceeded, exceeded_by_edit};
use vitrine_ingest::load::plan::Listing;
use vitrine_model::assortment::{Assortment, Diff, Rules, diff, unknown_names};
use vitrine_model::changes::StateId;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::Store;

use crate::cli::output;
use crate::live::read_snapshot;

/// What an edit changes on the live catalog.
pub(super) struct Change {
    diff: Diff,
    /// Number of products shown before, and afterwards.
    shown: [usize; 2],
    /// Names in the rules that no product has.
    unknown: Vec<String>,
}

impl Change {
    /// Compares rules with those before, on the live catalog. An assortment that is new, or was removed, showed nothing.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub(super) fn of(
        store: &dyn Store,
        before: Option<Rules>,
        after: Option<&Rules>,
    ) -> anyhow::Result<Self> {
        let snapshot = Arc::new(read_snapshot(store)?.unwrap_or_default());
        let view = |rules: Rules| assortment(rules).view(&snapshot);
        let nothing = || Rules {
            allow: Some(Vec::new()),
            ..Rules::default()
        };
        let unknown = after.map_or_else(Vec::new, |rules| unknown_names(rules, &snapshot));
        let views = [
            view(before.unwrap_or_else(nothing)),
            view(after.cloned().unwrap_or_else(nothing)),
        ];
        let [old, new] = &views;
        Ok(Self {
            diff: diff(&snapshot, Some(&**old), Some(&**new)),
            shown: [old, new].map(|view| view.count(&snapshot)),
            unknown,
        })
    }

    /// Returns the limit of the guard that the edit exceeds.
    pub(super) fn exceeded(&self, allowances: &[Allowance]) -> Option<Exceeded> {
        let [before, _] = self.shown;
        exceeded_by_edit(&self.diff.lost, before as u64, allowances)
    }

    /// Prints names that no product has, to standard error.
    pub(super) fn print_warnings(&self) -> anyhow::Result<()> {
        let mut err = output::stderr();
        for unknown in &self.unknown {
            writeln!(err, "vitrine: warning: {unknown}, which no product has now")?;
        }
        Ok(())
    }

    /// Returns the change for programs.
    pub(super) fn to_json(&self) -> Value {
        let Self {
            diff,
            shown: [before, after],
            unknown,
        } = self;
        let codes = |codes: &[vitrine_model::code::ProductCode]| {
            Value::from_iter(codes.iter().map(|code| code.as_str()))
        };
        let discounts = diff.discounts.iter().map(|changed| {
            json!({
                "code": changed.code.as_str(),
                "before": changed.before.text().as_str(),
                "after": changed.after.text().as_str(),
            })
        });
        json!({
            "gained": codes(&diff.gained),
            "lost": codes(&diff.lost),
            "discounts": Value::from_iter(discounts),
            "shown_before": before,
            "shown_after": after,
            "warnings": unknown,
        })
    }

    /// Returns the change for people.
    pub(super) fn to_text(&self, listing: Listing) -> String {
        let Diff {
            gained,
            lost,
            discounts,
        } = &self.diff;
        let mut out = String::new();
        let changed: Vec<String> = discounts
            .iter()
            .map(|changed| {
                let [before, after] = [changed.before, changed.after].map(|one| one.text());
                format!("{}: {} → {}", changed.code, before.as_str(), after.as_str())
            })
            .collect();
        write_list(&mut out, '+', gained, listing);
        write_list(&mut out, '~', &changed, listing);
        write_list(&mut out, '-', lost, listing);
        let [before, after] = self.shown;
        let (gained, lost, changed) = (gained.len(), lost.len(), discounts.len());
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "{gained} gained, {lost} lost, {changed} other discounts; {after} products shown, {before} before"
        );
        out
    }
}

/// Returns an assortment of these rules, for comparisons.
fn assortment(rules: Rules) -> Assortment {
    Assortment {
        name: String::new(),
        id: StateId::default(),
        rules,
    }
}

fn write_list(out: &mut String, sign: char, lines: &[impl fmt::Display], listing: Listing) {
    let most = listing.most();
    for line in lines.iter().take(most) {
        let _ = writeln!(out, "{sign} {line}");
    }
    match lines.len().saturating_sub(most) {
        0 => {}
        more => {
            let _ = writeln!(out, "{sign} … and {more} more; `--all` lists them");
        }
    }
}

/// Returns the message of a refused edit.
pub(super) fn refusal(exceeded: &Exceeded) -> String {
    let Exceeded {
        rule,
        count,
        live,
        share,
        limit,
        first_products,
        ..
    } = exceeded;
    let name = rule.name();
    let codes: Vec<&str> = first_products.iter().map(|code| code.as_str()).collect();
    format!(
        "guard: {name}: this edit would take away {count} of the {live} products shown ({share}, more than {limit}); \
         if this is intended: --allow {name}={share}\n    products: {}\nnothing was changed\n",
        codes.join(", ")
    )
}
