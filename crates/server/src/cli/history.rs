//! `vitrine history`, `show`, `diff`, `export` and `rollback`: the catalog as it is and as it was.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use jiff::Timestamp;
use serde_json::{Value, json};
use vitrine_model::code::ProductCode;
use vitrine_store::record::{Moment, PublishedRevision, RevisionNote, StoredProduct};
use vitrine_store::{IfMissing, Store};

use super::load::operator;
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, print, print_json};
use crate::export;
use crate::load::plan::Plan;
use crate::load::report::counts_json;

/// List the revisions, the newest first.
#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    output: OutputArgs,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

/// Show a product as a record that loads again, its texts included.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// As it was in this revision.
    #[arg(long, value_name = "REVISION")]
    at: Option<u64>,
    /// The product's code.
    code: String,
}

/// Show what differs between two revisions, or between one and what is live.
#[derive(Debug, Args)]
pub(super) struct Diff {
    #[command(flatten)]
    output: OutputArgs,
    /// The older revision.
    from: u64,
    /// The newer revision; by default what is live.
    to: Option<u64>,
}

/// Print the catalog as records that load again into the same catalog.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// As it was in this revision.
    #[arg(long, value_name = "REVISION")]
    at: Option<u64>,
    /// One record a line, or one array.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    format: FormatArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Ndjson,
    Json,
}

/// Make the catalog what it was in a revision. This is a new revision; nothing is rewritten.
#[derive(Debug, Args)]
pub(super) struct Rollback {
    #[command(flatten)]
    output: OutputArgs,
    /// What the history is to say of it.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Don't ask, on a terminal.
    #[arg(long)]
    yes: bool,
    /// The revision.
    revision: u64,
}

/// Live, or a revision.
fn moment(revision: Option<u64>) -> Moment {
    revision.map_or(Moment::Live, Moment::Revision)
}

fn no_such(moment: Moment) -> String {
    match moment {
        Moment::Live => "nothing was loaded yet".to_owned(),
        Moment::Revision(number) => {
            format!("there is no revision {number}; see `vitrine history`")
        }
    }
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
            "TIME",
            "BY",
            "CREATED",
            "CHANGED",
            "RETIRED",
            "UNCHANGED",
            "NOTE",
        ]);
        for published in &revisions {
            let (counts, note) = (published.counts, &published.note);
            table.add_row([
                published.revision.number.to_string(),
                to_second(published.revision.created_at).to_string(),
                note.by.clone(),
                counts.created.to_string(),
                counts.changed.to_string(),
                counts.retired.to_string(),
                counts.unchanged.to_string(),
                note.note.clone().unwrap_or_default(),
            ]);
        }
        print(&format!("{}\n", table.trim_fmt()))?;
        Ok(Outcome::Done)
    }
}

fn revision_json(published: &PublishedRevision) -> Value {
    let PublishedRevision {
        revision,
        counts,
        note,
    } = published;
    json!({
        "number": revision.number,
        "id": revision.id,
        "created_at": revision.created_at,
        "by": note.by,
        "note": note.note,
        "source_digest": note.source_digest,
        "counts": counts_json(counts),
    })
}

impl Show {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let Ok(code) = self.code.parse::<ProductCode>() else {
            bail!("`{}` can't be a product's code", self.code);
        };
        let store = store.open(IfMissing::Refuse)?;
        let found = store.product(&code, moment(self.at))?;
        let when = self.at.map_or_else(
            || "is live".to_owned(),
            |number| format!("was live in revision {number}"),
        );
        let product = found.with_context(|| format!("no product of the code `{code}` {when}"))?;
        print(&format!("{}\n", export::record(&*store, &product)?))?;
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
    revision.with_context(|| no_such(moment))?;
    Ok(products)
}

impl Diff {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        let mut before = products(&*store, Moment::Revision(self.from))?;
        let after = products(&*store, moment(self.to))?;
        let mut plan = Plan::default();
        for (code, product) in &after {
            plan.compare(before.remove(code).as_ref(), product);
        }
        before.keys().for_each(|code| plan.retire(code));
        if self.output.json {
            print_json(&serde_json::to_value(&plan)?)?;
        } else {
            print(&plan.to_text())?;
        }
        Ok(Outcome::Done)
    }
}

impl Export {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        match self.write(&*store, BufWriter::new(io::stdout())) {
            // A reader that has gone away (`| head`) is no failure.
            Err(error) if is_broken_pipe(&error) => Ok(Outcome::Done),
            outcome => outcome.map(|()| Outcome::Done),
        }
    }

    fn write(&self, store: &dyn Store, mut out: impl Write) -> anyhow::Result<()> {
        let (start, between, end) = match self.format {
            FormatArg::Ndjson => ("", "\n", "\n"),
            FormatArg::Json => ("[\n", ",\n", "\n]\n"),
        };
        let moment = moment(self.at);
        // Written with the first product: where there is no such revision, nothing is printed.
        let mut separator = start;
        let mut is_empty = true;
        let revision = store.read_products(moment, &mut |product| {
            let record = export::record(store, &product)?;
            write!(out, "{separator}{record}")?;
            separator = between;
            is_empty = false;
            Ok(())
        })?;
        revision.with_context(|| no_such(moment))?;
        if is_empty {
            out.write_all(start.as_bytes())?;
        }
        out.write_all(end.as_bytes())?;
        out.flush()?;
        Ok(())
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

impl Rollback {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        if io::stdin().is_terminal() && !self.yes {
            bail!(
                "this replaces the live catalog by that of revision {}; look at `vitrine diff {0}`, then add --yes",
                self.revision
            );
        }
        let store = store.open(IfMissing::Refuse)?;
        let mut publication = store.publish()?;
        if !publication.restore(self.revision)? {
            bail!(no_such(Moment::Revision(self.revision)));
        }
        let note = RevisionNote {
            by: operator(),
            note: self
                .note
                .clone()
                .or_else(|| Some(format!("rollback to revision {}", self.revision))),
            source_digest: None,
        };
        let published = publication.commit(Timestamp::now(), &note)?;
        match (published, self.output.json) {
            (Some((revision, counts)), true) => {
                let published = PublishedRevision {
                    revision,
                    counts,
                    note,
                };
                print_json(&revision_json(&published))?;
            }
            (None, true) => print_json(&Value::Null)?,
            (Some((revision, counts)), false) => {
                print(&format!("revision {}: {counts}\n", revision.number))?;
            }
            (None, false) => print("nothing to do: that is what is live\n")?,
        }
        Ok(Outcome::Done)
    }
}
