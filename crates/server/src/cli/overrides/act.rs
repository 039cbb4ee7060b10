//! `vitrine disable`, `hide` and `set`: make overrides; `overrides end`: ends them.

use std::io::Write as _;

use clap::Args;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::guard::Allowance;
use vitrine_ingest::overrides::change::{self, Changed, Request};
use vitrine_ingest::overrides::disabling::{Disabling, disabling};
use vitrine_ingest::overrides::{Assignment, Definition, Kind, crossed_amounts};
use vitrine_ingest::selection::given;
use vitrine_model::product::State;
use vitrine_model::selector::{CodePattern, Selector};
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::{IfMissing, Store};

use super::print::{print_changed, write_changed};
use crate::cli::confirm::ConfirmArgs;
use crate::cli::instant::Instant;
use crate::cli::load::operator;
use crate::cli::plain_text::PlainText;
use crate::cli::selection_args::{FieldArgs, SelectionArgs};
use crate::cli::time::to_second;
use crate::cli::{Outcome, OutputArgs, PlanArgs, StoreArgs, exit_with_usage_error, output};

const DISABLE_EXAMPLES: &str = "\
Examples:
  vitrine disable 'BRIARWICK-*' --note 'the issuer is down'
  vitrine disable BRIARWICK-GB --until 4h
  vitrine disable --category fashion --country SE --from '2026-12-01 09:00 Europe/Berlin' --dry-run";

const HIDE_EXAMPLES: &str = "\
Examples:
  vitrine hide BRIARWICK-GB --until '2026-11-30 09:00 Europe/Berlin'
  vitrine hide --category fashion --frozen --note 'under review'";

const SET_EXAMPLES: &str = "\
Examples:
  vitrine set 'BRIARWICK-*' discount_multiplier=0.02 --until 7d
  vitrine set --country SE maximum_value=100 --note 'limit of the bank'
  vitrine set BRIARWICK-GB categories+=sale countries_redeemable_in-=IE";

/// Arguments of commands that make or end overrides.
#[derive(Debug, Args)]
pub(in crate::cli) struct ChangeArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of commands that make an override.
#[derive(Debug, Args)]
struct MakeArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Begin at this time: one with its zone, such as '2026-12-01 09:00 Europe/Berlin', or a span from now. By default at once.
    #[arg(long, value_name = "TIME")]
    from: Option<Instant>,
    /// End at this time; by default when an operator ends it.
    #[arg(long, value_name = "TIME")]
    until: Option<Instant>,
    /// Only the products that match now, not those that match later.
    #[arg(long)]
    frozen: bool,
    /// Raise a limit of the guard, as for loads: `retire=30%` for hidden products. Give it once for each.
    #[arg(long, value_name = "NAME=PERCENT%")]
    allow: Vec<Allowance>,
}

/// Make products unorderable, whatever loads bring: `TEMPORARILY_DISABLED`, and not orderable.
///
/// It holds for every product that matches, now and later, until it ends: at a time, or by `vitrine overrides end`.
#[derive(Debug, Args)]
#[command(after_help = DISABLE_EXAMPLES)]
pub(in crate::cli) struct Disable {
    #[command(flatten)]
    make: MakeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Take products out of the live catalog without retiring them, whatever loads bring.
#[derive(Debug, Args)]
#[command(after_help = HIDE_EXAMPLES)]
pub(in crate::cli) struct Hide {
    #[command(flatten)]
    make: MakeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Set fields of products, whatever loads bring.
///
/// FIELD=VALUE is state=…, is_orderable=…, availability=…, discount_multiplier=…, categories+=… or -=…,
/// countries_redeemable_in+=… or -=…, visible=false, or one of minimum_value=…, maximum_value=… and available_list=10,25:
/// amounts are only narrowed, and a product without any left isn't orderable.
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(in crate::cli) struct Set {
    #[command(flatten)]
    make: MakeArgs,
    /// Only products with this code or pattern, such as 'BRIARWICK-*'; and the values to set.
    #[arg(value_name = "CODE|PATTERN|FIELD=VALUE", required = true)]
    words: Vec<SetWord>,
    #[command(flatten)]
    fields: FieldArgs,
}

/// A word of `vitrine set`: a code, or a value.
#[derive(Debug, Clone)]
pub(super) enum SetWord {
    Code(CodePattern),
    Value(Assignment),
}

impl std::str::FromStr for SetWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = |invalid: vitrine_model::Invalid| format!("expected {invalid}");
        match text.contains('=') {
            true => text.parse().map(Self::Value).map_err(expected),
            false => text.parse().map(Self::Code).map_err(expected),
        }
    }
}

impl Disable {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let values = vec![
            Assignment::State(State::TemporarilyDisabled),
            Assignment::IsOrderable(false),
        ];
        (self.make).run(store, Kind::Disable, self.selection.selection(), values)
    }
}

impl Hide {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let values = vec![Assignment::Hidden];
        (self.make).run(store, Kind::Hide, self.selection.selection(), values)
    }
}

impl Set {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (mut codes, mut values) = (Vec::new(), Vec::new());
        for word in &self.words {
            match word {
                SetWord::Code(code) => codes.push(code.clone()),
                SetWord::Value(value) => values.push(value.clone()),
            }
        }
        if values.is_empty() {
            exit_with_usage_error(
                "there is no FIELD=VALUE to set; see `vitrine set --help`, for example discount_multiplier=0.02",
            );
        }
        let selection = self.fields.selection(codes);
        self.make.run(store, Kind::Set, selection, values)
    }
}

impl MakeArgs {
    fn run(
        &self,
        store: &StoreArgs,
        kind: Kind,
        selection: Selector,
        values: Vec<Assignment>,
    ) -> anyhow::Result<Outcome> {
        require_products(&selection);
        if let Some((minimum, maximum)) = crossed_amounts(&values) {
            exit_with_usage_error(&format!(
                "minimum_value={minimum} is above maximum_value={maximum}; no amount would be left"
            ));
        }
        let store = store.open(IfMissing::Refuse)?;
        // Times are those of the store's clock, by which they are applied.
        let now = store.now()?;
        let time = |flag: &str, time: &Option<Instant>| {
            let time = time.as_ref().map(|time| time.from(now));
            if let Some(past) = time.filter(|time| *time <= now) {
                let now = to_second(now);
                exit_with_usage_error(&format!(
                    "{flag}: {past} is over; the store's clock says {now}"
                ));
            }
            time
        };
        let (from, until) = (time("--from", &self.from), time("--until", &self.until));
        if until.is_some_and(|until| until <= from.unwrap_or(now)) {
            exit_with_usage_error("--until is not after the beginning");
        }
        let request = Request {
            definition: Definition {
                kind,
                selection,
                frozen: None,
                values,
                allowances: self.allow.clone(),
            },
            is_frozen: self.frozen,
            from,
            until,
            by: operator(),
            note: self.change.note.clone(),
            confirmation: None,
        };
        (self.change).perform(|intent| change::make(&store, request.clone(), intent))
    }
}

/// Refuses a command line that selects nothing in particular.
fn require_products(selection: &Selector) {
    if *selection == Selector::default() {
        exit_with_usage_error("no products are selected; name some, or all of them with '*'");
    }
}

impl ChangeArgs {
    /// Ends the overrides by `vitrine disable` of products.
    pub(super) fn end_disabling(
        &self,
        store: &Store,
        codes: &[CodePattern],
    ) -> anyhow::Result<Outcome> {
        let selection = Selector {
            codes: given(codes.to_vec()),
            ..Selector::default()
        };
        let Disabling { numbers, scheduled } = disabling(store, &selection)?;
        for one in &scheduled {
            let (number, from) = (one.number, to_second(one.stored.made.from));
            writeln!(
                output::stderr(),
                "note: override {number} disables selected products from {from} on; \
                 `vitrine overrides end {number}` cancels it"
            )?;
        }
        self.end(store, &numbers)
    }

    /// Ends overrides.
    pub(super) fn end(&self, store: &Store, numbers: &[u64]) -> anyhow::Result<Outcome> {
        let context = AuditContext {
            by: operator(),
            note: self.note.clone(),
            action: AuditAction::EndOverride,
            confirmation: None,
        };
        self.perform(|intent| change::end(store, numbers, &context, intent))
    }

    /// Shows what a change would do and asks, on a terminal; then makes it, and shows what it did.
    fn perform(
        &self,
        change: impl Fn(Intent) -> anyhow::Result<Changed>,
    ) -> anyhow::Result<Outcome> {
        if self.dry_run {
            let planned = change(Intent::DryRun)?;
            return print_changed(&planned, Intent::DryRun, self.output, self.plan);
        }
        if self.confirm.is_needed() {
            let planned = change(Intent::DryRun)?;
            if !planned.exceeded.is_empty() {
                return print_changed(&planned, Intent::Apply, self.output, self.plan);
            }
            let mut told = String::new();
            let mut out = output::stderr();
            let listing = out.listing(self.plan.all);
            write_changed(&mut told, &planned, Intent::DryRun, listing)?;
            out.write_all(told.as_bytes())?;
            self.confirm.confirm_at_terminal("this goes live")?;
        }
        let changed = change(Intent::Apply)?;
        print_changed(&changed, Intent::Apply, self.output, self.plan)
    }
}
