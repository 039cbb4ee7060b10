//! Pages of revisions: the list, and one revision product by product.

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use vitrine_ingest::load::difference::difference;
use vitrine_ingest::product_history::product_at;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{Availability, ChangeKind, ChangedProduct, Moment, PublishedRevision};
use vitrine_store::{Store, StoreError};

use super::amounts::grouped;
use super::answer::{self, ASSETS, Problem, Shown};
use super::changes::{ChangeView, view};
use super::query::{pairs, refused, repeated, unknown};
use super::{Browser, past};

/// Number of revisions on a page.
const PAGE: u32 = 50;
/// Maximum page number: history is read from its newest end.
const LAST_PAGE: u32 = 200;
/// Kinds of changes, with their names in URLs and pages.
const KINDS: [(ChangeKind, &str); 3] = [
    (ChangeKind::Created, "created"),
    (ChangeKind::Changed, "changed"),
    (ChangeKind::Retired, "retired"),
];
/// Number of products on a revision's page: two versions of each are read.
const PRODUCTS: u32 = 25;

#[derive(Template)]
#[template(path = "browser/revisions.html")]
struct RevisionsPage {
    assets: &'static str,
    here: &'static str,
    live: Option<u64>,
    revisions: Vec<PublishedRevision>,
    previous: Option<u32>,
    next: Option<u32>,
}

#[derive(Template)]
#[template(path = "browser/revision.html")]
struct RevisionPage {
    assets: &'static str,
    here: &'static str,
    number: u64,
    published: PublishedRevision,
    /// True if its changes can be read.
    is_readable: bool,
    /// True if the revision before it can be read.
    has_before: bool,
    /// Kinds of changes, with their counts and the URLs that filter by them.
    kinds: [KindView; 3],
    /// Kind that is filtered by.
    kind: Option<&'static str>,
    products: Vec<ProductChange>,
    is_first_page: bool,
    next: Option<String>,
}

impl RevisionsPage {
    fn is_live(&self, one: &PublishedRevision) -> bool {
        self.live == Some(one.revision.number)
    }

    fn is_pruned(&self, one: &PublishedRevision) -> bool {
        one.availability == Availability::Pruned
    }
}

/// A kind of changes of a revision.
struct KindView {
    word: &'static str,
    count: u64,
    is_current: bool,
}

/// Change of a product by a revision.
struct ProductChange {
    touched: ChangedProduct,
    name: Option<String>,
    changes: Vec<ChangeView>,
}

/// Formats a time, to the minute.
pub(super) fn minute(moment: &Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Returns class, sign and word of a change. The sign is for readers who don't see colours.
pub(super) fn word_badge(touch: &ChangeKind) -> (&'static str, &'static str, &'static str) {
    let (class, sign) = match touch {
        ChangeKind::Created => ("good", "+"),
        ChangeKind::Changed => ("caution", "~"),
        ChangeKind::Retired => ("bad", "−"),
    };
    (class, sign, past::word(*touch))
}

fn count(count: &u64) -> String {
    grouped(&count.to_string())
}

/// Renders the list of revisions.
pub(super) fn list(browser: &Browser, query: Option<&str>) -> Shown {
    let mut page: Option<u32> = None;
    for (name, value) in pairs(query)? {
        if name != "page" {
            return Err(unknown(&name));
        }
        if page.is_some() {
            return Err(repeated(&name));
        }
        let number = value
            .parse()
            .ok()
            .filter(|number| (1..=LAST_PAGE).contains(number));
        page = Some(number.ok_or_else(|| refused("page", "isn't a number from 1 to 200"))?);
    }
    let page = page.unwrap_or(1);
    // One more than a page, to see if there is another page.
    let read = browser.store.revisions(page * PAGE + 1);
    let read = read.map_err(|error| Problem::store_away(&error))?;
    let live = read.first().map(|newest| newest.revision.number);
    let has_more = read.len() > (page * PAGE) as usize;
    let skipped = ((page - 1) * PAGE) as usize;
    let shown = RevisionsPage {
        assets: ASSETS,
        here: "revisions",
        live,
        revisions: read.into_iter().skip(skipped).take(PAGE as usize).collect(),
        previous: (page > 1).then(|| page - 1),
        next: (has_more && page < LAST_PAGE).then_some(page + 1),
    };
    answer::html(StatusCode::OK, &shown)
}

/// Renders the page of one revision.
pub(super) fn one(browser: &Browser, number: u64, query: Option<&str>) -> Shown {
    let (mut after, mut kind) = (None, None);
    for (name, value) in pairs(query)? {
        let is_repeated = match name.as_str() {
            "after" => {
                let code = value.parse::<ProductCode>();
                let code = code.map_err(|_| refused("after", "isn't a product code"))?;
                after.replace(code).is_some()
            }
            "kind" => {
                let known = KINDS.into_iter().find(|(_, word)| *word == value);
                let known = known
                    .ok_or_else(|| refused("kind", "isn't `created`, `changed` or `retired`"))?;
                kind.replace(known).is_some()
            }
            _ => return Err(unknown(&name)),
        };
        if is_repeated {
            return Err(repeated(&name));
        }
    }
    let shown = read(&*browser.store, number, kind, after.as_ref());
    let shown = shown.map_err(|error| Problem::store_away(&error))?;
    let shown = shown.ok_or_else(|| {
        Problem::not_found(
            &format!("Revision {number} not found"),
            "See the list of revisions.",
        )
    })?;
    answer::html(StatusCode::OK, &shown)
}

fn read(
    store: &dyn Store,
    number: u64,
    kind: Option<(ChangeKind, &'static str)>,
    after: Option<&ProductCode>,
) -> Result<Option<RevisionPage>, StoreError> {
    let Some(published) = store.revision(number)? else {
        return Ok(None);
    };
    let touched =
        match store.revision_changes(number, kind.map(|(kind, _)| kind), after, PRODUCTS + 1) {
            Err(StoreError::Pruned { .. }) => None,
            read => Some(read?),
        };
    let can_be_read = |one: PublishedRevision| one.availability == Availability::Readable;
    let has_before = number > 1 && store.revision(number - 1)?.is_some_and(can_be_read);
    let is_readable = touched.is_some();
    let mut touched = touched.unwrap_or_default();
    let has_more = touched.len() > PRODUCTS as usize;
    touched.truncate(PRODUCTS as usize);
    let next = touched.last().filter(|_| has_more);
    let word = kind.map(|(_, word)| word);
    let query = word.map_or_else(String::new, |word| format!("kind={word}&"));
    let next = next.map(|last| format!("/revisions/{number}?{query}after={}", last.code));
    let counts = &published.counts;
    let kinds = KINDS.map(|(kind, of)| KindView {
        word: of,
        count: match kind {
            ChangeKind::Created => counts.created,
            ChangeKind::Changed => counts.changed,
            ChangeKind::Retired => counts.retired,
        },
        is_current: word == Some(of),
    });
    let change = |touched| product(store, number, has_before, touched);
    Ok(Some(RevisionPage {
        assets: ASSETS,
        here: "revisions",
        number,
        published,
        is_readable,
        has_before,
        kinds,
        kind: word,
        products: touched.into_iter().map(change).collect::<Result<_, _>>()?,
        is_first_page: after.is_none(),
        next,
    }))
}

fn product(
    store: &dyn Store,
    number: u64,
    has_before: bool,
    touched: ChangedProduct,
) -> Result<ProductChange, StoreError> {
    let at = |number| product_at(store, &touched.code, Moment::Revision(number));
    let old = if has_before { at(number - 1)? } else { None };
    let new = at(number)?;
    let changes = match (touched.kind, &old, &new) {
        (ChangeKind::Changed, Some(old), Some(new)) => {
            difference(old, new).iter().map(view).collect()
        }
        _ => Vec::new(),
    };
    let name = new.or(old).and_then(|product| name(&product.document));
    Ok(ProductChange {
        touched,
        name,
        changes,
    })
}

fn name(document: &str) -> Option<String> {
    let (node, _) = vitrine_ingest::load::json::Node::parse(document);
    let name = node.member("name")?.text()?;
    Some(name.to_owned())
}
