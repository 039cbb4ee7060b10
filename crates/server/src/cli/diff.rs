//! `vitrine diff`: prints the differences between two revisions.
//!
//! - `sides`: the products of both

mod sides;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Write as _;

use anyhow::bail;
use clap::Args;
use serde_json::json;
use vitrine_ingest::load::json::Node;
use vitrine_ingest::load::plan::{Listing, Plan};
use vitrine_ingest::load::report::counts_json;
use vitrine_ingest::overrides::count_effects;
use vitrine_ingest::selection::given;
use vitrine_ingest::text_difference::{TextDifference, text_differences};
use vitrine_model::code::ProductCode;
use vitrine_model::selector::{CodePattern, Selector};
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{IfMissing, Store};

use self::sides::{Pair, Sides};
use super::history::hidden;
use super::layer_args::LayerArgs;
use super::overrides::found_or_told;
use super::revision_arg::{RevisionArg, moment};
use super::{Outcome, OutputArgs, PlanArgs, StoreArgs, output, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine diff 12
  vitrine diff 11 12 --json
  vitrine diff --at 2026-12-01 --stat
  vitrine diff 11 12 --code 'BRIARWICK-*' --texts
  vitrine diff 2h --field is_orderable --field discount_multiplier";

/// Show the differences between two revisions, or between one and the live one.
///
/// First the fields that differ with the number of products, then the products. A revision is named by its number, or by a time
/// at which it was live: a date, a time, or how long ago (2h).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Diff {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    /// Only count: the fields that differ, and the products.
    #[arg(long, conflicts_with_all = ["all", "texts"])]
    stat: bool,
    /// Only products with this code or pattern, such as 'BRIARWICK-*'. Give it once for each.
    #[arg(long = "code", value_name = "CODE|PATTERN")]
    codes: Vec<CodePattern>,
    /// Only changes of this field: its name, or its JSON pointer such as /gift_card/denominations. Give it once for each.
    #[arg(long = "field", value_name = "FIELD")]
    fields: Vec<String>,
    #[command(flatten)]
    layer: LayerArgs,
    /// Show changed texts line by line.
    #[arg(long)]
    texts: bool,
    /// Compare with what was live at this time; the same as FROM.
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    at: Option<RevisionArg>,
    /// The older revision.
    #[arg(value_name = "FROM", required_unless_present = "at")]
    from: Option<RevisionArg>,
    /// The newer revision; by default what is live.
    #[arg(value_name = "TO")]
    to: Option<RevisionArg>,
}

impl Diff {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        let from = moment(&store, self.from.or(self.at))?;
        let to = moment(&store, self.to)?;
        let selection = Selector {
            codes: given(self.codes.clone()),
            ..Selector::default()
        };
        let sides = Sides {
            store: &store,
            layer: self.layer,
            selection: &selection,
            moments: [from, to],
        };
        let mut compared = Compared {
            missing: selection.named_codes().collect(),
            ..Compared::default()
        };
        let others = sides.each(&mut |pair| self.compare(&store, pair, &mut compared))?;
        let Compared {
            mut plan,
            after,
            mut texts,
            missing,
        } = compared;
        (0..others).for_each(|_| plan.keep());
        self.check_words(&plan, &sides)?;
        self.check_codes(missing, &sides)?;
        for product in &mut plan.changed {
            product.texts = texts.remove(&product.code).unwrap_or_default();
        }
        let differing = plan.changed.len();
        if !self.fields.is_empty() {
            plan.retain_fields(|pointer| self.fields.iter().any(|field| is_of(pointer, field)));
        }
        let effects = match self.layer.is_base() {
            false => found_or_told(effects(&store, to, &plan, &after))?,
            true => BTreeMap::new(),
        };
        self.print(&plan, differing, to, effects)
    }

    /// Prints the differences; `differing` is the number of changed products before `--field`.
    fn print(
        &self,
        plan: &Plan,
        differing: usize,
        to: Moment,
        effects: Effects,
    ) -> anyhow::Result<Outcome> {
        if self.output.json {
            let mut json = match self.stat {
                true => json!({"by_field": serde_json::to_value(plan)?["by_field"].take()}),
                false => serde_json::to_value(plan)?,
            };
            if self.stat || !self.fields.is_empty() {
                json["counts"] = counts_json(&plan.counts());
            }
            if !effects.is_empty() {
                json["overrides"] = json!(effects);
            }
            print_json(&json)?;
            return Ok(Outcome::Done);
        }
        let listing = match self.stat {
            true => Listing::Counts,
            false => output::stdout().listing(self.plan.all),
        };
        let mut told = plan.to_text(listing);
        if !self.fields.is_empty() {
            let shown = plan.changed.len();
            told += &format!(
                "--field: {shown} of {differing} changed products; created and retired ones aren't shown\n"
            );
        }
        for (number, fields) in effects {
            let fields = fields
                .iter()
                .map(|(field, products)| format!("{field} of {products}"));
            let fields = fields.collect::<Vec<_>>().join(", ");
            told += &match to {
                Moment::Live => {
                    format!("override {number} sets values of these products now: {fields}\n")
                }
                Moment::Revision(revision) => format!(
                    "override {number} set values of these products in revision {revision}: {fields}\n"
                ),
            };
        }
        print(&told)?;
        Ok(Outcome::Done)
    }

    /// Compares a product of both moments.
    fn compare(
        &self,
        store: &Store,
        [old, new]: Pair,
        compared: &mut Compared<'_>,
    ) -> anyhow::Result<()> {
        let is_same = old == new;
        let Some(new) = new else {
            let Some(old) = old else { return Ok(()) };
            compared.missing.remove(old.code.as_str());
            compared.plan.retire(&old.code);
            return Ok(());
        };
        compared.missing.remove(new.code.as_str());
        compared.plan.compare(old.as_ref(), &new);
        if is_same {
            return Ok(());
        }
        if let Some(old) = old.filter(|_| self.texts) {
            let differences = text_differences(store, &old, &new)?;
            compared.texts.insert(new.code.to_string(), differences);
        }
        if !self.layer.is_base() {
            compared.after.insert(new.code.clone(), new);
        }
        Ok(())
    }

    /// Refuses fields that no product has.
    fn check_words(&self, plan: &Plan, sides: &Sides<'_>) -> anyhow::Result<()> {
        let has_change = |field: &str| {
            let mut changes = plan.changed.iter().flat_map(|product| &product.fields);
            changes.any(|change| is_of(&change.pointer, field))
        };
        for field in self.fields.iter().filter(|field| !has_change(field)) {
            require_field(field, sides)?;
        }
        Ok(())
    }

    /// Says on standard error which codes no product has, or only one that an override hides.
    fn check_codes(&self, missing: BTreeSet<&str>, sides: &Sides<'_>) -> anyhow::Result<()> {
        let [from, to] = sides.moments;
        for code in missing {
            let mut told = format!("there is no product {code}");
            for moment in [to, from] {
                let hidden = match code.parse() {
                    Ok(code) if !self.layer.is_base() => hidden(sides.store, &code, moment)?,
                    _ => None,
                };
                if let Some(how) = hidden {
                    told = format!("{code} {how}; --base compares it");
                    break;
                }
            }
            writeln!(output::stderr(), "vitrine: {told}")?;
        }
        Ok(())
    }
}

/// Fields that overrides set, with the number of products, by the number of the override.
type Effects = BTreeMap<u64, BTreeMap<&'static str, u64>>;

/// Comparison of the products of both moments.
#[derive(Default)]
struct Compared<'s> {
    plan: Plan,
    /// Products that differ, as they are at the later moment.
    after: BTreeMap<ProductCode, StoredProduct>,
    /// Differing texts of products, by their codes.
    texts: HashMap<String, Vec<TextDifference>>,
    /// Codes that were asked for, and not found.
    missing: BTreeSet<&'s str>,
}

/// Counts the products of a plan of which overrides set values at a moment, at which clients saw `after`.
fn effects(
    store: &Store,
    moment: Moment,
    plan: &Plan,
    after: &BTreeMap<ProductCode, StoredProduct>,
) -> anyhow::Result<Effects> {
    let changed = plan.changed.iter().map(|product| product.code.as_str());
    let others = plan.created.iter().chain(&plan.retired);
    let differing: HashSet<&str> = changed.chain(others.map(String::as_str)).collect();
    count_effects(store, moment, &|code| {
        differing.contains(code.as_str()).then(|| after.get(code))
    })
}

/// Refuses a field that no product has: a word that was misspelt would look as if nothing had changed.
fn require_field(field: &str, sides: &Sides<'_>) -> anyhow::Result<()> {
    fn has(node: &Node<'_>, pointer: &str, field: &str) -> bool {
        match node {
            Node::Object(members) => members.iter().any(|(key, value)| {
                let pointer = format!("{pointer}/{key}");
                is_of(&pointer, field) || has(value, &pointer, field)
            }),
            _ => false,
        }
    }
    let is_there = |product: &StoredProduct| has(&Node::parse(&product.document).0, "", field);
    match sides.any(&is_there)?.unwrap_or(true) {
        true => Ok(()),
        false => bail!(
            "no product has a field `{field}`; name one as the API does, such as is_orderable or /gift_card/denominations"
        ),
    }
}

/// Returns true if a JSON pointer is that of a field, or of a part of it. A field is a pointer, or a name at any depth.
fn is_of(pointer: &str, field: &str) -> bool {
    match field.strip_prefix('/') {
        Some(_) => pointer
            .strip_prefix(field)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        None => pointer.split('/').any(|name| name == field),
    }
}
