//! Acts on products: overrides that disable, hide or set, and their end.

use jiff::Timestamp;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::guard::Allowance;
use vitrine_ingest::overrides::change::{self, Request};
use vitrine_ingest::overrides::disabling::disabling;
use vitrine_ingest::overrides::{Assignment, Definition, Kind, crossed_amounts};
use vitrine_model::product::State;
use vitrine_store::audit::AuditAction;

use super::form::Form;
use super::form_faults::FormFaults;
use super::override_change::told;
use super::page::{ActPage, Field, FieldKind, NextForm, Told};
use super::{Context, Outcome, again, selection};
use crate::browser::times::minute;
use crate::times::instant::parse_instant;
use crate::times::to_second;

/// Maximum number of values that an override sets here.
const MAX_VALUES: usize = 250;

/// An act that makes an override.
#[derive(Clone, Copy)]
struct Make {
    kind: Kind,
    title: &'static str,
    lead: &'static str,
    /// The command that does the same.
    command: &'static str,
}

const DISABLE: Make = Make {
    kind: Kind::Disable,
    title: "Disable products",
    lead: "Makes products unorderable, whatever loads bring, until the override ends.",
    command: "vitrine disable",
};

const HIDE: Make = Make {
    kind: Kind::Hide,
    title: "Hide products",
    lead: "Takes products out of the live catalog without retiring them, whatever loads bring, until the override ends.",
    command: "vitrine hide",
};

const SET: Make = Make {
    kind: Kind::Set,
    title: "Set fields of products",
    lead: "Sets fields of products, whatever loads bring, until the override ends.",
    command: "vitrine set",
};

pub(super) fn show_disable(context: &Context<'_>) -> Outcome {
    DISABLE.page(context).into()
}

pub(super) fn disable(context: &Context<'_>) -> Outcome {
    DISABLE.run(context).into()
}

pub(super) fn show_hide(context: &Context<'_>) -> Outcome {
    HIDE.page(context).into()
}

pub(super) fn hide(context: &Context<'_>) -> Outcome {
    HIDE.run(context).into()
}

pub(super) fn show_set(context: &Context<'_>) -> Outcome {
    SET.page(context).into()
}

pub(super) fn set(context: &Context<'_>) -> Outcome {
    SET.run(context).into()
}

impl Make {
    fn page(self, context: &Context<'_>) -> ActPage {
        let field = |kind, name, words| Field::new(context, kind, name, words);
        let mut fields = selection::fields(context);
        if self.kind == Kind::Set {
            let words = (
                "Values",
                "One a line: discount_multiplier=0.02, maximum_value=100, categories+=sale, state=LIVE and the like.",
            );
            fields.push(field(FieldKind::Area, "value", words));
        }
        fields.extend([
            field(
                FieldKind::Line,
                "from",
                (
                    "Begins",
                    "A time with its zone, such as 2026-12-01 09:00 Europe/Berlin, or a span from now, such as 2h. Empty: at once.",
                ),
            )
            .half(),
            field(
                FieldKind::Line,
                "until",
                ("Ends", "A time or a span likewise. Empty: when an operator ends it."),
            )
            .half(),
            field(
                FieldKind::Tick,
                "frozen",
                (
                    "Only the products that match now",
                    "Otherwise also those that match later.",
                ),
            ),
            allow_field(context).half(),
            Field::note(context).half(),
        ]);
        ActPage::new(self.title, self.lead, fields)
    }

    fn run(self, context: &Context<'_>) -> ActPage {
        let mut page = self.page(context);
        let now = match context.store.now() {
            Ok(now) => now,
            Err(error) => return page.failed(&error.into(), self.command),
        };
        let request = match self.request(context, now) {
            Ok(request) => request,
            Err(error) => return page.failed(&error, self.command),
        };
        for (name, time) in [("from", request.from), ("until", request.until)] {
            if let Some(time) = time {
                page = page.with_resolved(name, time.to_string());
            }
        }
        let intent = match context.form.is_confirmed() {
            true => Intent::Apply,
            false => Intent::DryRun,
        };
        let changed = match change::make(context.store, request, intent) {
            Ok(changed) => changed,
            Err(error) => return page.failed(&error, self.command),
        };
        let told = told(&changed, intent);
        match (changed.exceeded.is_empty(), intent) {
            (false, _) => page.refused(told),
            (true, Intent::DryRun) => page.planned(told),
            (true, Intent::Apply) => page.done(Told {
                next: changed.made.first().map(|made| NextForm {
                    path: "/acts/end-override",
                    label: "Undo: end the override",
                    fields: vec![("number", made.number.to_string())],
                }),
                ..told
            }),
        }
    }

    /// Reads the form. `now` is the time by the clock of the store, by which overrides begin and end.
    fn request(self, context: &Context<'_>, now: Timestamp) -> anyhow::Result<Request> {
        let form = &context.form;
        let time = |name: &str| {
            let parse = |text| match parse_instant(text, now)? {
                past if past <= now => Err(format!(
                    "{past} is over; the store’s clock says {}",
                    to_second(now)
                )),
                future => Ok(future),
            };
            form.get(name).map(parse).transpose()
        };
        let values = match self.kind {
            Kind::Disable => Ok(vec![
                Assignment::State(State::TemporarilyDisabled),
                Assignment::IsOrderable(false),
            ]),
            Kind::Hide => Ok(vec![Assignment::Hidden]),
            Kind::Set => values(&form.lines("value")),
        };
        let mut faults = FormFaults::default();
        let selection = faults.take_read(selection::read(form))?;
        let values = faults.take(values);
        let from = faults.take(time("from").map_err(|why| format!("Begins: {why}.")));
        let until = faults.take(time("until").map_err(|why| format!("Ends: {why}.")));
        let allowances = faults.take(allowances(form));
        faults.check()?;
        Ok(Request {
            definition: Definition {
                kind: self.kind,
                selection: selection.unwrap_or_default(),
                frozen: None,
                values: values.unwrap_or_default(),
                allowances: allowances.unwrap_or_default(),
            },
            is_frozen: form.has("frozen"),
            from: from.flatten(),
            until: until.flatten(),
            by: context.viewer.name.to_string(),
            note: context.note(),
            confirmation: context.confirmation.cloned(),
        })
    }
}

/// Returns the field of the guard's limits.
pub(super) fn allow_field(context: &Context<'_>) -> Field {
    let words = (
        "Raised limits of the guard",
        "Such as retire=30%, if the guard refuses it otherwise.",
    );
    Field::new(context, FieldKind::Line, "allow", words)
}

/// Reads the guard's limits.
pub(super) fn allowances(form: &Form) -> Result<Vec<Allowance>, String> {
    let allowances = form.words("allow").into_iter().map(str::parse);
    let allowances: Result<_, String> = allowances.collect();
    allowances.map_err(|why| format!("Raised limits of the guard: {why}."))
}

/// Reads values, one a line.
fn values(lines: &str) -> Result<Vec<Assignment>, String> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    if lines.len() > MAX_VALUES {
        return Err(format!(
            "Values: these are {} lines, and the limit is {MAX_VALUES}.",
            lines.len()
        ));
    }
    let parsed = lines.into_iter().map(|line| {
        line.parse::<Assignment>()
            .map_err(|invalid| format!("Values: `{}` isn't {invalid}.", line.replace('`', "'")))
    });
    let values = parsed.collect::<Result<Vec<_>, String>>()?;
    if values.is_empty() {
        return Err(
            "Values: there is nothing to set; such as `discount_multiplier=0.02`.".to_owned(),
        );
    }
    match crossed_amounts(&values) {
        None => Ok(values),
        Some((minimum, maximum)) => Err(format!(
            "Values: minimum_value={minimum} is above maximum_value={maximum}; no amount would be left."
        )),
    }
}

fn enable_page(context: &Context<'_>) -> ActPage {
    let mut fields = selection::fields(context);
    fields.push(Field::note(context));
    ActPage::new(
        "Enable products",
        "Ends the overrides that disable these products. Never makes a product LIVE: its state is the one that loads brought, or that another override sets.",
        fields,
    )
}

pub(super) fn show_enable(context: &Context<'_>) -> Outcome {
    enable_page(context).into()
}

pub(super) fn enable(context: &Context<'_>) -> Outcome {
    let page = enable_page(context);
    let selection = match selection::read(&context.form) {
        Ok(selection) => selection,
        Err(error) => return page.failed(&error, "vitrine overrides end").into(),
    };
    match disabling(context.store, &selection) {
        Ok(found) => {
            let mut page = end_numbers(context, page, &found.numbers);
            for one in &found.scheduled {
                page = page.warned(&format!(
                    "Override {} disables selected products again, from {} on; end it, too, to cancel that.",
                    one.number,
                    minute(&one.stored.made.from)
                ));
            }
            page.into()
        }
        Err(error) => page.failed(&error, "vitrine overrides end").into(),
    }
}

/// Returns the field of numbers of overrides.
pub(super) fn numbers_field(context: &Context<'_>) -> Field {
    let words = ("Numbers of overrides", "With spaces or commas in between.");
    Field::new(context, FieldKind::Line, "number", words)
}

/// Reads the numbers of overrides.
pub(super) fn numbers(context: &Context<'_>) -> Result<Vec<u64>, String> {
    let numbers = context.form.words("number").into_iter().map(str::parse);
    match numbers.collect::<Result<Vec<u64>, _>>() {
        Ok(numbers) if !numbers.is_empty() => Ok(numbers),
        _ => Err("Numbers of overrides: expected numbers, such as `7`.".to_owned()),
    }
}

fn end_page(context: &Context<'_>) -> ActPage {
    ActPage::new(
        "End overrides",
        "Products are again as loads brought them, under the overrides that are left.",
        vec![numbers_field(context), Field::note(context)],
    )
}

pub(super) fn show_end(context: &Context<'_>) -> Outcome {
    end_page(context).into()
}

pub(super) fn end(context: &Context<'_>) -> Outcome {
    let page = end_page(context);
    match numbers(context) {
        Ok(numbers) => end_numbers(context, page, &numbers),
        Err(fault) => page.with_fault(fault),
    }
    .into()
}

fn end_numbers(context: &Context<'_>, page: ActPage, numbers: &[u64]) -> ActPage {
    let intent = match context.form.is_confirmed() {
        true => Intent::Apply,
        false => Intent::DryRun,
    };
    let audit = context.audit(AuditAction::EndOverride);
    match change::end(context.store, numbers, &audit, intent) {
        Ok(changed) if intent == Intent::Apply => page.done(Told {
            next: again::undo(&changed.ended),
            ..told(&changed, intent)
        }),
        Ok(changed) => page.planned(told(&changed, intent)),
        Err(error) => page.failed(&error, "vitrine overrides end"),
    }
}
