//! Building a snapshot from a store, or from the previous snapshot and the changes since. Products are copied, not parsed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use vitrine_ingest::view::TextAddresses;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::snapshot::{
    Damage, FacetNumbers, RebuildThreads, ServedText, Snapshot, TextTable, TextTableBuilder,
};
use vitrine_store::record::{CatalogItem, StoreState};
use vitrine_store::{Store, StoreError};

use super::background::YieldBudget;
use super::batches::{BlockMaker, BuildError, Renderer, WorkerPool, thread_count};
use crate::metrics::heartbeat::Heartbeat;

/// Time for which a text is served after the last revision that named it (docs/contract/texts.md#urls).
const TEXT_GRACE: SignedDuration = SignedDuration::from_hours(24);

/// Minimum number of products for each changed one; with fewer, the whole catalog is read again.
const PRODUCTS_PER_CHANGE: usize = 4;

/// Maximum time of one step of building a snapshot, or of reading the history. A PostgreSQL store may take 60 seconds to sort before it returns
/// the first row.
pub(super) const BUILD_STEP_LIMIT: Duration = Duration::from_secs(90);

/// Maximum number of unused names of facets, if it is also more than twice the used ones; beyond that the whole catalog
/// is read again.
const MAX_UNUSED_FACETS: usize = 1_000;

/// Returns the time after which a text must have been retired to be still served at `now`.
#[must_use]
pub fn texts_kept_since(now: Timestamp) -> Timestamp {
    now.saturating_sub(TEXT_GRACE).unwrap_or(Timestamp::MIN)
}

/// Reads the live catalog of a store, to look at it; `None` if nothing was published yet.
///
/// # Errors
///
/// If the store can't be read, or all of its products are damaged.
pub fn read_snapshot(store: &Store) -> Result<Option<Snapshot>, StoreError> {
    let addresses = TextAddresses::new("");
    let now = Timestamp::now();
    let (_, snapshot) = build(store, None, &addresses, now, &Heartbeat::default())?;
    Ok(snapshot)
}

/// Reads the live catalog of `store` into a snapshot; `None` if nothing was published yet. Also returns the state of the
/// store at the moment of the read. Damaged products and texts are those of `last_good`, or left out. Beats at each item.
///
/// # Errors
///
/// If the store can't be read, or all of its products are damaged.
pub(super) fn build(
    store: &Store,
    last_good: Option<&Snapshot>,
    addresses: &TextAddresses,
    now: Timestamp,
    heartbeat: &Heartbeat,
) -> Result<(StoreState, Option<Snapshot>), StoreError> {
    heartbeat.beat(BUILD_STEP_LIMIT);
    let started = WorkerPool::<BlockMaker>::start(addresses);
    let mut makers = started.map_err(StoreError::Visitor)?;
    let mut numbers = FacetNumbers::default();
    let mut texts = TextTableBuilder::default();
    let mut damage = Damage::default();
    let (state, revision) = store.read_catalog(texts_kept_since(now), &mut |item| {
        heartbeat.beat(BUILD_STEP_LIMIT);
        match item {
            CatalogItem::Product(product) => {
                let code = product.code;
                if !makers.push(product, &mut numbers) {
                    damage.products.insert(code.to_owned());
                }
            }
            CatalogItem::Damaged { code } => {
                damage.products.insert(code);
            }
            CatalogItem::Retired { .. } => {}
            CatalogItem::Text {
                digest,
                markdown,
                retired_at,
            } => {
                let markdown = or_last_good(&digest, markdown, last_good, now, &mut damage);
                // The publisher's clock may be ahead.
                let retired_at = retired_at.map(|retired| retired.min(now));
                texts.push(&digest, &served(markdown, retired_at))?;
            }
        }
        Ok(())
    })?;
    let Some(revision) = revision else {
        return Ok((state, None));
    };
    let finish = move || -> Result<Snapshot, BuildError> {
        let (numbers, texts) = (Arc::new(numbers), texts.finish());
        let (blocks, found) = makers.finish_blocks()?;
        damage.products.extend(found.damaged);
        let texts = with_missing(&texts, found.own_texts, last_good, now, &mut damage);
        let snapshot = Snapshot::new(revision, numbers, blocks, texts)?;
        Ok(with_last_good(snapshot, last_good, &damage)?.with_damage(damage))
    };
    let snapshot = finish().map_err(StoreError::Visitor)?;
    match snapshot.damage().products.len() {
        damaged @ 1.. if snapshot.is_empty() => Err(StoreError::Damaged(format!(
            "all of its products are damaged ({damaged}); run `vitrine check`, and restore a backup"
        ))),
        _ => Ok((state, Some(snapshot))),
    }
}

/// Adds the last good versions of damaged products to the snapshot.
fn with_last_good(
    snapshot: Snapshot,
    last_good: Option<&Snapshot>,
    damage: &Damage,
) -> Result<Snapshot, BuildError> {
    let Some(last_good) = last_good else {
        return Ok(snapshot);
    };
    let mut numbers = Arc::clone(snapshot.facet_numbers());
    let mut kept = BTreeMap::new();
    for code in damage.products.iter().filter_map(|code| code.parse().ok()) {
        // The damaged code may be that of another product now.
        if snapshot.product(&code).is_none()
            && let Some(product) = last_good.copy_of(&code, Arc::make_mut(&mut numbers))
        {
            kept.insert(code, Some(product));
        }
    }
    if kept.is_empty() {
        return Ok(snapshot);
    }
    let (revision, texts) = (snapshot.revision().clone(), snapshot.texts().clone());
    let threads = rebuild_threads();
    Ok(snapshot.with_changes(revision, numbers, &kept, texts, threads, || {})?)
}

/// Adds missing texts that products name: the last good ones, or marks of damaged ones.
fn with_missing(
    texts: &TextTable,
    named: impl IntoIterator<Item = TextDigest>,
    last_good: Option<&Snapshot>,
    now: Timestamp,
    damage: &mut Damage,
) -> TextTable {
    let missing = named
        .into_iter()
        .filter(|digest| texts.get(digest, now).is_none());
    let missing = missing.map(|digest| {
        let markdown = or_last_good(&digest, PackedMarkdown::damaged(), last_good, now, damage);
        (digest, served(markdown, None))
    });
    texts.with(missing.collect(), now)
}

/// Applies the changes in `store` to a snapshot of it; `None` if they are unknown, or so many that a new build is better.
/// Also returns the state of the store at the moment of the read.
///
/// # Errors
///
/// If the store can't be read, or has invalid values.
pub(super) fn apply_changes(
    store: &Store,
    snapshot: &Snapshot,
    addresses: &TextAddresses,
    now: Timestamp,
    heartbeat: &Heartbeat,
) -> Result<Option<(StoreState, Snapshot)>, StoreError> {
    heartbeat.beat(BUILD_STEP_LIMIT);
    let mut numbers = Arc::clone(snapshot.facet_numbers());
    if numbers.names().len() > MAX_UNUSED_FACETS + 2 * snapshot.named_facet_count() {
        return Ok(None);
    }
    let mut damage = snapshot.damage().clone();
    let started = WorkerPool::<Renderer>::start(addresses);
    let mut renderers = started.map_err(StoreError::Visitor)?;
    let (mut retired, mut texts) = (Vec::new(), Vec::new());
    let max_products = u32::try_from(snapshot.len() / PRODUCTS_PER_CHANGE).unwrap_or(u32::MAX);
    let (since, kept_since) = (snapshot.revision(), texts_kept_since(now));
    let (state, revision) = store.read_changes(since, max_products, kept_since, &mut |item| {
        heartbeat.beat(BUILD_STEP_LIMIT);
        match item {
            CatalogItem::Product(product) => {
                let code = product.code;
                if !renderers.push(product, Arc::make_mut(&mut numbers)) {
                    damage.products.insert(code.to_owned());
                }
            }
            // The snapshot keeps its version.
            CatalogItem::Damaged { code } => {
                damage.products.insert(code);
            }
            CatalogItem::Retired { code } => retired.push((code.parse()?, None)),
            CatalogItem::Text {
                digest,
                markdown,
                retired_at,
            } => {
                let markdown = or_last_good(&digest, markdown, Some(snapshot), now, &mut damage);
                // It was retired since the last read, whatever the publisher's clock says.
                texts.push((digest, served(markdown, retired_at.map(|_| now))));
            }
        }
        Ok(())
    })?;
    let Some(revision) = revision else {
        return Ok(None);
    };
    let (mut products, found) = renderers.finish_changes().map_err(StoreError::Visitor)?;
    products.extend(retired);
    for code in products.keys() {
        damage.products.remove(code.as_str());
    }
    // The snapshot keeps their versions, too.
    damage.products.extend(found.damaged);
    let texts = snapshot.texts().with(texts, now);
    let texts = with_missing(&texts, found.own_texts, Some(snapshot), now, &mut damage);
    let mut yields = YieldBudget::default();
    let between = move || {
        heartbeat.beat(BUILD_STEP_LIMIT);
        yields.maybe_yield();
    };
    let threads = rebuild_threads();
    snapshot
        .with_changes(revision, numbers, &products, texts, threads, between)
        .map(|snapshot| Some((state, snapshot.with_damage(damage))))
        .map_err(|error| StoreError::Visitor(error.into()))
}

/// Minimum number of changed blocks for each thread that rebuilds them, which takes some 30 milliseconds.
const MIN_BLOCKS_PER_THREAD: usize = 64;

fn rebuild_threads() -> RebuildThreads {
    RebuildThreads {
        max: thread_count(),
        min_blocks: MIN_BLOCKS_PER_THREAD,
    }
}

/// Returns the Markdown if it matches its digest, otherwise that of `last_good`, otherwise the mark of a damaged text.
fn or_last_good(
    digest: &TextDigest,
    markdown: PackedMarkdown,
    last_good: Option<&Snapshot>,
    now: Timestamp,
    damage: &mut Damage,
) -> PackedMarkdown {
    if !markdown.is_damaged() && markdown.unpack_as(digest).is_ok() {
        damage.texts.remove(digest);
        return markdown;
    }
    damage.texts.insert(*digest);
    let last_good = last_good.and_then(|snapshot| snapshot.text(digest, now));
    last_good.unwrap_or_else(PackedMarkdown::damaged)
}

/// Returns a text with the end of its service: none while a product names it, otherwise after the grace.
fn served(markdown: PackedMarkdown, retired_at: Option<Timestamp>) -> ServedText {
    ServedText {
        markdown,
        served_until: retired_at.map(grace_end),
    }
}

/// Returns the end of the service of a text that was retired at `retired`.
pub(super) fn grace_end(retired: Timestamp) -> Timestamp {
    retired.saturating_add(TEXT_GRACE).unwrap_or(Timestamp::MAX)
}
