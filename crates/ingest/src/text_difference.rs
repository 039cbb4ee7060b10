//! Differences of texts, line by line.

use std::time::Duration;

use serde::Serialize;
use similar::TextDiff;
use vitrine_model::content::TextName;
use vitrine_store::Store;
use vitrine_store::record::StoredProduct;

use crate::export::markdown;

/// Time after which a difference is no longer the shortest one.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Number of unchanged lines around a change.
const CONTEXT: usize = 1;

/// A text that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextDifference {
    /// Name of the text.
    pub name: &'static str,
    /// Unified difference: lines that begin with `-`, `+`, or a blank, behind `@@ … @@`.
    pub lines: String,
}

/// Returns the texts whose Markdown differs between two versions of a product, in the order of their names.
///
/// # Errors
///
/// If the store can't be read, or a text is missing.
pub fn text_differences(
    store: &Store,
    old: &StoredProduct,
    new: &StoredProduct,
) -> anyhow::Result<Vec<TextDifference>> {
    let digest = |product: &StoredProduct, name: TextName| {
        let own = product.own_texts.iter().find(|own| own.name == name)?;
        Some(own.digest)
    };
    let mut differences = Vec::new();
    for name in TextName::ALL {
        let (before, after) = (digest(old, name), digest(new, name));
        if before == after {
            continue;
        }
        let read = |digest| match digest {
            Some(digest) => markdown(store, &digest),
            None => Ok(String::new()),
        };
        let (before, after) = (read(before)?, read(after)?);
        let difference = TextDiff::configure()
            .timeout(TIMEOUT)
            .diff_lines(&before, &after);
        let mut unified = difference.unified_diff();
        differences.push(TextDifference {
            name: name.as_str(),
            lines: unified.context_radius(CONTEXT).to_string(),
        });
    }
    Ok(differences)
}
