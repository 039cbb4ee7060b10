//! `vitrine history`, `show` and `diff`: print revisions, products and differences.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use clap::Args;
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::export;
use vitrine_ingest::load::plan::Plan;
use vitrine_ingest::load::report::{counts_json, shown};
use vitrine_model::code::ProductCode;
use vitrine_store::record::{Availability, Moment, PublishedRevision, StoredProduct};
use vitrine_store::{IfMissing, Store};

use super::time::to_second;
use super::{Outcome, OutputArgs, PlanArgs, StoreArgs, output, print, print_json};

const HISTORY_EXAMPLES: &str = "\
Examples:
  vitrine history
  vitrine history --limit 100 --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  vitrine show BRIARWICK-GB
  vitrine show BRIARWICK-GB --at 12";

const DIFF_EXAMPLES: &str = "\
Examples:
  vitrine diff 12
  vitrine diff 11 12 --json";

/// List the revisions, the newest first.
///
/// The author of a revision is the `SUDO_USER`, `USER` or `LOGNAME` of the command that made it; `unknown` if
/// none was set.
#[derive(Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub(super) struct History {
    #[command(flatten)]
    output: OutputArgs,
    /// Maximum number of revisions.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

/// Show a product as a record that loads again, its texts included.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(super) struct Show {
    /// Show it as of this revision.
    #[arg(long, value_name = "REVISION")]
    at: Option<u64>,
    /// The product's code.
    code: String,
}

/// Show the differences between two revisions, or between one and the live one.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(super) struct Diff {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    /// The older revision.
    from: u64,
    /// The newer revision; by default what is live.
    to: Option<u64>,
}

pub(super) const NOTHING_LOADED: &str = "nothing was loaded yet";

/// Returns the revision that a command line names, by default the live one.
///
/// # Errors
///
/// If there is no such revision; the error names the newest.
pub(super) fn moment(store: &dyn Store, revision: Option<u64>) -> anyhow::Result<Moment> {
    let Some(number) = revision else {
        return Ok(Moment::Live);
    };
    if store.revision(number)?.is_none() {
        let newest = store.revisions(1)?;
        let newest = newest.first().context(NOTHING_LOADED)?.revision.number;
        bail!("there is no revision {number}; the newest is {newest}, see `vitrine history`");
    }
    Ok(Moment::Revision(number))
}

impl History {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let revisions = store.open(IfMissing::Refuse)?.revisions(self.limit)?;
        if self.output.json {
            let revisions = revisions.iter().map(revision_json).collect();
            print_json(&Value::Array(revisions))?;
            return Ok(Outcome::Done);
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "REVISION",
            "STATE",
            "TIME",
            "BY",
            "CREATED",
            "CHANGED",
            "RETIRED",
            "UNCHANGED",
            "NOTE",
        ]);
        for (index, published) in revisions.iter().enumerate() {
            let state = match (index, published.availability) {
                // The newest revision is the live one.
                (0, _) => "live",
                (_, Availability::Readable) => "kept",
                (_, Availability::Pruned) => "pruned",
            };
            let (counts, note) = (published.counts, &published.note);
            table.add_row([
                published.revision.number.to_string(),
                state.to_owned(),
                to_second(published.revision.created_at).to_string(),
                single_line(&note.by).into_owned(),
                counts.created.to_string(),
                counts.changed.to_string(),
                counts.retired.to_string(),
                counts.unchanged.to_string(),
                single_line(&shown(note.note.as_deref().unwrap_or_default())).into_owned(),
            ]);
        }
        print(&format!("{}\n", table.trim_fmt()))?;
        Ok(Outcome::Done)
    }
}

/// Returns a revision as JSON.
pub(super) fn revision_json(published: &PublishedRevision) -> Value {
    let PublishedRevision {
        revision,
        counts,
        note,
        availability,
    } = published;
    json!({
        "number": revision.number,
        "id": revision.id,
        "created_at": revision.created_at,
        "by": note.by,
        "note": note.note,
        "source_digest": note.source_digest,
        "pruned": *availability == Availability::Pruned,
        "counts": counts_json(counts),
    })
}

impl Show {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let Ok(code) = self.code.parse::<ProductCode>() else {
            bail!("`{}` can't be a product's code", self.code);
        };
        let store = store.open(IfMissing::Refuse)?;
        let found = store.product(&code, moment(&*store, self.at)?)?;
        let when = self.at.map_or_else(
            || "is live".to_owned(),
            |number| format!("was live in revision {number}"),
        );
        let product = found.with_context(|| format!("no product with the code `{code}` {when}"))?;
        print(&format!(
            "{}\n",
            export::record(&*store, &product)?.to_json()
        ))?;
        Ok(Outcome::Done)
    }
}

fn products(
    store: &dyn Store,
    moment: Moment,
) -> anyhow::Result<BTreeMap<ProductCode, StoredProduct>> {
    let mut products = BTreeMap::new();
    let revision = store.read_products(moment, &mut |product| {
        products.insert(product.code.clone(), product);
        Ok(())
    })?;
    revision.context(NOTHING_LOADED)?;
    Ok(products)
}

impl Diff {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        let (from, to) = (moment(&*store, Some(self.from))?, moment(&*store, self.to)?);
        let mut before = products(&*store, from)?;
        let after = products(&*store, to)?;
        let mut plan = Plan::default();
        for (code, product) in &after {
            plan.compare(before.remove(code).as_ref(), product);
        }
        before.keys().for_each(|code| plan.retire(code));
        if self.output.json {
            print_json(&serde_json::to_value(&plan)?)?;
        } else {
            print(&plan.to_text(output::stdout().listing(self.plan.all)))?;
        }
        Ok(Outcome::Done)
    }
}
