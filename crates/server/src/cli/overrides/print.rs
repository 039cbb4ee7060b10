//! Overrides, and what a change of them does, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::plan::Listing;
use vitrine_ingest::load::report::{counts_json, revision_json, shown};
use vitrine_ingest::overrides::change::{Changed, Notices};
use vitrine_ingest::overrides::instants::AppliedInstant;
use vitrine_ingest::overrides::unreadable::Unreadable;
use vitrine_ingest::overrides::{Definition, Override};
use vitrine_store::overrides::StoredOverride;

use crate::cli::load::print_by_outcome;
use crate::cli::time::to_second;
use crate::cli::{Outcome, OutputArgs, PlanArgs, output, print_json};

/// Prints what a change did, or would do: to standard error if it was refused.
pub(super) fn print_changed(
    changed: &Changed,
    intent: Intent,
    output_args: OutputArgs,
    plan: PlanArgs,
) -> anyhow::Result<Outcome> {
    let outcome = match changed.exceeded.is_empty() {
        true => Outcome::Done,
        false => Outcome::Refused,
    };
    if output_args.json {
        print_json(&changed_json(changed, intent))?;
        return Ok(outcome);
    }
    print_by_outcome(outcome, plan, |listing| {
        let mut told = String::new();
        // Writing to a string can't fail.
        let _ = write_changed(&mut told, changed, intent, listing);
        told
    })?;
    Ok(outcome)
}

fn changed_json(changed: &Changed, intent: Intent) -> Value {
    let is_applied = intent == Intent::Apply && changed.exceeded.is_empty();
    let overlapping = |found: &BTreeMap<u64, u64>| -> Vec<Value> {
        (found.iter())
            .map(|(number, products)| json!({"override": number, "products": products}))
            .collect()
    };
    let ended = changed.ended.iter().map(override_json);
    let ended = ended.chain(changed.ended_unreadable.iter().map(unreadable_json));
    json!({
        "applied": is_applied,
        "made": changed.made.first().map(override_json),
        "ended": ended.collect::<Vec<_>>(),
        "selected": changed.selected,
        "missing": changed.missing,
        "overlapping": overlapping(&changed.notices.overlapping),
        "hidden": overlapping(&changed.notices.hidden),
        "counts": counts_json(&changed.plan.counts()),
        "plan": changed.plan,
        "guard": changed.exceeded,
        "instants": changed.instants.iter().map(instant_json).collect::<Vec<_>>(),
        "revision": changed.revision.as_ref().map(revision_json),
    })
}

/// Returns an instant that was applied, for programs.
pub(in crate::cli) fn instant_json(applied: &AppliedInstant) -> Value {
    json!({
        "at": applied.at,
        "begun": applied.begun,
        "ended": applied.ended,
        "exceeded": applied.exceeded,
        "revision": applied.revision.as_ref().map(|revision| revision.number),
    })
}

/// Writes what a change did, or would do.
pub(super) fn write_changed(
    out: &mut String,
    changed: &Changed,
    intent: Intent,
    listing: Listing,
) -> fmt::Result {
    (changed.instants.iter()).try_for_each(|instant| write_instant(out, instant))?;
    for exceeded in &changed.exceeded {
        writeln!(out, "{}", exceeded.of_override())?;
    }
    write_warnings(out, changed)?;
    changed.plan.write_text(out, listing)?;
    let is_applied = intent == Intent::Apply && changed.exceeded.is_empty();
    for one in &changed.made {
        write_made(out, one, is_applied)?;
    }
    for one in &changed.ended {
        write_ended(out, one, is_applied)?;
    }
    for one in &changed.ended_unreadable {
        let ends = if is_applied { "ended" } else { "would end" };
        writeln!(
            out,
            "override {} {ends}; its definition can't be read, so all products are made anew of what loads brought",
            one.stored.number
        )?;
    }
    write_outcome(out, changed, intent, is_applied)
}

/// Writes an instant that was applied before.
fn write_instant(out: &mut String, instant: &AppliedInstant) -> fmt::Result {
    let seen = match &instant.revision {
        Some(revision) => format!("revision {}", revision.number),
        None => "clients see no change".to_owned(),
    };
    for (does, numbers) in [("began", &instant.begun), ("ended", &instant.ended)] {
        for number in numbers {
            writeln!(
                out,
                "override {number} {does} before this, since it was due at {}: {seen}",
                to_second(instant.at)
            )?;
        }
    }
    for exceeded in &instant.exceeded {
        writeln!(
            out,
            "warning: that exceeded a limit that loads have: {exceeded}"
        )?;
    }
    Ok(())
}

/// Writes the last line: the revision, or that there is none.
fn write_outcome(
    out: &mut String,
    changed: &Changed,
    intent: Intent,
    is_applied: bool,
) -> fmt::Result {
    let (counts, selected) = (changed.seen_counts(), changed.selected);
    let is_unchanged = changed.plan.counts().is_unchanged();
    let begins_later = changed.made.iter().any(|made| !made.is_active());
    if let Some(revision) = &changed.revision {
        return writeln!(out, "revision {}: {counts}", revision.number);
    }
    match (is_applied, intent) {
        (true, _) if !changed.made.is_empty() => writeln!(
            out,
            "clients see no change now; products selected: {selected}"
        ),
        (true, _) => writeln!(out, "clients see no change"),
        (false, Intent::Apply) => writeln!(
            out,
            "refused by the guard, nothing was changed; this would be: {counts}"
        ),
        (false, Intent::DryRun) if !changed.exceeded.is_empty() => writeln!(
            out,
            "nothing was changed, and the guard would refuse this; it would be: {counts}"
        ),
        (false, Intent::DryRun) if begins_later => writeln!(
            out,
            "nothing was changed; if it began now, this would be: {counts}"
        ),
        (false, Intent::DryRun) if is_unchanged && !changed.made.is_empty() => writeln!(
            out,
            "nothing was changed; clients would see no change now; products selected: {selected}"
        ),
        (false, Intent::DryRun) if is_unchanged => {
            writeln!(out, "nothing was changed; clients would see no change")
        }
        (false, Intent::DryRun) => {
            writeln!(out, "nothing was changed; this would be: {counts}")
        }
    }
}

/// Writes what an operator may not have meant.
fn write_warnings(out: &mut String, changed: &Changed) -> fmt::Result {
    let holds_later = changed
        .made
        .iter()
        .any(|one| one.definition.frozen.is_none());
    for code in &changed.missing {
        let later = match holds_later {
            true => "; the override holds if a load brings it",
            false => "",
        };
        writeln!(
            out,
            "warning: there is no product {}{later}",
            single_line(code)
        )?;
    }
    let Notices {
        overlapping,
        hidden,
    } = &changed.notices;
    for (number, products) in overlapping {
        writeln!(
            out,
            "warning: override {number} sets the same fields of {products} of these products; the new one, made later, takes precedence"
        )?;
    }
    for (number, products) in hidden {
        writeln!(
            out,
            "warning: override {number} hides {products} of these products; clients see nothing of them until it ends"
        )?;
    }
    if changed.selected == 0 && changed.missing.is_empty() && !changed.made.is_empty() {
        writeln!(
            out,
            "warning: no live product matches now; the override holds for those that match later"
        )?;
    }
    Ok(())
}

fn write_made(out: &mut String, one: &Override, is_applied: bool) -> fmt::Result {
    let made = &one.stored.made;
    let number = match one.number {
        0 => "new override".to_owned(),
        number => format!("override {number}"),
    };
    let from = to_second(made.from);
    write!(out, "{number}: {}, from {from} ", in_words(one))?;
    match made.until {
        Some(until) => write!(out, "until {}", to_second(until))?,
        None => write!(out, "until an operator ends it")?,
    }
    match (one.number, is_applied) {
        (number @ 1.., true) if made.until.is_some() => {
            writeln!(out, ", or until `vitrine overrides end {number}`")
        }
        (number @ 1.., true) => writeln!(out, " (`vitrine overrides end {number}`)"),
        _ => writeln!(out),
    }
}

fn write_ended(out: &mut String, one: &Override, is_applied: bool) -> fmt::Result {
    let ends = if is_applied { "ended" } else { "would end" };
    writeln!(out, "override {} {ends}: {}", one.number, in_words(one))
}

/// Returns the values of an override, and its products.
fn in_words(one: &Override) -> String {
    let definition = &one.definition;
    let (values, products) = (definition.values_text(), definition.products_summary());
    format!("{} of {}", single_line(&values), single_line(&products))
}

/// Returns an override for programs.
pub(super) fn override_json(one: &Override) -> Value {
    stored_json(&one.stored, Some(&one.definition))
}

/// Returns an override whose definition can't be read, for programs.
fn unreadable_json(one: &Unreadable) -> Value {
    let mut json = stored_json(&one.stored, None);
    json["unreadable"] = json!(one.reason);
    json
}

/// Returns an override for programs, whether it can be read or not.
pub(super) fn parsed_json(parsed: &Result<Override, Box<Unreadable>>) -> Value {
    match parsed {
        Ok(one) => override_json(one),
        Err(one) => unreadable_json(one),
    }
}

fn stored_json(stored: &StoredOverride, definition: Option<&Definition>) -> Value {
    let made = &stored.made;
    let ended = stored.ended.as_ref();
    json!({
        "number": stored.number,
        "status": made.status.as_str(),
        "definition": definition,
        "from": made.from,
        "until": made.until,
        "created_at": made.created_at,
        "created_by": made.created_by,
        "note": made.note,
        "ended_at": ended.map(|end| end.at),
        "ended_by": ended.and_then(|end| end.by.as_ref()),
        "end_note": ended.and_then(|end| end.note.as_ref()),
    })
}

/// Returns a table of overrides.
pub(super) fn table(overrides: &[Result<Override, Box<Unreadable>>]) -> String {
    let mut table = output::table([
        "OVERRIDE", "STATUS", "FROM", "UNTIL", "PRODUCTS", "VALUES", "BY", "NOTE",
    ]);
    for parsed in overrides {
        let stored = match parsed {
            Ok(one) => &one.stored,
            Err(one) => &one.stored,
        };
        let made = &stored.made;
        let (products, values) = match parsed {
            Ok(one) => {
                let values = single_line(&one.definition.values_text()).into_owned();
                (
                    single_line(&one.definition.products_summary()).into_owned(),
                    values,
                )
            }
            Err(_) => ("?".to_owned(), "can't be read".to_owned()),
        };
        let until = match (&stored.ended, made.until) {
            (Some(end), _) => to_second(end.at).to_string(),
            (None, Some(until)) => to_second(until).to_string(),
            (None, None) => "-".to_owned(),
        };
        table.add_row([
            stored.number.to_string(),
            made.status.as_str().to_owned(),
            to_second(made.from).to_string(),
            until,
            products,
            values,
            single_line(&made.created_by).into_owned(),
            single_line(&shown(made.note.as_deref().unwrap_or_default())).into_owned(),
        ]);
    }
    format!("{}\n", output::fitted(table))
}
