//! Operations of a case, and their random choice. Numbers choose among what there is when they are used, so
//! that an operation means something after those before it were taken out.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::catalog::{
    CATEGORIES, CODES, COUNTRIES, Catalog, Content, Cursor, Facts, Filter, Payout, Record, Text,
    TextUpdate, Version,
};
use crate::timeline::SERVERS;

/// The texts that products have.
pub const TEXTS: u8 = 3;

/// A page that is asked for.
#[derive(Debug, Clone)]
pub struct Query {
    pub filter: Filter,
    pub cursor: Cursor,
    pub limit: Option<usize>,
    pub version: Version,
}

/// Target of a read.
#[derive(Debug, Clone)]
pub enum Target {
    List(Query),
    Product(&'static str, Content, Version),
    Categories,
    Countries,
    /// A text of the service's own, which needs no key.
    Text(u8),
}

/// Direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forwards,
    Backwards,
}

/// End of a server.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Killed,
    Told,
}

/// Something that happens to a copy.
#[derive(Debug, Clone)]
pub enum CopyOperation {
    /// The next answer.
    Sync,
    /// The same, held until these are loaded or a second is over.
    Wait(Vec<Record>),
    /// Its token with other filters.
    MisuseToken(Filter),
}

/// Something that happens.
#[derive(Debug, Clone)]
pub enum Operation {
    /// These become the whole catalog. Where there are none, the load is refused.
    Load(Vec<Record>),
    Merge {
        records: Vec<Record>,
        retire: Vec<&'static str>,
    },
    /// A load of these and of a record with faults: it changes nothing.
    LoadWithFault(Vec<Record>),
    /// To one of the revisions.
    RollBack(usize),
    MakeKey,
    /// One of the keys.
    Revoke(usize),
    Read {
        server: usize,
        /// One of the keys, or the one that is never revoked.
        key: Option<usize>,
        target: Target,
    },
    /// Asks once more for something that came before, with its tag.
    ReadAgain {
        server: usize,
        answer: usize,
    },
    StartWalk {
        filter: Filter,
        way: Direction,
        limit: usize,
    },
    /// The next page of one of the walks that are open.
    Step {
        server: usize,
        walk: usize,
    },
    /// Begins a copy that the changes feed keeps.
    StartCopy {
        filter: Filter,
        limit: usize,
    },
    /// With one of the copies.
    OfCopy {
        server: usize,
        copy: usize,
        what: CopyOperation,
    },
    Restart {
        server: usize,
        end: End,
    },
    /// Waits until a server shows the newest state.
    Settle {
        server: usize,
    },
}

/// A case. What fails is made smaller in the order in which things stand here: operations are left out first.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let first = prop::option::weighted(0.95, records(12).prop_map(Operation::Load));
    (prop::collection::vec(operation(), 0..32), first).prop_map(|(others, first)| {
        let mut all: Vec<_> = first.into_iter().collect();
        all.extend(others);
        all
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let server = || 0..SERVERS;
    let number = || 0..8_usize;
    let codes = prop::sample::subsequence(&CODES[..], 0..3);
    prop_oneof![
        3 => records(10).prop_map(Operation::Load),
        4 => (records(4), codes).prop_map(|(records, retire)| Operation::Merge { records, retire }),
        1 => records(4).prop_map(Operation::LoadWithFault),
        3 => number().prop_map(Operation::RollBack),
        2 => Just(Operation::MakeKey),
        2 => number().prop_map(Operation::Revoke),
        14 => (server(), prop::option::weighted(0.3, number()), target())
            .prop_map(|(server, key, target)| Operation::Read { server, key, target }),
        5 => (server(), 0..40_usize)
            .prop_map(|(server, answer)| Operation::ReadAgain { server, answer }),
        3 => (filter(), prop_oneof![Just(Direction::Forwards), Just(Direction::Backwards)], 1..5_usize)
            .prop_map(|(filter, way, limit)| Operation::StartWalk { filter, way, limit }),
        10 => (server(), 0..3_usize).prop_map(|(server, walk)| Operation::Step { server, walk }),
        4 => (filter(), 1..5_usize)
            .prop_map(|(filter, limit)| Operation::StartCopy { filter, limit }),
        18 => (server(), 0..3_usize, copy_operation())
            .prop_map(|(server, copy, what)| Operation::OfCopy { server, copy, what }),
        1 => (server(), prop_oneof![4 => Just(End::Killed), 1 => Just(End::Told)])
            .prop_map(|(server, end)| Operation::Restart { server, end }),
        6 => server().prop_map(|server| Operation::Settle { server }),
    ]
}

fn copy_operation() -> impl Strategy<Value = CopyOperation> {
    prop_oneof![
        16 => Just(CopyOperation::Sync),
        1 => records(4).prop_map(CopyOperation::Wait),
        2 => filter().prop_map(CopyOperation::MisuseToken),
    ]
}

/// Fewer than `count` records, of different codes.
fn records(count: usize) -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(record(), 0..count).prop_map(|records| {
        let of_code = records.into_iter().map(|record| (record.code, record));
        let of_code: BTreeMap<_, _> = of_code.collect();
        of_code.into_values().collect()
    })
}

fn record() -> impl Strategy<Value = Record> {
    let code = prop::sample::select(&CODES[..]);
    let payout = prop_oneof![
        4 => Just(Payout::GiftCard),
        1 => Just(Payout::Payment),
        1 => Just(Payout::Voucher),
    ];
    let facts = (
        0..3_u8,
        any::<bool>(),
        payout,
        prop::sample::subsequence(&COUNTRIES[..], 0..3),
        prop::sample::subsequence(&CATEGORIES[..], 0..3),
        prop::sample::select(&[0_u16, 50, 100, 125, 129][..]),
    );
    let text = prop_oneof![
        2 => Just(TextUpdate::Absent),
        1 => Just(TextUpdate::Set(Text::None)),
        3 => (0..TEXTS).prop_map(|number| TextUpdate::Set(Text::Markdown(number))),
        1 => (0..2_u8).prop_map(|number| TextUpdate::Set(Text::Outside(number))),
    ];
    (code, facts, any::<bool>(), text).prop_map(|(code, facts, has_long_discount, text)| {
        let (name, is_orderable, payout, countries, categories, discount_thousandths) = facts;
        Record {
            code,
            facts: Facts {
                name,
                is_orderable,
                payout,
                countries,
                categories,
                discount_thousandths,
            },
            has_long_discount,
            text,
        }
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    // Also what no product has.
    let countries = prop::sample::select(&["DE", "FR", "GB", "AQ"][..]);
    let categories = prop::sample::select(&["books", "food", "café & bistro", "none"][..]);
    let payout_types = prop::sample::select(&["gift_card", "payment", "voucher", "none"][..]);
    let codes = prop::sample::subsequence(&CODES[..], 1..9);
    // All at once would select nothing.
    let no = || Just(Vec::new());
    (
        prop::collection::vec(countries, 0..3),
        prop::collection::vec(categories, 0..3),
        prop_oneof![3 => no(), 1 => prop::collection::vec(payout_types, 1..3)],
        prop_oneof![3 => no(), 1 => codes],
        any::<Option<bool>>(),
    )
        .prop_map(
            |(countries, categories, payout_types, codes, is_orderable)| Filter {
                countries,
                categories,
                payout_types,
                codes,
                is_orderable,
            },
        )
}

fn target() -> impl Strategy<Value = Target> {
    let code = || prop::sample::select(&CODES[..]);
    let cursor = prop_oneof![
        2 => Just(Cursor::Start),
        2 => code().prop_map(Cursor::After),
        2 => code().prop_map(Cursor::Before),
    ];
    let version = || prop::sample::select(&[Version::Older, Version::Newest][..]);
    let content = prop::sample::select(&[Content::Url, Content::Markdown, Content::Html][..]);
    prop_oneof![
        6 => (filter(), cursor, prop::option::weighted(0.7, 1..6_usize), version()).prop_map(
            |(filter, cursor, limit, version)| Target::List(Query { filter, cursor, limit, version })
        ),
        4 => (code(), content, version())
            .prop_map(|(code, content, version)| Target::Product(code, content, version)),
        1 => Just(Target::Categories),
        1 => Just(Target::Countries),
        2 => (0..TEXTS).prop_map(Target::Text),
    ]
}

impl Target {
    /// The request's target.
    pub fn path(&self) -> String {
        match self {
            Self::List(query) => query.path(),
            Self::Product(code, Content::Url, _) => format!("/v2/product/{code}"),
            Self::Product(code, Content::Markdown, _) => format!("/v2/product/{code}?content=md"),
            Self::Product(code, Content::Html, _) => format!("/v2/product/{code}?content=html"),
            Self::Categories => "/v2/product/categories".to_owned(),
            Self::Countries => "/v2/product/countries".to_owned(),
            Self::Text(number) => crate::catalog::text_path(*number),
        }
    }

    /// The version that is asked for.
    pub fn version(&self) -> Version {
        match self {
            Self::List(query) => query.version,
            Self::Product(_, _, version) => *version,
            Self::Categories | Self::Countries | Self::Text(_) => Version::default(),
        }
    }
}

/// Returns the parameters of a filter.
pub fn filter_pairs(filter: &Filter) -> Vec<String> {
    let encoded =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let Filter {
        countries,
        categories,
        payout_types,
        codes,
        is_orderable,
    } = filter;
    let countries = countries.iter();
    let mut pairs: Vec<String> = countries
        .map(|country| format!("countries_redeemable_in={country}"))
        .collect();
    let categories = categories.iter();
    pairs.extend(categories.map(|category| format!("categories={}", encoded(category))));
    pairs.extend(
        payout_types
            .iter()
            .map(|name| format!("payout_types={name}")),
    );
    pairs.extend(codes.iter().map(|code| format!("codes={code}")));
    pairs.extend(is_orderable.map(|only| format!("is_orderable={only}")));
    pairs
}

impl Query {
    fn path(&self) -> String {
        let mut pairs = filter_pairs(&self.filter);
        pairs.extend(self.limit.map(|limit| format!("limit={limit}")));
        match self.cursor {
            Cursor::Start => {}
            Cursor::After(code) => pairs.push(format!("after={code}")),
            Cursor::Before(code) => pairs.push(format!("before={code}")),
        }
        match pairs.is_empty() {
            true => "/v2/product".to_owned(),
            false => format!("/v2/product?{}", pairs.join("&")),
        }
    }
}

/// One target of each kind for all there is.
pub fn everything(catalog: &Catalog) -> Vec<Target> {
    let list = |limit, version| {
        Target::List(Query {
            filter: Filter::default(),
            cursor: Cursor::Start,
            limit,
            version,
        })
    };
    let mut targets = vec![
        list(None, Version::Older),
        list(None, Version::Newest),
        list(Some(2), Version::Older),
        Target::Categories,
        Target::Countries,
    ];
    targets.extend((0..TEXTS).map(Target::Text));
    targets.extend(CODES.map(|code| Target::Product(code, Content::Url, Version::Newest)));
    let live = catalog.0.keys();
    targets.extend(live.flat_map(|code| {
        [Content::Url, Content::Markdown, Content::Html]
            .map(|content| Target::Product(code, content, Version::Older))
    }));
    targets
}
