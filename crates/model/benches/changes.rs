//! Cost of changes beside that of a page of the list, of appending a revision to a journal, and a journal's memory.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use divan::{Bencher, black_box};
use jiff::Timestamp;
use vitrine_model::assortment::{Assortment, AssortmentState, AssortmentTable, NewVersion, Rules};
use vitrine_model::changes::{
    ChangesQuery, Journal, JournalUpdate, Point, Position, StateId, Work,
};
use vitrine_model::code::ProductCode;
use vitrine_model::facts::Facts;
use vitrine_model::geo::Country;
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::{BlockBuilder, Entry, FacetNumbers, Snapshot, TextTable};

const PRODUCTS: u32 = 1_000_000;
const ENTRIES: u64 = 500_000;
/// Approximate size of products from `vitrine generate`, in bytes.
const PRODUCT_BYTES: usize = 2_300;
const COUNTRIES: [&str; 12] = [
    "AT", "BE", "CH", "DE", "DK", "ES", "FI", "FR", "GB", "NO", "SE", "US",
];
const CATEGORIES: u32 = 40;
/// A category of which no product is.
const RARE: &str = "rare";

fn main() {
    for shape in Shape::ALL {
        let journal = shape.journal();
        let (len, bytes) = (journal.len(), journal.bytes());
        println!("{shape}: {len} entries, {} bytes each", bytes / len);
    }
    divan::main();
}

/// Revisions of a journal.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// 500,000 with one change each.
    Small,
    /// 500 with 1,000 changes each.
    Large,
    /// 500,000 changes by a text that was taken down.
    Text,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Small => "one change a revision",
            Self::Large => "1,000 changes a revision",
            Self::Text => "one text",
        })
    }
}

impl Shape {
    const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Text];

    fn journal(self) -> &'static Journal {
        static SMALL: LazyLock<Journal> = LazyLock::new(|| revisions(ENTRIES, 1));
        static LARGE: LazyLock<Journal> = LazyLock::new(|| revisions(ENTRIES / 1_000, 1_000));
        static TEXT: LazyLock<Journal> = LazyLock::new(text);
        match self {
            Self::Small => &SMALL,
            Self::Large => &LARGE,
            Self::Text => &TEXT,
        }
    }
}

fn code(number: u32) -> ProductCode {
    format!("BRIARWICK{number:07}").parse().expect("a code")
}

fn parts(number: u32) -> (bool, [Country; 1], [Box<str>; 1]) {
    let country = COUNTRIES[number as usize % COUNTRIES.len()].parse();
    let category = format!("category {}", number / 7 % CATEGORIES).into();
    (
        !number.is_multiple_of(10),
        [country.expect("a country")],
        [category],
    )
}

fn facts<'a>(
    is_orderable: bool,
    countries: &'a [Country],
    categories: &'a [Box<str>],
) -> Facts<'a> {
    Facts {
        is_orderable,
        currency: "EUR".parse().expect("a currency"),
        payout_type: "gift_card",
        countries,
        categories,
    }
}

/// Returns a product that is changed by the change with this number, spread over the catalog.
fn changed(change: u64) -> u32 {
    u32::try_from(change.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).expect("24 bits") % PRODUCTS
}

fn snapshot() -> &'static Snapshot {
    static MADE: LazyLock<Snapshot> = LazyLock::new(|| {
        let mut facets = FacetNumbers::default();
        let mut builder = BlockBuilder::default();
        let mut blocks = Vec::new();
        for number in 0..PRODUCTS {
            let (is_orderable, countries, categories) = parts(number);
            let mut document = format!("{{\"code\":\"{number}\",\"text\":\"");
            let padding = PRODUCT_BYTES - document.len() - 2;
            write!(document, "{:a>padding$}\"}}", "").expect("memory");
            let entry = Entry {
                code: &code(number),
                bytes: document.as_bytes(),
                content: None,
                discount: None,
                facets: &facets.facets_of(&facts(is_orderable, &countries, &categories)),
                words: "",
            };
            builder.push(&entry).expect("it follows");
            if builder.is_full() || number + 1 == PRODUCTS {
                blocks.push(builder.finish().expect("a block"));
            }
        }
        Snapshot::new(
            Revision::default(),
            Arc::new(facets),
            blocks,
            TextTable::default(),
        )
        .expect("a snapshot")
    });
    &MADE
}

fn revision(number: u64) -> Revision {
    Revision {
        number,
        id: format!("{number:032x}"),
        created_at: Timestamp::UNIX_EPOCH,
    }
}

/// Returns what the revision after this one adds.
fn update(number: u64, changes: u64) -> JournalUpdate {
    let mut update = JournalUpdate::default();
    update.revision(&revision(number), None);
    update.revision(&revision(number + 1), None);
    for change in number * changes..(number + 1) * changes {
        let product = changed(change);
        let (is_orderable, countries, categories) = parts(product);
        let before = facts(!is_orderable, &countries, &categories);
        let after = facts(is_orderable, &countries, &categories);
        update.ended(number + 1, code(product).as_str(), &before);
        update.began(number + 1, code(product).as_str(), &after);
    }
    update
}

/// Returns a journal to which revisions were appended one by one.
fn revisions(count: u64, changes: u64) -> Journal {
    let mut start = JournalUpdate::default();
    start.revision(&revision(0), None);
    let mut journal = start.into_journal(texts()).expect("a revision");
    for number in 0..count {
        let update = update(number, changes);
        journal = update.extend(&journal, texts()).expect("it follows");
    }
    journal
}

fn texts() -> StateId {
    StateId::of_texts(1)
}

fn text() -> Journal {
    let mut update = JournalUpdate::default();
    update.revision(&revision(0), None);
    update.texts_state(StateId::of_texts(0), texts(), Timestamp::UNIX_EPOCH);
    for number in 0..PRODUCTS / 2 {
        update.text(texts(), code(number * 2).as_str());
    }
    update.into_journal(texts()).expect("a revision")
}

/// Returns the point of a journal before its newest revisions.
fn point(journal: &Journal, revisions: u64, texts: StateId) -> Point {
    let number = journal.newest().0 - revisions;
    let position = Position {
        number,
        revision: StateId::of_revision(&revision(number).id),
        texts,
        assortment: StateId::default(),
    };
    journal.locate(&position).expect("known")
}

fn limit() -> Limit {
    Limit::new(100).expect("a limit")
}

/// A page of 100 of the list: found, and its tag made and its products copied into one body.
#[divan::bench(args = [false, true])]
fn list(bencher: Bencher<'_, '_>, is_copied: bool) {
    let snapshot = snapshot();
    let query = ListQuery {
        cursor: Cursor::After(code(PRODUCTS / 10)),
        limit: limit(),
        ..ListQuery::default()
    };
    bencher.bench_local(|| {
        let page = snapshot.page(black_box(&query));
        let mut body = Vec::new();
        if is_copied {
            body.extend_from_slice(page.hash().as_bytes());
            let length: usize = page
                .runs()
                .map(|run| snapshot.slice(snapshot.run(run)).len() + 1)
                .sum();
            body.reserve_exact(length);
            for run in page.runs() {
                body.extend_from_slice(snapshot.slice(snapshot.run(run)));
                body.push(b',');
            }
        }
        (page.len(), body)
    });
}

/// A question: the journal, how many revisions back its base is, and if its answer is copied into one body.
#[derive(Debug, Clone, Copy)]
struct Case(Shape, u64, bool);

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(shape, back, is_copied) = self;
        write!(formatter, "{shape}, {back} back, {is_copied}")
    }
}

fn cases() -> Vec<Case> {
    let (small, large) = (Shape::Small, Shape::Large);
    let bases = [
        (small, 100),
        (small, 50_000),
        (small, 400_000),
        (small, 500_000),
    ];
    let bases = bases.into_iter().chain([(large, 1), (large, 450)]);
    let case = |(shape, back)| [false, true].map(|is_copied| Case(shape, back, is_copied));
    bases.flat_map(case).collect()
}

/// A page of 100 changes: found, and copied into one body.
#[divan::bench(args = cases())]
fn changes(bencher: Bencher<'_, '_>, case: Case) {
    let Case(shape, back, is_copied) = case;
    let (snapshot, journal) = (snapshot(), shape.journal());
    let newest = journal.newest().1;
    let (since, until) = (point(journal, back, newest), point(journal, 0, newest));
    let query = ChangesQuery {
        limit: limit(),
        ..ChangesQuery::default()
    };
    let found = |query| {
        journal.changes(
            snapshot,
            [since, until],
            query,
            None,
            &mut Work::unlimited(),
        )
    };
    assert_eq!(found(&query).changes.len(), 100, "too few changes");
    bencher.bench_local(|| {
        let work = &mut Work::unlimited();
        let page = journal.changes(snapshot, [since, until], black_box(&query), None, work);
        let mut body = Vec::new();
        if is_copied {
            body.reserve_exact(100 * (PRODUCT_BYTES + 60));
            for change in &page.changes {
                body.extend_from_slice(b"{\"code\":\"");
                body.extend_from_slice(change.code_bytes());
                body.extend_from_slice(b"\",\"product\":");
                body.extend_from_slice(
                    change
                        .product
                        .map_or(b"null", |run| snapshot.slice(snapshot.run(run))),
                );
                body.extend_from_slice(b"},");
            }
        }
        (page.changes.len(), body)
    });
}

/// All 500,000 changes, of which none concerns the filter.
#[divan::bench(args = Shape::ALL)]
fn changes_of_a_narrow_filter(bencher: Bencher<'_, '_>, shape: Shape) {
    let (snapshot, journal) = (snapshot(), shape.journal());
    let (number, newest) = journal.newest();
    let oldest = match shape {
        Shape::Text => StateId::of_texts(0),
        Shape::Small | Shape::Large => newest,
    };
    let (since, until) = (point(journal, number, oldest), point(journal, 0, newest));
    let query = ChangesQuery {
        filter: Selector {
            categories: Some(vec![RARE.to_owned()]),
            ..Selector::default()
        },
        ..ChangesQuery::default()
    };
    bencher.bench_local(|| {
        let work = &mut Work::unlimited();
        let page = journal.changes(snapshot, [since, until], black_box(&query), None, work);
        assert_eq!(page.changes.len(), 0);
    });
}

/// The products that one request looks at, all of which changed, none of which the client sees: by so many former versions of
/// its rules, of 300 selectors each.
#[divan::bench(args = [0, 6, 60])]
fn changes_under_former_rules(bencher: Bencher<'_, '_>, former: u32) {
    const CHANGED: u32 = 50_000;
    let mut update = JournalUpdate::default();
    update.revision(&revision(0), None);
    update.revision(&revision(1), None);
    for number in 0..CHANGED {
        let (is_orderable, countries, categories) = parts(number);
        let facts = facts(is_orderable, &countries, &categories);
        update.ended(1, code(number).as_str(), &facts);
        update.began(1, code(number).as_str(), &facts);
    }
    let journal = update.into_journal(texts()).expect("a revision");
    let mut table = AssortmentTable::default();
    for number in 0..=former {
        let selector = |index: u32| Selector {
            categories: Some(vec![format!("category {}", index % CATEGORIES)]),
            currencies: Some(vec!["SEK".parse().expect("a currency")]),
            countries: index
                .is_multiple_of(2)
                .then(|| vec!["SE".parse().expect("a country")]),
            codes: (index == 0).then(|| [code(CHANGED + number)].into_iter().collect()),
            ..Selector::default()
        };
        let rules = Rules {
            allow: Some((0..300).map(selector).collect()),
            ..Rules::default()
        };
        let id = StateId::of_assortment(&number.to_string());
        let version = NewVersion {
            assortment: Assortment::new("partner".to_owned(), id, rules),
            number: number + 1,
            version_id: String::new(),
            since: Timestamp::UNIX_EPOCH,
        };
        let kept = HashSet::from(["partner"]);
        table = table.updated(&kept, vec![version], AssortmentState::default());
    }
    let known = table.get("partner").expect("a version");
    let first = StateId::of_assortment("0");
    let snapshot = Arc::new(Snapshot::default());
    let (since, until) = (point(&journal, 1, texts()), point(&journal, 0, texts()));
    let query = ChangesQuery::default();
    bencher.bench_local(|| {
        let versions = known.versions_since(first, Timestamp::MIN);
        let rules = versions.expect("the first version").rules(&snapshot);
        let work = &mut Work::new(10_000, &|| false);
        let page = journal.changes(&snapshot, [since, until], &query, Some(&rules), work);
        assert!(page.changes.is_empty() && page.has_more());
    });
}

/// One more revision for a journal; in the second case, all segments are merged.
#[divan::bench(args = [500_000, 524_287])]
fn append(bencher: Bencher<'_, '_>, revisions_before: u64) {
    let mut journal = Shape::Small.journal().clone();
    for number in ENTRIES..revisions_before {
        journal = update(number, 1)
            .extend(&journal, texts())
            .expect("it follows");
    }
    bencher
        .with_inputs(|| update(revisions_before, 1))
        .bench_local_values(|update| update.extend(&journal, texts()).expect("it follows"));
}

/// The changes of a revision with 1,000 changes, made ready for a journal.
#[divan::bench]
fn append_1_000(bencher: Bencher<'_, '_>) {
    let journal = Shape::Large.journal();
    let newest = journal.newest().0;
    bencher
        .with_inputs(|| update(newest, 1_000))
        .bench_local_values(|update| update.extend(journal, texts()).expect("it follows"));
}

/// Dropping the oldest quarter of a journal.
#[divan::bench]
fn trim(bencher: Bencher<'_, '_>) {
    let journal = Shape::Small.journal();
    let max_bytes = journal.bytes() - 1;
    bencher
        .with_inputs(|| journal.clone())
        .bench_local_values(|journal| journal.trimmed(max_bytes, Timestamp::UNIX_EPOCH));
}

/// Reading a journal from a file's bytes.
#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let bytes = Shape::Small.journal().to_bytes();
    bencher.bench_local(|| Journal::from_bytes(black_box(&bytes)).expect("what was written"));
}
