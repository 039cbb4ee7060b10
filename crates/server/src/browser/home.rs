//! Home: what changed in the last day, what is not as usual, what ends soon, and how this server stands.

use askama::Template;
use http::StatusCode;
use jiff::{SignedDuration, Span, Timestamp};
use vitrine_model::key::KeyRecord;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::record::PublishedRevision;
use vitrine_store::webhooks::{Endpoint, EndpointStatus};
use vitrine_store::{Store, StoreError};

use super::Browser;
use super::amounts::grouped;
use super::answer::{self, ASSETS, Shown};
use super::group::{Group, LIVE, NO};
use super::overrides::{InstantView, instants};
use super::query::Query;
use super::selection::Selection;
use super::times::{minute, span};
use crate::error_chain::ErrorChain;
use crate::metrics::values::Gauge;

/// Maximum number of entries of a list.
const MAX_LISTED: usize = 8;

/// Number of newest revisions that are looked at for those of the last day.
const MAX_REVISIONS: u32 = 500;

/// Days ahead in which something ends soon.
const DAYS_AHEAD: i64 = 7;

#[derive(Template)]
#[template(path = "browser/home.html")]
struct HomePage {
    assets: &'static str,
    here: &'static str,
    /// None before a catalog was loaded.
    catalog: Option<CatalogView>,
    /// None if the store can't be read.
    stored: Option<StoredView>,
}

/// The catalog in this server's memory.
struct CatalogView {
    revision: u64,
    products: String,
    /// Exceptions: words, number of products, and URL of these.
    exceptions: Vec<(String, String, String)>,
}

/// Data of the store.
struct StoredView {
    /// Newest revisions of the last day, and their number.
    revisions: Vec<PublishedRevision>,
    revision_count: usize,
    live: Option<u64>,
    instants: Vec<InstantView>,
    /// Keys that expire soon: prefix, label, time, and time until then.
    keys: Vec<(String, String, String, String)>,
    /// Endpoints of webhooks in trouble: id, URL, what it is.
    endpoints: Vec<(String, String, String)>,
    /// Age of the oldest change that an endpoint waits for, or `None` in words; none if this server doesn't deliver.
    oldest_change: Option<String>,
}

impl HomePage {
    /// Returns true if this server shows the newest revision.
    fn is_current(&self) -> bool {
        let shown = self.catalog.as_ref().map(|catalog| catalog.revision);
        self.stored
            .as_ref()
            .is_none_or(|stored| stored.live == shown)
    }
}

fn number(count: &u64) -> String {
    grouped(&count.to_string())
}

/// Renders the page.
pub(super) fn page(browser: &Browser) -> Shown {
    let snapshot = browser.app.live.snapshot();
    let catalog = snapshot.map(|snapshot| catalog(&snapshot));
    let stored = match stored(&browser.store, browser, Timestamp::now()) {
        Ok(stored) => Some(stored),
        Err(error) => {
            tracing::warn!(error = %ErrorChain(&error), "the catalog browser can't read the store");
            None
        }
    };
    let page = HomePage {
        assets: ASSETS,
        here: "home",
        catalog,
        stored,
    };
    answer::html(StatusCode::OK, &page)
}

fn catalog(snapshot: &Snapshot) -> CatalogView {
    let everything = Query::default();
    let selection = Selection::of(snapshot, &everything, None);
    let mut exceptions = Vec::new();
    for (group, is_exception) in [
        (
            Group::State,
            (|value: &str| value != LIVE) as fn(&str) -> bool,
        ),
        (Group::Orderable, |value: &str| value == NO),
    ] {
        let counted = selection.counts(group).iter();
        for (value, count) in counted.filter(|(value, _)| is_exception(value)) {
            let words = match group {
                Group::Orderable => "Not orderable".to_owned(),
                _ => group.shown(value).into_owned(),
            };
            let address = everything.picking(group, value).address();
            exceptions.push((words, number(&(*count as u64)), address));
        }
    }
    CatalogView {
        revision: snapshot.revision().number,
        products: number(&(snapshot.len() as u64)),
        exceptions,
    }
}

fn stored(store: &Store, browser: &Browser, now: Timestamp) -> Result<StoredView, StoreError> {
    let day_ago = now.saturating_sub(Span::new().hours(24)).unwrap_or(now);
    let soon = now
        .saturating_add(Span::new().hours(24 * DAYS_AHEAD))
        .unwrap_or(now);
    let mut revisions = store.revisions(MAX_REVISIONS)?;
    let live = revisions.first().map(|newest| newest.revision.number);
    revisions.retain(|one| one.revision.created_at >= day_ago);
    let revision_count = revisions.len();
    revisions.truncate(MAX_LISTED);
    let mut instants = instants(&store.overrides()?, now);
    instants.retain(|instant| instant.at <= soon);
    instants.truncate(MAX_LISTED);
    let keys = store.keys()?;
    let mut expiring: Vec<&KeyRecord> = keys.iter().filter(|key| key.is_active(now)).collect();
    expiring.retain(|key| key.expires_at.is_some_and(|at| at <= soon));
    expiring.sort_by_key(|key| key.expires_at);
    let expiring = expiring.into_iter().take(MAX_LISTED).filter_map(|key| {
        let at = key.expires_at?;
        Some((
            key.prefix.clone(),
            key.label.clone(),
            minute(&at),
            span(now, at),
        ))
    });
    let endpoints = store.endpoints()?;
    Ok(StoredView {
        revisions,
        revision_count,
        live,
        instants,
        keys: expiring.collect(),
        endpoints: in_trouble(&endpoints),
        oldest_change: oldest_change(browser, now),
    })
}

fn in_trouble(endpoints: &[Endpoint]) -> Vec<(String, String, String)> {
    let trouble = |endpoint: &Endpoint| {
        let words = match (endpoint.status, endpoint.progress.failing_since) {
            (EndpointStatus::Disabled, _) => "disabled".to_owned(),
            (EndpointStatus::Paused, _) => "paused".to_owned(),
            (EndpointStatus::Active, Some(since)) => format!("failing since {}", minute(&since)),
            (EndpointStatus::Active, None) => return None,
        };
        Some((endpoint.id.clone(), endpoint.url.clone(), words))
    };
    endpoints
        .iter()
        .filter_map(trouble)
        .take(MAX_LISTED)
        .collect()
}

/// Returns the age of the oldest change that an active endpoint didn't acknowledge, `None` in words; none if this server delivers
/// nothing.
fn oldest_change(browser: &Browser, now: Timestamp) -> Option<String> {
    let metrics = &browser.app.metrics.webhooks;
    let endpoints: f64 = metrics.endpoints.values().map(Gauge::get).sum();
    let age = SignedDuration::try_from_secs_f64(metrics.oldest_seconds.get()).ok()?;
    let since = now.checked_sub(age).ok()?;
    let words = || match since < now {
        true => span(since, now),
        false => "None".to_owned(),
    };
    (endpoints > 0.0).then(words)
}
