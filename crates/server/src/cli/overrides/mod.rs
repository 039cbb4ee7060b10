//! Overrides: what operators say of products, over every load.
//!
//! - `act`: the commands that make and end them
//! - `print`: overrides and their effects, for people and programs

mod act;
mod print;

use std::io::Write as _;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::json;
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::report::shown;
use vitrine_ingest::overrides::unreadable::Unreadable;
use vitrine_ingest::overrides::{Override, OverrideProducts, products_of};
use vitrine_model::code::ProductCode;
use vitrine_model::selector::CodePattern;
use vitrine_store::overrides::StoredOverride;
use vitrine_store::{IfMissing, StoreError};

use self::act::{ChangeArgs, Disable, Hide, Set};
pub(super) use self::print::instant_json;
use self::print::{parsed_json, table};
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, output, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine disable 'BRIARWICK-*' --note 'the issuer is down'
  vitrine overrides list
  vitrine overrides show 7
  vitrine overrides end 7";

const LIST_EXAMPLES: &str = "\
Examples:
  vitrine overrides list
  vitrine overrides list --all --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  vitrine overrides show 7";

const END_EXAMPLES: &str = "\
Examples:
  vitrine overrides end 7
  vitrine overrides end 7 8 --dry-run
  vitrine overrides end --codes 'BRIARWICK-*' --note 'the issuer is back'";

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
        /// List ended ones too, the newest first.
        #[arg(long)]
        all: bool,
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
        #[arg(required_unless_present = "codes")]
        numbers: Vec<u64>,
        /// End the overrides by `vitrine disable` of the products with these codes or patterns, such as 'BRIARWICK-*'.
        #[arg(long, value_name = "CODE|PATTERN", num_args = 1.., conflicts_with = "numbers")]
        codes: Vec<CodePattern>,
    },
    /// The same as `list --all`.
    #[command(hide = true)]
    History {
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Commands that make and end overrides.
#[derive(Debug, Subcommand)]
pub(super) enum Act {
    Disable(Disable),
    /// End the overrides by `vitrine disable` of products: `vitrine overrides end --codes`.
    #[command(hide = true)]
    Enable {
        #[command(flatten)]
        change: ChangeArgs,
        /// Codes or patterns, such as 'BRIARWICK-*'.
        #[arg(value_name = "CODE|PATTERN", required = true)]
        codes: Vec<CodePattern>,
    },
    Hide(Hide),
    Set(Set),
}

impl Act {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        match self {
            Self::Disable(disable) => disable.run(store),
            Self::Enable { change, codes } => {
                let store = store.open(IfMissing::Refuse)?;
                change.end_disabling(&store, codes)
            }
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
            Self::List { output, all: false } => {
                let mut overrides = store.overrides()?;
                overrides.retain(|one| one.ended.is_none());
                print_list(overrides, *output)
            }
            Self::List { output, all: true } | Self::History { output } => {
                let mut overrides = store.overrides()?;
                overrides.reverse();
                print_list(overrides, *output)
            }
            Self::End {
                change,
                numbers,
                codes,
            } => match codes.is_empty() {
                true => change.end(&store, numbers),
                false => change.end_disabling(&store, codes),
            },
            Self::Show { output, number } => show(&store, *output, *number),
        }
    }
}

/// Prints overrides; of those that can't be read, what is known, and what to do on standard error.
fn print_list(stored: Vec<StoredOverride>, output: OutputArgs) -> anyhow::Result<Outcome> {
    let parsed: Vec<Result<Override, Box<Unreadable>>> =
        stored.into_iter().map(Override::parse).collect();
    match output.json {
        true => print_json(&parsed.iter().map(parsed_json).collect())?,
        false => print(&table(&parsed))?,
    }
    let unreadable = parsed.iter().filter_map(|one| one.as_ref().err());
    for one in unreadable.filter(|one| one.stored.ended.is_none()) {
        warn(&one.error())?;
    }
    Ok(Outcome::Done)
}

/// Says on standard error what can't be told.
fn warn(error: &StoreError) -> anyhow::Result<()> {
    writeln!(output::stderr(), "vitrine: {error}")?;
    Ok(())
}

/// Returns what was found about the overrides of products, or nothing if one of them can't be read; then it says so on standard
/// error.
pub(super) fn found_or_told<T: Default>(found: anyhow::Result<T>) -> anyhow::Result<T> {
    let is_damage = |error: &&StoreError| matches!(error, StoreError::Damaged(_));
    match &found {
        Err(error) => match error.downcast_ref::<StoreError>().filter(is_damage) {
            Some(damage) => {
                writeln!(
                    output::stderr(),
                    "vitrine: which overrides set values can't be told: {damage}"
                )?;
                Ok(T::default())
            }
            None => found,
        },
        Ok(_) => found,
    }
}

/// Prints an override, and the products that it changes if it can be read.
fn show(store: &vitrine_store::Store, output: OutputArgs, number: u64) -> anyhow::Result<Outcome> {
    let mut all = store.overrides()?.into_iter();
    let one = (all.find(|one| one.number == number)).with_context(|| {
        format!("there is no override {number}; see `vitrine overrides list --all`")
    })?;
    let parsed = Override::parse(one);
    let mut json = parsed_json(&parsed);
    let (stored, products) = match &parsed {
        Ok(one) => (&one.stored, Some(products_of(store, one)?)),
        Err(one) => (&one.stored, None),
    };
    if output.json {
        if let Some(products) = &products {
            json["products"] = products.changed.iter().map(ProductCode::as_str).collect();
            json["selected"] = json!(products.selected);
            if !products.unreadable.is_empty() {
                json["products_unknown"] = json!(products.unknown);
            }
        }
        print_json(&json)?;
    } else {
        let mut told = stored_text(stored, parsed.as_ref().ok());
        if let Some(products) = &products {
            told += &products_text(products);
        }
        print(&told)?;
    }
    let others = products.iter().flat_map(|products| &products.unreadable);
    for one in others.chain(parsed.as_ref().err().map(AsRef::as_ref)) {
        warn(&one.error())?;
    }
    Ok(Outcome::Done)
}

/// Returns the products of an override, for people.
fn products_text(products: &OverrideProducts) -> String {
    let OverrideProducts {
        selected,
        changed,
        unknown,
        unreadable,
    } = products;
    let mut told = format!(
        "live products selected: {selected}, of which it changes {}\n",
        changed.len()
    );
    for code in changed {
        told += &format!("~ {code}\n");
    }
    if *unknown > 0 {
        let numbers = unreadable.iter().map(|one| one.stored.number.to_string());
        let numbers = numbers.collect::<Vec<_>>().join(", ");
        told += &format!(
            "unknown, because override {numbers} can't be read: whether it changes {unknown} more\n"
        );
    }
    told
}

/// Returns an override for people.
fn stored_text(stored: &StoredOverride, readable: Option<&Override>) -> String {
    let made = &stored.made;
    let number = stored.number;
    let mut told = format!("override {number}: {}\n", made.status.as_str());
    told += &match readable {
        Some(one) => format!(
            "products: {}\nvalues: {}\n",
            single_line(&one.definition.products_text()),
            single_line(&one.definition.values_text()),
        ),
        None => format!(
            "definition, which can't be read: {}\n",
            single_line(&shown(&made.definition))
        ),
    };
    told += &format!("from: {}\n", to_second(made.from));
    match (&stored.ended, made.until) {
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
        (None, None) => told += "until: an operator ends it\n",
    }
    told += &format!(
        "made: {} by {}\n",
        to_second(made.created_at),
        single_line(&made.created_by)
    );
    if let Some(note) = &made.note {
        told += &format!("note: {}\n", single_line(&shown(note)));
    }
    told
}
