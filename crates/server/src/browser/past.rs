//! History of a product: its versions, read from the store, with the differences of fields and of texts, line by line.

use vitrine_ingest::product_history::{ProductChange, product_history};
use vitrine_ingest::text_difference::{TextDifference, text_differences};
use vitrine_model::code::ProductCode;
use vitrine_store::Store;
use vitrine_store::record::ChangeKind;

use super::changes::{ChangeView, view};
use super::fields::label;

/// Maximum number of versions of a product that are shown.
const MAX_VERSIONS: u32 = 20;

/// Number of changes of a product that aren't folded up.
const OPEN: usize = 5;

/// Maximum number of lines of a text's difference that are shown.
const MAX_LINES: usize = 400;

/// Change of a product.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) change: ProductChange,
    pub(super) changes: Vec<ChangeView>,
    pub(super) texts: Vec<TextChange>,
}

/// Change of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextChange {
    pub(super) label: String,
    pub(super) lines: Vec<TextLine>,
    /// Number of lines that aren't shown.
    pub(super) more: usize,
}

/// Line of a difference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextLine {
    /// Class: `added`, `removed`, `place`, or empty.
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// Returns the changes of a product, the newest first; and true if there are older ones.
pub(super) fn events(store: &Store, code: &ProductCode) -> anyhow::Result<(Vec<Event>, bool)> {
    let (changes, has_older) = product_history(store, code, MAX_VERSIONS)?;
    let event = |change: ProductChange| {
        Ok(Event {
            changes: change.fields().iter().map(view).collect(),
            texts: match &change.versions {
                Some((old, new)) => text_changes(text_differences(store, old, new)?),
                None => Vec::new(),
            },
            change,
        })
    };
    let events: anyhow::Result<_> = changes.into_iter().map(event).collect();
    Ok((events?, has_older))
}

/// Splits the changes of a product into those that stand open and those that are folded up.
pub(super) fn newest(events: &[Event]) -> (&[Event], &[Event]) {
    events.split_at(events.len().min(OPEN))
}

/// Returns the view of differences of texts.
pub(super) fn text_changes(differences: Vec<TextDifference>) -> Vec<TextChange> {
    let line = |line: &str| TextLine {
        class: match line.as_bytes().first() {
            Some(b'+') => "added",
            Some(b'-') => "removed",
            Some(b'@') => "place",
            _ => "",
        },
        text: line.to_owned(),
    };
    let change = |difference: TextDifference| {
        let lines: Vec<TextLine> = difference.lines.lines().take(MAX_LINES).map(line).collect();
        TextChange {
            label: label(difference.name),
            more: difference.lines.lines().count() - lines.len(),
            lines,
        }
    };
    differences.into_iter().map(change).collect()
}

/// Returns class, sign and word of a change. The sign is for readers who don't see colours.
pub(super) fn word_badge(kind: &ChangeKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ChangeKind::Created => ("good", "+", "Created"),
        ChangeKind::Changed => ("caution", "~", "Changed"),
        ChangeKind::Retired => ("bad", "−", "Retired"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_differences_of_texts_are_cut() {
        let lines = "@@ -1 +1 @@\n-old\n+new\n same\n".to_owned() + &"+x\n".repeat(500);
        let name = "description_md";
        let [change] = &text_changes(vec![TextDifference { name, lines }])[..] else {
            panic!("one change");
        };
        let classes: Vec<&str> = change.lines.iter().map(|line| line.class).collect();
        assert_eq!(classes[..4], ["place", "removed", "added", ""]);
        assert_eq!((change.lines.len(), change.more), (MAX_LINES, 104));
    }
}
