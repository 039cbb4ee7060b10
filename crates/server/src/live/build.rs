//! Makes a snapshot out of a store: products are copied, not parsed.

use jiff::{SignedDuration, Timestamp};
use vitrine_model::code::ProductCode;
use vitrine_model::snapshot::{Entry, ServedText, Snapshot, SnapshotBuilder};
use vitrine_store::record::CatalogItem;
use vitrine_store::{Store, StoreError};

use crate::view::TextAddresses;

/// How long a text is served after the last revision that named it (decisions, "Texts").
const TEXT_GRACE: SignedDuration = SignedDuration::from_hours(24);

/// Texts that were retired after this moment are still served at `now`.
#[must_use]
pub fn texts_kept_since(now: Timestamp) -> Timestamp {
    now.saturating_sub(TEXT_GRACE).unwrap_or(Timestamp::MIN)
}

/// Reads the live catalog of `store` into a snapshot; `None` where nothing was published yet.
///
/// # Errors
///
/// Where the store can't be read or holds what it shouldn't.
pub fn build(
    store: &dyn Store,
    addresses: &TextAddresses,
    now: Timestamp,
) -> Result<Option<Snapshot>, StoreError> {
    let mut builder = SnapshotBuilder::new();
    let mut rendered = Vec::new();
    let revision = store.read_catalog(texts_kept_since(now), &mut |item| {
        match item {
            CatalogItem::Product {
                code,
                document,
                content,
                is_orderable,
                countries,
                categories,
                own_texts,
                taken_down,
            } => {
                rendered.clear();
                let content = addresses.publish(document, content, taken_down, &mut rendered);
                builder.product(Entry {
                    code: code.parse::<ProductCode>()?,
                    bytes: &rendered,
                    content,
                    own_texts: own_texts.to_vec(),
                    is_orderable,
                    countries,
                    categories,
                })?;
            }
            CatalogItem::Text {
                digest,
                markdown,
                retired_at,
            } => {
                let served_until = retired_at
                    .map(|retired| retired.saturating_add(TEXT_GRACE).unwrap_or(Timestamp::MAX));
                let text = ServedText {
                    markdown,
                    served_until,
                };
                builder.text(digest, text);
            }
        }
        Ok(())
    })?;
    Ok(revision.map(|revision| builder.finish(revision)))
}
