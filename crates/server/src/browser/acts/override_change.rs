//! Effects of a change of overrides, in sentences.

use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::plan::{Listing, ProductCount};
use vitrine_ingest::overrides::Override;
use vitrine_ingest::overrides::change::Changed;

use super::page::{Told, plan_digest};
use crate::browser::times::minute;

/// Returns the products, values and span of an override, in a sentence.
fn made_text(one: &Override) -> String {
    let made = &one.stored.made;
    let until = match made.until {
        Some(until) => format!("until {}", minute(&until)),
        None => "until an operator ends it".to_owned(),
    };
    let name = match one.number {
        0 => "A new override".to_owned(),
        number => format!("Override {number}"),
    };
    let (from, what) = (minute(&made.from), in_words(one));
    format!("{name}: {what}, from {from} {until}.")
}

/// Returns the values of an override, and its products.
fn in_words(one: &Override) -> String {
    let (values, products) = (one.definition.values_text(), one.definition.products_text());
    format!("{} of {}", single_line(&values), single_line(&products))
}

/// Returns what a change of overrides does to them, and to clients, in sentences.
fn lines(changed: &Changed, intent: Intent) -> Vec<String> {
    let mut lines = Vec::new();
    for instant in &changed.instants {
        let at = minute(&instant.at);
        let began = instant.begun.iter().map(|number| (number, "began"));
        let ended = instant.ended.iter().map(|number| (number, "ended"));
        for (number, does) in began.chain(ended) {
            lines.push(format!(
                "Override {number} {does} before this, since it was due at {at}."
            ));
        }
    }
    lines.extend(changed.made.iter().map(made_text));
    let ends = match intent {
        Intent::Apply => "has ended",
        Intent::DryRun => "ends",
    };
    for one in &changed.ended {
        lines.push(format!(
            "Override {} {ends}: {}.",
            one.number,
            in_words(one)
        ));
    }
    for one in &changed.ended_unreadable {
        lines.push(format!(
            "Override {} {ends}. Its definition can't be read, so all products are made anew of what loads brought.",
            one.stored.number
        ));
    }
    if !changed.made.is_empty() {
        lines.push(format!(
            "It selects {} now.",
            ProductCount(changed.selected)
        ));
    }
    let counts = changed.seen_counts();
    let begins_later = changed.made.iter().any(|made| !made.is_active());
    let is_planned = intent == Intent::DryRun || !changed.exceeded.is_empty();
    lines.push(match &changed.revision {
        Some(revision) => format!("Revision {} is live: {counts}.", revision.number),
        None if !is_planned => "Clients see no change now.".to_owned(),
        None if changed.plan.counts().is_unchanged() => {
            "Clients would see no change now.".to_owned()
        }
        None if begins_later => format!("For clients, if it began now: {counts}."),
        None => format!("For clients: {counts}."),
    });
    lines
}

/// Returns what a change of overrides does.
pub(super) fn told(changed: &Changed, intent: Intent) -> Told {
    let mut told = Told {
        lines: lines(changed, intent),
        ..Told::default()
    };
    if let Some(revision) = &changed.revision {
        let path = format!("/revisions/{}", revision.number);
        told.links.push((path, "What it changed"));
    }
    for exceeded in &changed.exceeded {
        let words = exceeded.of_override();
        let first = words.lines().next().unwrap_or_default();
        let first = first.trim_start_matches("guard: ");
        let first = first.replace("--allow ", "raise the limit to ");
        told.warnings
            .push(format!("The guard refuses it: {first}."));
    }
    for code in &changed.missing {
        told.warnings.push(format!("There is no product {code}."));
    }
    for (number, count) in &changed.notices.overlapping {
        let count = ProductCount(*count);
        told.warnings.push(format!(
            "Override {number} sets the same fields of {count}; this one, made later, takes precedence."
        ));
    }
    for (number, count) in &changed.notices.without_amounts {
        let count = ProductCount(*count);
        told.warnings.push(format!(
            "{count} can't be ordered all the same: override {number} narrows their amounts."
        ));
    }
    for (number, count) in &changed.notices.hidden {
        let count = ProductCount(*count);
        told.warnings.push(format!(
            "Override {number} hides {count} of these; clients see nothing of them until it ends."
        ));
    }
    match changed.notices.emptied {
        0 => {}
        emptied => told.warnings.push(format!(
            "No amount is left of {} of these, which can't be ordered then.",
            ProductCount(emptied)
        )),
    }
    if changed.selected == 0 && changed.missing.is_empty() && !changed.made.is_empty() {
        told.warnings
            .push("No live product matches now.".to_owned());
    }
    // Its last line has the counts, which stand above.
    let listing = changed.plan.to_text(Listing::Summary);
    let listing = listing.replace("; --all lists them", "");
    let listing = listing.trim_end().rsplit_once('\n');
    told.listing = listing.map(|(products, _)| products.to_owned());
    let ended: Vec<u64> = changed.ended.iter().map(|one| one.number).collect();
    let parts = (&changed.missing, &ended, &told.listing, changed.selected);
    let counts = changed.plan.counts();
    told.plan = Some(plan_digest(&format!("{parts:?} {counts}")));
    told.links.push(("/overrides".to_owned(), "All overrides"));
    told
}
