//! `vitrine history` and `show`: print revisions, and products as they were.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::export;
use vitrine_ingest::load::plan::{Shown, write_text_difference};
use vitrine_ingest::load::report::{counts_json, shown};
use vitrine_ingest::overrides::{is_hidden, overrides_of};
use vitrine_ingest::product_history::{ProductChange, product_history};
use vitrine_ingest::text_difference::{TextDifference, text_differences};
use vitrine_model::code::ProductCode;
use vitrine_store::record::{Availability, ChangeKind, Moment, PublishedRevision};
use vitrine_store::{IfMissing, Store};

use super::layer_args::LayerArgs;
use super::overrides::found_or_told;
use super::revision_arg::RevisionArg;
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, output, print, print_json};

const HISTORY_EXAMPLES: &str = "\
Examples:
  vitrine history
  vitrine history BRIARWICK-GB --texts
  vitrine history --limit 100 --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  vitrine show BRIARWICK-GB
  vitrine show BRIARWICK-GB --at 12
  vitrine show BRIARWICK-GB --at 2026-12-01
  vitrine show BRIARWICK-GB --base";

/// List the revisions, or those that changed a product with what each changed; the newest first.
///
/// The author of a revision is the `SUDO_USER`, `USER` or `LOGNAME` of the command that made it; `unknown` if
/// none was set.
#[derive(Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub(super) struct History {
    #[command(flatten)]
    output: OutputArgs,
    /// Maximum number of revisions, or of versions of the product.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Show changed texts line by line.
    #[arg(long, requires = "code")]
    texts: bool,
    /// The product's code. By default all revisions are listed.
    code: Option<String>,
}

/// Show a product as a record that loads again, its texts included; on a terminal indented.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(super) struct Show {
    /// Show it as of this revision, or as of the one that was live at this time.
    #[arg(long, value_name = "REVISION|TIME")]
    at: Option<RevisionArg>,
    #[command(flatten)]
    layer: LayerArgs,
    /// The product's code.
    code: String,
}

pub(super) const NOTHING_LOADED: &str = "nothing was loaded yet";

impl History {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        if let Some(code) = &self.code {
            return self.product(&store, &parsed_code(code)?);
        }
        let mut revisions = store.revisions(self.limit.saturating_add(1))?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let has_older = revisions.len() > limit;
        revisions.truncate(limit);
        if self.output.json {
            let revisions = revisions.iter().map(revision_json).collect();
            print_json(&Value::Array(revisions))?;
            return self.done(has_older, "revisions");
        }
        let mut table = output::table([
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
        print(&format!("{}\n", output::fitted(table)))?;
        self.done(has_older, "revisions")
    }

    /// Says that there are older ones than were printed; beside JSON on standard error.
    fn done(&self, has_older: bool, what: &str) -> anyhow::Result<Outcome> {
        let limit = self.limit;
        let told = format!("… and older {what} than these {limit}; --limit shows more\n");
        match (has_older, self.output.json) {
            (false, _) => {}
            (true, true) => output::stderr().write_all(told.as_bytes())?,
            (true, false) => print(&told)?,
        }
        Ok(Outcome::Done)
    }

    /// Prints the changes of a product.
    fn product(&self, store: &Store, code: &ProductCode) -> anyhow::Result<Outcome> {
        let (changes, has_older) = product_history(store, code, self.limit)?;
        if changes.is_empty() {
            let hidden = hidden(store, code, Moment::Live)?;
            let hidden = hidden.map(|how| format!("; the live one {how}"));
            let hidden = hidden.unwrap_or_default();
            bail!("no kept revision has a product with the code `{code}`{hidden}");
        }
        let mut told = String::new();
        let mut list = Vec::new();
        for change in &changes {
            let texts = match &change.versions {
                Some((old, new)) if self.texts => text_differences(store, old, new)?,
                _ => Vec::new(),
            };
            match self.output.json {
                true => list.push(change_json(change, &texts)),
                false => write_change(&mut told, change, &texts)?,
            }
        }
        match self.output.json {
            true => print_json(&Value::Array(list))?,
            false => print(&told)?,
        }
        self.done(has_older, "versions")
    }
}

/// Returns how a product of a moment is hidden: `is hidden by override 7`; `None` if it isn't, or there is none.
pub(super) fn hidden(
    store: &Store,
    code: &ProductCode,
    moment: Moment,
) -> anyhow::Result<Option<String>> {
    if !is_hidden(store, code, moment)? {
        return Ok(None);
    }
    let mut overrides = found_or_told(overrides_of(store, code, moment))?.into_iter();
    let hiding = overrides.find(|(_, fields)| fields.contains(&"visible"));
    let by = match hiding {
        Some((one, _)) => format!("override {}", one.number),
        None => "an override".to_owned(),
    };
    Ok(Some(match moment {
        Moment::Live => format!("is hidden by {by}"),
        Moment::Revision(number) => format!("was hidden by {by} in revision {number}"),
    }))
}

/// Returns the word for a kind of change.
fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Retired => "retired",
    }
}

fn change_json(change: &ProductChange, texts: &[TextDifference]) -> Value {
    json!({
        "revision": change.published.as_ref().map(revision_json),
        "change": word(change.kind),
        "fields": change.fields(),
        "texts": texts,
    })
}

/// Writes a change of a product: its revision, then the fields and texts that differ.
fn write_change(
    out: &mut String,
    change: &ProductChange,
    texts: &[TextDifference],
) -> std::fmt::Result {
    write!(out, "{} in revision {}", word(change.kind), change.number)?;
    if let Some(PublishedRevision { revision, note, .. }) = &change.published {
        let (at, by) = (to_second(revision.created_at), single_line(&note.by));
        write!(out, ", {at}, by {by}")?;
        if let Some(note) = &note.note {
            write!(out, ": {}", single_line(&shown(note)))?;
        }
    }
    writeln!(out)?;
    for field in change.fields() {
        writeln!(out, "    {}", Shown(&field))?;
    }
    for text in texts {
        write_text_difference(out, text)?;
    }
    match change.is_oldest_kept {
        true => writeln!(
            out,
            "    older versions aren't kept; they may have been pruned"
        ),
        false => Ok(()),
    }
}

/// Parses a product's code.
fn parsed_code(code: &str) -> anyhow::Result<ProductCode> {
    match code.parse() {
        Ok(code) => Ok(code),
        Err(_) => bail!("`{code}` can't be a product's code"),
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
        let code = parsed_code(&self.code)?;
        let store = store.open(IfMissing::Refuse)?;
        let at = match self.at {
            None => None,
            Some(at) => Some(at.find(&store)?.revision.number),
        };
        let when = at.map_or_else(
            || "is live".to_owned(),
            |number| format!("was live in revision {number}"),
        );
        let moment = at.map_or(Moment::Live, Moment::Revision);
        let found = self.layer.product(&store, &code, moment)?;
        let Some(product) = found else {
            let hidden = match self.layer.is_base() {
                false => hidden(&store, &code, moment)?,
                true => None,
            };
            match hidden {
                Some(how) => bail!(
                    "`{code}` {how}; `vitrine show {code} {}--base` shows what loads brought",
                    at.map_or_else(String::new, |number| format!("--at {number} "))
                ),
                None => bail!("no product with the code `{code}` {when}"),
            }
        };
        let overrides = match self.layer.is_base() {
            false => found_or_told(overrides_of(&store, &code, moment))?,
            true => Vec::new(),
        };
        for (one, fields) in overrides {
            let (number, fields) = (one.number, fields.join(", "));
            let sets = match moment {
                Moment::Live => "sets",
                Moment::Revision(_) => "set",
            };
            writeln!(
                output::stderr(),
                "vitrine: override {number} {sets} {fields}"
            )?;
        }
        let record = export::record(&store, &product)?;
        let json = match output::stdout().is_terminal() {
            true => serde_json::to_string_pretty(&record)?,
            false => record.to_json(),
        };
        print(&format!("{json}\n"))?;
        Ok(Outcome::Done)
    }
}
