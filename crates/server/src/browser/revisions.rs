//! Pages of revisions: the list, one revision product by product, and the differences between any two.

use std::fmt::Write as _;

use askama::Template;
use http::StatusCode;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{Availability, ChangeKind, PublishedRevision};
use vitrine_store::{Store, StoreError};

use super::Browser;
use super::amounts::grouped;
use super::answer::{self, ASSETS, Problem, Shown};
use super::differences::{Differences, Wanted};
use super::query::{number, pairs, refused, repeated, unknown};
use super::times::minute;
use crate::http::request::query::encoded;

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
/// Maximum number of revisions between two that are compared.
const MAX_COMPARED: u64 = 500;

#[derive(Template)]
#[template(path = "browser/revisions.html")]
struct RevisionsPage {
    assets: &'static str,
    here: &'static str,
    live: Option<u64>,
    search: String,
    revisions: Vec<PublishedRevision>,
    previous: Option<String>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "browser/revision.html")]
struct RevisionPage {
    assets: &'static str,
    here: &'static str,
    number: u64,
    published: PublishedRevision,
    /// True if the revision before it can be read.
    has_before: bool,
    has_next: bool,
    /// True if a rollback can make it live: it isn't, and it wasn't pruned.
    can_be_live: bool,
    kinds: [KindView; 3],
    view: DifferencesView,
}

#[derive(Template)]
#[template(path = "browser/comparison.html")]
struct ComparisonPage {
    assets: &'static str,
    here: &'static str,
    from: PublishedRevision,
    to: PublishedRevision,
    view: DifferencesView,
}

/// Differences with what is searched in them.
struct DifferencesView {
    /// None if they were pruned.
    differences: Option<Differences>,
    /// URL without a query, and the parameters that all links have.
    path: String,
    base: Vec<(&'static str, String)>,
    wanted: Wanted,
    next: Option<String>,
}

impl DifferencesView {
    fn new(
        path: String,
        base: Vec<(&'static str, String)>,
        wanted: Wanted,
        differences: Option<Differences>,
    ) -> Self {
        let mut view = Self {
            differences,
            path,
            base,
            wanted,
            next: None,
        };
        let last = view.differences.as_ref().and_then(|one| one.last.as_ref());
        let after = last.map(|code| vec![("after", code.to_string())]);
        view.next = after.map(|after| view.address(&[&view.searched()[..], &after].concat()));
        view
    }

    /// Returns the parameters of what is searched.
    fn searched(&self) -> Vec<(&'static str, String)> {
        let kind = self.kind().map(|word| ("kind", word.to_owned()));
        let search = Some(&self.wanted.search).filter(|text| !text.is_empty());
        let search = search.map(|text| ("q", text.clone()));
        let field = self.wanted.field.clone().map(|field| ("field", field));
        [kind, search, field].into_iter().flatten().collect()
    }

    fn address(&self, more: &[(&'static str, String)]) -> String {
        let mut address = self.path.clone();
        for (at, (name, value)) in self.base.iter().chain(more).enumerate() {
            let separator = if at == 0 { '?' } else { '&' };
            // Writing to a string can't fail.
            let _ = write!(address, "{separator}{name}={}", encoded(value));
        }
        address
    }

    /// Returns the URL of all differences.
    fn all(&self) -> String {
        self.address(&[])
    }

    fn of_field(&self, pointer: &str) -> String {
        self.address(&[("field", pointer.to_owned())])
    }

    fn kind(&self) -> Option<&'static str> {
        let wanted = self.wanted.kind?;
        let mut kinds = KINDS.into_iter();
        kinds
            .find(|(kind, _)| *kind == wanted)
            .map(|(_, word)| word)
    }

    fn is_all(&self) -> bool {
        self.searched().is_empty() && self.wanted.after.is_none()
    }
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

fn count(count: &u64) -> String {
    grouped(&count.to_string())
}

/// Renders the list of revisions.
pub(super) fn list(browser: &Browser, query: Option<&str>) -> Shown {
    let (mut page, mut search) = (None, None);
    for (name, value) in pairs(query)? {
        let is_repeated = match name.as_str() {
            "page" => {
                let number = number(&value);
                let number = number.filter(|number| (1..=LAST_PAGE).contains(number));
                let number =
                    number.ok_or_else(|| refused("page", "isn't a number from 1 to 200"))?;
                page.replace(number).is_some()
            }
            "q" => search.replace(value.trim().to_owned()).is_some(),
            _ => return Err(unknown(&name)),
        };
        if is_repeated {
            return Err(repeated(&name));
        }
    }
    let (page, search) = (page.unwrap_or(1), search.unwrap_or_default());
    // One more than a page, to see if there is another page; a search looks at all pages.
    let limit = match search.is_empty() {
        true => page * PAGE + 1,
        false => LAST_PAGE * PAGE,
    };
    let read = browser.store.revisions(limit);
    let mut read = read.map_err(|error| Problem::store_away(&error))?;
    let live = read.first().map(|newest| newest.revision.number);
    read.retain(|one| is_found(one, &search.to_lowercase()));
    let has_more = read.len() > (page * PAGE) as usize;
    let skipped = ((page - 1) * PAGE) as usize;
    let address = |page: u32| match search.is_empty() {
        true => format!("/revisions?page={page}"),
        false => format!("/revisions?q={}&page={page}", encoded(&search)),
    };
    let shown = RevisionsPage {
        assets: ASSETS,
        here: "revisions",
        live,
        revisions: read.into_iter().skip(skipped).take(PAGE as usize).collect(),
        previous: (page > 1).then(|| address(page - 1)),
        next: (has_more && page < LAST_PAGE).then(|| address(page + 1)),
        search,
    };
    answer::html(StatusCode::OK, &shown)
}

/// Returns true if number, author, note or source of a revision contain a text in lower case.
fn is_found(one: &PublishedRevision, search: &str) -> bool {
    let number = one.revision.number.to_string();
    let note = &one.note;
    let texts = [
        Some(&number),
        Some(&note.by),
        note.note.as_ref(),
        note.source_digest.as_ref(),
    ];
    let mut texts = texts.into_iter().flatten();
    texts.any(|text| text.to_lowercase().contains(search))
}

/// Reads what is searched among differences; `own` takes parameters of a page's own, and says whether it knows them.
fn wanted(
    query: Option<&str>,
    mut own: impl FnMut(&str, &str) -> Result<bool, Problem>,
) -> Result<Wanted, Problem> {
    let mut wanted = Wanted::default();
    let mut given = Vec::new();
    for (name, value) in pairs(query)? {
        if given.contains(&name) {
            return Err(repeated(&name));
        }
        match name.as_str() {
            "after" => {
                let code = value.parse::<ProductCode>();
                let code = code.map_err(|_| refused("after", "isn't a product code"))?;
                wanted.after = Some(code);
            }
            "kind" => {
                let known = KINDS.into_iter().find(|(_, word)| *word == value);
                let why = "isn't `created`, `changed` or `retired`";
                wanted.kind = Some(known.ok_or_else(|| refused("kind", why))?.0);
            }
            "q" => value.trim().clone_into(&mut wanted.search),
            "field" => wanted.field = Some(value).filter(|field| !field.is_empty()),
            _ if own(&name, &value)? => {}
            _ => return Err(unknown(&name)),
        }
        given.push(name);
    }
    Ok(wanted)
}

fn missing(number: u64) -> Problem {
    let title = format!("Revision {number} not found");
    Problem::not_found(
        &title,
        "It may be mistyped; the page of revisions lists all.",
    )
    .leading_to("/revisions", "All revisions")
}

/// Renders the page of one revision.
pub(super) fn one(browser: &Browser, number: u64, query: Option<&str>) -> Shown {
    let wanted = wanted(query, |_, _| Ok(false))?;
    let shown = read(&browser.store, number, wanted);
    let shown = shown.map_err(|error| Problem::store_away(&error))?;
    answer::html(StatusCode::OK, &shown.ok_or_else(|| missing(number))?)
}

fn read(store: &Store, number: u64, wanted: Wanted) -> Result<Option<RevisionPage>, StoreError> {
    let Some(published) = store.revision(number)? else {
        return Ok(None);
    };
    let differences = Differences::read(store, [number - 1, number], &wanted)?;
    let can_be_read = |one: PublishedRevision| one.availability == Availability::Readable;
    let has_before = number > 1 && store.revision(number - 1)?.is_some_and(can_be_read);
    let has_next = store.revision(number.saturating_add(1))?.is_some();
    let path = format!("/revisions/{number}");
    let counts = &published.counts;
    let kinds = KINDS.map(|(kind, word)| KindView {
        word,
        count: match kind {
            ChangeKind::Created => counts.created,
            ChangeKind::Changed => counts.changed,
            ChangeKind::Retired => counts.retired,
        },
        is_current: wanted.kind == Some(kind),
    });
    Ok(Some(RevisionPage {
        assets: ASSETS,
        here: "revisions",
        number,
        can_be_live: has_next && published.availability == Availability::Readable,
        published,
        has_before,
        has_next,
        kinds,
        view: DifferencesView::new(path, Vec::new(), wanted, differences),
    }))
}

/// Renders the differences between two revisions.
pub(super) fn compare(browser: &Browser, query: Option<&str>) -> Shown {
    let (mut from, mut to) = (None, None);
    let wanted = wanted(query, |name, value| {
        let place = match name {
            "from" => &mut from,
            "to" => &mut to,
            _ => return Ok(false),
        };
        let number = number(value.trim()).filter(|number: &u64| *number > 0);
        *place = Some(number.ok_or_else(|| refused(name, "isn't the number of a revision"))?);
        Ok(true)
    })?;
    let away = |error: StoreError| Problem::store_away(&error);
    let newest = browser.store.revisions(1).map_err(away)?;
    let newest = newest.first().map_or(0, |newest| newest.revision.number);
    let from = from.ok_or_else(|| refused("from", "is missing: the older revision"))?;
    let to = to.unwrap_or(newest);
    if from >= to {
        return Err(refused("from", "isn't before `to`; exchange them"));
    }
    if to - from > MAX_COMPARED {
        let why = "is more than 500 revisions before `to`; `vitrine diff` compares any two";
        return Err(refused("from", why));
    }
    let published = |number: u64| {
        let found = browser.store.revision(number).map_err(away)?;
        let found = found.ok_or_else(|| missing(number))?;
        match found.availability {
            Availability::Readable => Ok(found),
            Availability::Pruned => Err(Problem::not_found(
                &format!("Revision {number} was pruned"),
                "Its products are no longer stored.",
            )
            .leading_to("/revisions", "All revisions")),
        }
    };
    let (older, newer) = (published(from)?, published(to)?);
    let differences = Differences::read(&browser.store, [from, to], &wanted).map_err(away)?;
    let base = vec![("from", from.to_string()), ("to", to.to_string())];
    let page = ComparisonPage {
        assets: ASSETS,
        here: "revisions",
        from: older,
        to: newer,
        view: DifferencesView::new("/revisions/compare".to_owned(), base, wanted, differences),
    };
    answer::html(StatusCode::OK, &page)
}
