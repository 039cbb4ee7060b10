//! Effects of a change of overrides, in sentences.

use std::collections::BTreeMap;

use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::plan::Listing;
use vitrine_ingest::overrides::Override;
use vitrine_ingest::overrides::change::Changed;
use vitrine_store::record::PublishedCounts;

use super::page::{Told, plan_digest};
use crate::browser::amounts::grouped;
use crate::browser::times::minute;

/// Maximum number of overrides with the same effect that have a sentence each.
const MAX_SENTENCES: usize = 3;

/// Maximum number of overrides that end whose values and products are shown.
const MAX_ENDED: usize = 5;

/// Maximum number of overrides that one sentence names.
const MAX_NUMBERS: usize = 5;

/// Returns a number with its digits in groups.
fn number(count: u64) -> String {
    grouped(&count.to_string())
}

/// Returns a number of products, in words.
fn products(count: u64) -> String {
    match count {
        1 => "1 product".to_owned(),
        count => format!("{} products", number(count)),
    }
}

/// Returns what clients see of the products that a change is about, in words. Kinds without products are left out.
fn seen(changed: &Changed) -> String {
    let PublishedCounts {
        created,
        changed,
        retired,
        unchanged,
    } = changed.plan.counts();
    let kinds = [
        (created, "shown again"),
        (changed, "changed"),
        (retired, "hidden"),
        (unchanged, "unchanged"),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds
        .map(|(count, word)| format!("{} {word}", number(count)))
        .collect();
    kinds.join(", ")
}

/// Returns the first of these overrides, and how many others there are.
fn several<'n>(numbers: impl ExactSizeIterator<Item = &'n u64>) -> String {
    let others = numbers.len().saturating_sub(MAX_NUMBERS);
    let first: Vec<String> = numbers.take(MAX_NUMBERS).map(u64::to_string).collect();
    let first = first.join(", ");
    match others {
        0 => format!("Overrides {first}"),
        1 => format!("Overrides {first} and 1 other"),
        others => format!("Overrides {first} and {others} others"),
    }
}

/// Returns a sentence for each override, or one for all of them if they are many.
fn each_or_all(
    counts: &BTreeMap<u64, u64>,
    each: impl Fn(&u64, String) -> String,
    all: impl Fn(&str) -> String,
) -> Vec<String> {
    match counts.len() {
        0..=MAX_SENTENCES => {
            let each = |(number, count): (&u64, &u64)| each(number, products(*count));
            counts.iter().map(each).collect()
        }
        _ => vec![all(&several(counts.keys()))],
    }
}

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
    let (values, products) = (
        one.definition.values_text(),
        one.definition.products_summary(),
    );
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
    for one in changed.ended.iter().take(MAX_ENDED) {
        lines.push(format!(
            "Override {} {ends}: {}.",
            one.number,
            in_words(one)
        ));
    }
    let others = changed.ended.get(MAX_ENDED..).unwrap_or_default();
    if !others.is_empty() {
        let end = match intent {
            Intent::Apply => "have ended",
            Intent::DryRun => "end",
        };
        let others = several(others.iter().map(|one| &one.number));
        lines.push(format!("{others} {end}, too."));
    }
    for one in &changed.ended_unreadable {
        lines.push(format!(
            "Override {} {ends}. Its definition can't be read, so all products are made anew of what loads brought.",
            one.stored.number
        ));
    }
    if !changed.made.is_empty() {
        lines.push(format!("It selects {} now.", products(changed.selected)));
    }
    let counts = seen(changed);
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

/// Returns what an operator may expect otherwise.
fn notices(changed: &Changed) -> Vec<String> {
    let notices = &changed.notices;
    let mut sentences = each_or_all(
        &notices.overlapping,
        |number, of| {
            format!(
                "Override {number} sets the same fields of {of}; this one, made later, takes precedence."
            )
        },
        |overrides| {
            format!(
                "{overrides} set the same fields of some of these; this one, made later, takes precedence."
            )
        },
    );
    sentences.extend(each_or_all(
        &notices.hidden,
        |number, of| {
            format!(
                "Override {number} hides {of} of these; clients see nothing of them until it ends."
            )
        },
        |overrides| {
            format!("{overrides} hide some of these; clients see nothing of them until those end.")
        },
    ));
    sentences
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
    told.warnings.extend(notices(changed));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_overrides_have_one_sentence() {
        let sentences = |numbers: std::ops::RangeInclusive<u64>| {
            let counts = numbers.map(|number| (number, 1_000 * number)).collect();
            let each = |number: &u64, of: String| format!("{number}: {of}");
            each_or_all(&counts, each, str::to_owned)
        };
        assert_eq!(sentences(1..=2), ["1: 1,000 products", "2: 2,000 products"]);
        assert_eq!(sentences(4..=8), ["Overrides 4, 5, 6, 7, 8"]);
        assert_eq!(sentences(1..=6), ["Overrides 1, 2, 3, 4, 5 and 1 other"]);
        assert_eq!(sentences(1..=30), ["Overrides 1, 2, 3, 4, 5 and 25 others"]);
    }
}
