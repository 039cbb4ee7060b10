//! Contents of a store, so that two can be compared.

use std::path::Path;

use vitrine_store::audit::AuditEntry;
use vitrine_store::operators::Operator;
use vitrine_store::overrides::StoredOverride;
use vitrine_store::record::{CatalogItem, LiveProduct, Moment};
use vitrine_store::webhooks::Endpoint;
use vitrine_store::{IfMissing, StoreError};

/// Contents of a store without its random parts and times: products, overrides, texts, keys, operators,
/// assortments, webhook endpoints, the audit log.
pub type State = Vec<String>;

/// The state of a store; one that isn't there holds as much as an empty one.
pub fn state(path: &Path) -> State {
    let url = format!("sqlite:{}", path.display());
    let store = match vitrine_store::open(&url, IfMissing::Refuse) {
        Err(StoreError::Missing { .. }) => return Vec::new(),
        opened => opened.unwrap_or_else(|error| panic!("{url}: {error:?}")),
    };
    let mut state = Vec::new();
    let mut product = |product| {
        state.push(format!("{product:?}"));
        Ok(())
    };
    store
        .read_products(Moment::Live, &mut product)
        .expect("products");
    let mut base = |product| {
        state.push(format!("base: {product:?}"));
        Ok(())
    };
    store.read_base(Moment::Live, &mut base).expect("bases");
    let overrides = store.overrides().expect("overrides");
    let one = |one: &StoredOverride| {
        let made = &one.made;
        format!("override {} {:?}", made.definition, made.status)
    };
    state.extend(overrides.iter().map(one));
    let mut texts = |item: CatalogItem<'_>| {
        match item {
            CatalogItem::Product(LiveProduct {
                code, taken_down, ..
            }) => state.push(format!("{code}: taken down: {taken_down:?}")),
            CatalogItem::Text {
                digest,
                retired_at: None,
                ..
            } => state.push(format!("text {digest}")),
            CatalogItem::Damaged { .. }
            | CatalogItem::Retired { .. }
            | CatalogItem::Text { .. } => {}
        }
        Ok(())
    };
    let never = jiff::Timestamp::MAX;
    store.read_catalog(never, &mut texts).expect("a catalog");
    let keys = store.keys().expect("keys");
    let key = |key: &vitrine_model::key::KeyRecord| {
        format!("key {}, revoked: {}", key.label, key.revoked_at.is_some())
    };
    state.extend(keys.iter().map(key));
    let operators = store.operators().expect("operators");
    let operator = |one: &Operator| format!("operator {}, {}", one.name, one.role);
    state.extend(operators.iter().map(operator));
    let assortments = store.assortments().expect("assortments");
    let rules = assortments
        .iter()
        .map(|live| format!("rules {:?}", live.rules));
    state.extend(rules);
    let endpoints = store.endpoints().expect("endpoints");
    // A restore pauses them before it replaces anything.
    let waits = |one: &Endpoint| one.progress.next_attempt_at.is_some();
    let endpoint = |one: &Endpoint| format!("endpoint {}, waits: {}", one.url, waits(one));
    state.extend(endpoints.iter().map(endpoint));
    let mut entries = store.audit(None, u32::MAX).expect("an audit log");
    // A crash may lose that of a change that was made.
    entries.retain(|entry| entry.subject_kind != "webhook");
    let entry = |entry: &AuditEntry| {
        let fields: Vec<&str> = entry.changes.iter().map(|c| c.field.as_str()).collect();
        let number = entry.number;
        format!("entry {number}: {} {fields:?}", entry.action)
    };
    state.extend(entries.iter().map(entry));
    state.sort();
    state
}
