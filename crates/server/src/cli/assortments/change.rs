//! Output of edits of an assortment: the changes for the clients of its keys, and the refusal by the guard.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use vitrine_ingest::load::guard::Exceeded;
use vitrine_ingest::load::plan::{Listing, write_products};
use vitrine_model::assortment::Diff;
use vitrine_model::code::ProductCode;
use vitrine_model::money::Discount;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::Store;

use crate::assortments::Change;
use crate::cli::output;
use crate::live::read_snapshot;

/// Maximum number of warnings that are printed.
const MAX_WARNINGS: usize = 20;

/// Reads the live catalog; an empty one if nothing was published yet.
pub(super) fn live_catalog(store: &Store) -> anyhow::Result<Arc<Snapshot>> {
    Ok(Arc::new(read_snapshot(store)?.unwrap_or_default()))
}

impl Change<'_> {
    /// Prints the warnings to standard error.
    pub(super) fn print_warnings(&self) -> std::io::Result<()> {
        let mut err = output::stderr();
        for warning in self.warnings.iter().take(MAX_WARNINGS) {
            writeln!(err, "vitrine: warning: {warning}")?;
        }
        match self.warnings.len().saturating_sub(MAX_WARNINGS) {
            0 => Ok(()),
            more => writeln!(err, "vitrine: … and {more} more warnings"),
        }
    }

    /// Returns the change for programs.
    pub(super) fn to_json(&self) -> Value {
        let Self {
            diff:
                Diff {
                    shown_before,
                    gained,
                    lost,
                    discounts,
                },
            shown_after,
            warnings,
        } = self;
        let discounts = discounts.iter().map(|changed| {
            json!({
                "code": changed.code,
                "before": changed.before.text().as_str(),
                "after": changed.after.text().as_str(),
            })
        });
        json!({
            "gained": gained,
            "lost": lost,
            "discounts": Value::from_iter(discounts),
            "shown_before": shown_before,
            "shown_after": shown_after,
            "warnings": Value::from_iter(warnings.iter().map(ToString::to_string)),
        })
    }

    /// Returns the change for people.
    pub(super) fn to_text(&self, listing: Listing) -> String {
        let Diff {
            shown_before,
            gained,
            lost,
            discounts,
        } = &self.diff;
        let changed: Vec<String> = discounts
            .iter()
            .map(|changed| {
                let [before, after] = [changed.before, changed.after].map(Discount::text);
                format!("{}: {} → {}", changed.code, before.as_str(), after.as_str())
            })
            .collect();
        let mut out = String::new();
        let write = |out: &mut String| {
            write_products(out, '+', gained, listing)?;
            write_products(out, '~', &changed, listing)?;
            write_products(out, '-', lost, listing)?;
            writeln!(
                out,
                "{} gained, {} lost, {} other discounts; {} products shown, {shown_before} before",
                gained.len(),
                lost.len(),
                changed.len(),
                self.shown_after,
            )
        };
        // Writing to a string can't fail.
        let _ = write(&mut out);
        out
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
    let codes: Vec<&str> = first_products.iter().map(ProductCode::as_str).collect();
    format!(
        "guard: {name}: this edit would take away {count} of the {live} products shown ({share}, more than {limit}); \
         if this is intended: --allow {name}={share}\n    products: {}\nnothing was changed\n",
        codes.join(", ")
    )
}
