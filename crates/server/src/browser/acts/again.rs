//! Making overrides that ended again: new ones with the same products, values and end. It takes their end back.

use std::collections::BTreeSet;

use jiff::Timestamp;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::guard::Allowance;
use vitrine_ingest::overrides::Override;
use vitrine_ingest::overrides::change::{self, Request};
use vitrine_store::overrides::StoredOverride;

use super::override_change::told;
use super::overrides::{allow_field, allowances, numbers, numbers_field};
use super::page::{ActPage, Field, FieldKind, NextForm, Told};
use super::{Context, Outcome};
use crate::browser::times::minute;

/// Path of the act.
pub(super) const PATH: &str = "/acts/make-override-again";

/// Commands that do the same.
const COMMAND: &str = "vitrine disable`, `hide` or `set";

/// Returns the way back from the end of overrides; none if their time is over.
pub(super) fn undo(ended: &[Override]) -> Option<NextForm> {
    let lasts = |one: &&Override| {
        let StoredOverride { made, ended, .. } = &one.stored;
        let is_over = |until: Timestamp| ended.as_ref().is_some_and(|end| end.at >= until);
        !made.until.is_some_and(is_over)
    };
    let numbers: Vec<String> = (ended.iter().filter(lasts))
        .map(|one| one.number.to_string())
        .collect();
    (!numbers.is_empty()).then(|| NextForm {
        path: PATH,
        label: match numbers.len() {
            1 => "Undo: make the override again",
            _ => "Undo: make the overrides again",
        },
        fields: vec![("number", numbers.join(", "))],
    })
}

fn page(context: &Context<'_>) -> ActPage {
    let words = ("Note", "Why. Empty: the note that the override had.");
    ActPage::new(
        "Make overrides that ended again",
        "New ones with the same products and values begin now, or when the old ones were to begin, and end when those were to end.",
        vec![
            numbers_field(context),
            allow_field(context),
            Field::new(context, FieldKind::Line, "note", words),
        ],
    )
}

pub(super) fn show(context: &Context<'_>) -> Outcome {
    page(context).into()
}

pub(super) fn run(context: &Context<'_>) -> Outcome {
    let page = page(context);
    let read = numbers(context).and_then(|numbers| Ok((numbers, allowances(&context.form)?)));
    let (numbers, allowances) = match read {
        Ok(read) => read,
        Err(fault) => return page.with_fault(fault).into(),
    };
    let intent = match context.form.is_confirmed() {
        true => Intent::Apply,
        false => Intent::DryRun,
    };
    let requests = match requests(context, &numbers, &allowances) {
        Ok(requests) => requests,
        Err(error) => return page.failed(&error, COMMAND).into(),
    };
    let changed = match change::make_all(context.store, requests, intent) {
        Ok(changed) => changed,
        Err(error) => return page.failed(&error, COMMAND).into(),
    };
    let told = told(&changed, intent);
    match (changed.exceeded.is_empty(), intent) {
        (false, _) => page.refused(told),
        (true, Intent::DryRun) => page.planned(told),
        (true, Intent::Apply) => {
            let numbers = changed.made.iter().map(|one| one.number.to_string());
            let numbers: Vec<String> = numbers.collect();
            page.done(Told {
                next: Some(NextForm {
                    path: "/acts/end-override",
                    label: match numbers.len() {
                        1 => "Undo: end the override",
                        _ => "Undo: end the overrides",
                    },
                    fields: vec![("number", numbers.join(", "))],
                }),
                ..told
            })
        }
    }
    .into()
}

/// Returns requests for the overrides of these numbers, the older ones first: the newer ones take precedence again.
fn requests(
    context: &Context<'_>,
    numbers: &[u64],
    allowances: &[Allowance],
) -> anyhow::Result<Vec<Request>> {
    let (all, now) = (context.store.overrides()?, context.store.now()?);
    let numbers: BTreeSet<u64> = numbers.iter().copied().collect();
    let request = |number: u64| {
        let found = all.iter().find(|one| one.number == number);
        let missing =
            || anyhow::anyhow!("there is no override {number}; the page of overrides lists all");
        request(context, found.ok_or_else(missing)?, allowances, now)
    };
    numbers.into_iter().map(request).collect()
}

fn request(
    context: &Context<'_>,
    one: &StoredOverride,
    allowances: &[Allowance],
    now: Timestamp,
) -> anyhow::Result<Request> {
    let number = one.number;
    anyhow::ensure!(one.ended.is_some(), "override {number} hasn't ended");
    let Override {
        mut definition,
        stored,
        ..
    } = Override::parse(one.clone()).map_err(|one| one.error())?;
    let made = stored.made;
    if let Some(until) = made.until.filter(|until| *until <= now) {
        anyhow::bail!(
            "the time of override {number} was over at {}",
            minute(&until)
        );
    }
    definition.allowances.extend(allowances.iter().copied());
    Ok(Request {
        definition,
        // Those of a frozen one are in its definition.
        is_frozen: false,
        from: Some(made.from),
        until: made.until,
        by: context.viewer.name.to_string(),
        note: context.note().or(made.note),
        confirmation: context.confirmation.cloned(),
    })
}
