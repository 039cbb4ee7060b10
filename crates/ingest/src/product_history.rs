//! History of a product: the revisions that changed it, and what each did.

use vitrine_model::code::ProductCode;
use vitrine_store::record::{ChangeKind, Moment, PublishedRevision, StoredProduct, VersionSpan};
use vitrine_store::{Store, StoreError};

use crate::load::difference::{FieldChange, difference};

/// Change of a product by a revision.
#[derive(Debug)]
pub struct ProductChange {
    /// Number of the revision.
    pub number: u64,
    /// Revision with time and author, if known.
    pub published: Option<PublishedRevision>,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Versions before and after, where both are known.
    pub versions: Option<(StoredProduct, StoredProduct)>,
    /// True if an older version may have been pruned.
    pub is_oldest_kept: bool,
}

impl ProductChange {
    /// Returns the fields that differ; none for a product that was created or retired.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldChange> {
        let versions = self.versions.as_ref();
        versions.map_or_else(Vec::new, |(old, new)| difference(old, new))
    }
}

/// Returns the changes of a product, the newest first, of at most `limit` versions; and true if there are older ones.
///
/// # Errors
///
/// If the store can't be read.
pub fn product_history(
    store: &Store,
    code: &ProductCode,
    limit: u32,
) -> Result<(Vec<ProductChange>, bool), StoreError> {
    let spans = store.version_spans(code, limit.saturating_add(1))?;
    let mut versions = Vec::with_capacity(spans.len());
    for span in &spans {
        versions.push(version(store, code, *span)?);
    }
    let change = |number: u64, kind: ChangeKind| {
        Ok::<_, StoreError>(ProductChange {
            number,
            published: store.revision(number)?,
            kind,
            versions: None,
            is_oldest_kept: false,
        })
    };
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut changes = Vec::new();
    let mut newer: Option<VersionSpan> = None;
    for (at, span) in spans.iter().enumerate().take(shown) {
        if let Some(until) = span
            .until
            .filter(|until| newer.is_none_or(|newer| newer.from != *until))
        {
            changes.push(change(until, ChangeKind::Retired)?);
        }
        newer = Some(*span);
        let older = spans
            .get(at + 1)
            .filter(|older| older.until == Some(span.from));
        changes.push(match older {
            Some(_) => ProductChange {
                versions: versions[at + 1].clone().zip(versions[at].clone()),
                ..change(span.from, ChangeKind::Changed)?
            },
            None => ProductChange {
                is_oldest_kept: at + 1 == spans.len() && span.from > 1,
                ..change(span.from, ChangeKind::Created)?
            },
        });
    }
    Ok((changes, spans.len() > shown))
}

/// Reads a version at its last live revision, which wasn't pruned, since the version exists.
fn version(
    store: &Store,
    code: &ProductCode,
    span: VersionSpan,
) -> Result<Option<StoredProduct>, StoreError> {
    let moment = match span.until {
        None => Moment::Live,
        Some(until) => Moment::Revision(until.saturating_sub(1)),
    };
    product_at(store, code, moment)
}

/// Reads a product at a moment; `None` if that was pruned meanwhile.
///
/// # Errors
///
/// If the store can't be read.
pub fn product_at(
    store: &Store,
    code: &ProductCode,
    moment: Moment,
) -> Result<Option<StoredProduct>, StoreError> {
    match store.product(code, moment) {
        Err(StoreError::Pruned { .. }) => Ok(None),
        read => read,
    }
}
