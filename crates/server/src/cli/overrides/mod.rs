//! Overrides: what operators say of products, over every load.
//!
//! - `act`: the commands that make and end them
//! - `print`: overrides and their effects, for people and programs

mod act;
mod print;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::report::shown;
use vitrine_ingest::overrides::{Override, products_of};
use vitrine_model::code::ProductCode;
use vitrine_store::IfMissing;

use self::act::{ChangeArgs, Disable, Enable, Hide, Set};
pub(super) use self::print::instant_json;
use self::print::{override_json, table};
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine disable 'BRIARWICK-*' --note 'the issuer is down'
  vitrine overrides list
  vitrine overrides show 7
  vitrine overrides end 7";

const LIST_EXAMPLES: &str = "\
Examples:
  vitrine overrides list
  vitrine overrides list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  vitrine overrides show 7";

const END_EXAMPLES: &str = "\
Examples:
  vitrine overrides end 7
  vitrine overrides end 7 8 --dry-run
  vitrine overrides end 7 --note 'the issuer is back'";

const HISTORY_EXAMPLES: &str = "\
Examples:
  vitrine overrides history
  vitrine overrides history --json";

/// Look at overrides, and end them. `vitrine disable`, `hide` and `set` make them.
///
/// An override holds over every load, until it ends. Of two that set the same field of a product, the later one takes
/// precedence; amounts are narrowed by all.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Overrides {
    /// List the overrides that are active or scheduled.
    #[command(after_help = LIST_EXAMPLES)]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show an override, and the products that it changes now.
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        #[command(flatten)]
        output: OutputArgs,
        /// Number of the override.
        number: u64,
    },
    /// End overrides: clients see again what loads brought.
    #[command(after_help = END_EXAMPLES)]
    End {
        #[command(flatten)]
        change: ChangeArgs,
        /// Numbers of the overrides.
        #[arg(required = true)]
        numbers: Vec<u64>,
    },
    /// List all overrides, ended ones included, the newest first.
    #[command(after_help = HISTORY_EXAMPLES)]
    History {
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Commands that make and end overrides.
#[derive(Debug, Subcommand)]
pub(super) enum Act {
    Disable(Disable),
    Enable(Enable),
    Hide(Hide),
    Set(Set),
}

impl Act {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        match self {
            Self::Disable(disable) => disable.run(store),
            Self::Enable(enable) => enable.run(store),
            Self::Hide(hide) => hide.run(store),
            Self::Set(set) => set.run(store),
        }
    }
}

impl Overrides {
    /// Returns true if it writes to the store.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::End { .. })
    }

    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        match self {
            Self::List { output } => {
                let mut overrides = Override::read_all(store.overrides()?)?;
                overrides.retain(|one| one.stored.ended.is_none());
                print_list(&overrides, *output)
            }
            Self::History { output } => {
                let mut overrides = Override::read_all(store.overrides()?)?;
                overrides.reverse();
                print_list(&overrides, *output)
            }
            Self::End { change, numbers } => change.end(&*store, numbers),
            Self::Show { output, number } => show(&*store, *output, *number),
        }
    }
}

fn print_list(overrides: &[Override], output: OutputArgs) -> anyhow::Result<Outcome> {
    match output.json {
        true => print_json(&Value::Array(overrides.iter().map(override_json).collect()))?,
        false => print(&table(overrides))?,
    }
    Ok(Outcome::Done)
}

fn show(
    store: &dyn vitrine_store::Store,
    output: OutputArgs,
    number: u64,
) -> anyhow::Result<Outcome> {
    let all = Override::read_all(store.overrides()?)?;
    let one = (all.iter().find(|one| one.number == number)).with_context(|| {
        format!("there is no override {number}; see `vitrine overrides history`")
    })?;
    let (selected, changed) = products_of(store, one)?;
    if output.json {
        let mut json = override_json(one);
        json["products"] = changed.iter().map(ProductCode::as_str).collect();
        json["selected"] = json!(selected);
        print_json(&json)?;
        return Ok(Outcome::Done);
    }
    let made = &one.stored.made;
    let mut told = format!(
        "override {number}: {}\nproducts: {}\nvalues: {}\nfrom: {}\n",
        made.status.as_str(),
        one.definition.selection_text(),
        single_line(&one.definition.values_text()),
        to_second(made.from),
    );
    match (&one.stored.ended, made.until) {
        (Some(end), _) => {
            let by = end.by.as_deref().unwrap_or("its time was over");
            let note = end.note.as_deref().map(|note| format!(": {note}"));
            let by = format!("{by}{}", note.unwrap_or_default());
            told += &format!(
                "ended: {} ({})\n",
                to_second(end.at),
                single_line(&shown(&by))
            );
        }
        (None, Some(until)) => told += &format!("until: {}\n", to_second(until)),
        (None, None) => told += "until: it is ended\n",
    }
    told += &format!(
        "made: {} by {}\n",
        to_second(made.created_at),
        single_line(&made.created_by)
    );
    if let Some(note) = &made.note {
        told += &format!("note: {}\n", single_line(&shown(note)));
    }
    told += &format!(
        "live products selected: {selected}, of which it changes {}\n",
        changed.len()
    );
    for code in changed {
        told += &format!("~ {code}\n");
    }
    print(&told)?;
    Ok(Outcome::Done)
}
