//! Operations of a case, and their random choice. Numbers choose among what there is when they are used, so
//! that an operation means something after those before it were taken out.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::assortment::{self, NAMES, Rules};
use crate::catalog::{
    CATEGORIES, CODES, COUNTRIES, CURRENCIES, Content, Cursor, Facts, Filter, Payout, Record, Text,
    TextUpdate, Version,
};
use crate::overrides::{self, Override, Products};
use crate::target::{Query, TEXTS, Target};
use crate::timeline::SERVERS;

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
    /// The same, held until something changes or a second is over.
    Wait(Meanwhile),
    /// Its token with other filters.
    MisuseToken(Filter),
}

/// Something that happens while an answer is held.
#[derive(Debug, Clone)]
pub enum Meanwhile {
    Merge(Vec<Record>),
    SetRules(&'static str, Rules),
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
    /// A load of what differs in these from the live products of their codes. If one isn't live, the load is refused.
    Patch(Vec<Record>),
    /// A load of these and of a record with faults: it changes nothing.
    LoadWithFault(Vec<Record>),
    /// To one of the revisions.
    RollBack(usize),
    Override(Override),
    /// One of those that haven't ended.
    EndOverride(usize),
    /// With one of the assortments, or without.
    MakeKey(Option<usize>),
    /// One of the keys.
    Revoke(usize),
    /// Gives one of the keys one of the assortments, or takes it away.
    Assign {
        key: usize,
        assortment: Option<usize>,
    },
    /// Creates an assortment, or replaces its rules.
    SetRules(&'static str, Rules),
    /// Replaces the rules of an assortment many times.
    SetRulesOften(&'static str, Vec<Rules>),
    /// To one of the versions of all assortments.
    RollBackRules(usize),
    /// Removes an assortment, by its place among the names.
    RemoveRules(usize),
    Read {
        server: usize,
        /// One of the keys, or the one that is never revoked.
        key: Option<usize>,
        target: Target,
    },
    /// Asks once more for something that came before, with its tag.
    ReadAgain {
        server: usize,
        key: Option<usize>,
        answer: usize,
    },
    StartWalk {
        key: Option<usize>,
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
        key: Option<usize>,
        filter: Filter,
        limit: usize,
    },
    /// Keeps one of the copies as it is, with its token, beside the one that goes on.
    KeepCopy(usize),
    /// Lets servers look at so few products in an answer of the changes feed, from the beginning of the case on.
    LimitWork(usize),
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
    let rules = prop::option::weighted(0.4, rules());
    let limit = prop::option::weighted(0.6, (1..4_usize).prop_map(Operation::LimitWork));
    let others = prop::collection::vec(operation(), 0..32);
    (others, first, rules, limit).prop_map(|(others, first, rules, limit)| {
        let mut all: Vec<_> = limit.into_iter().chain(first).collect();
        if let Some((name, rules)) = rules {
            all.push(Operation::SetRules(name, rules));
            all.push(Operation::MakeKey(Some(0)));
            all.push(Operation::StartCopy {
                key: Some(0),
                filter: Filter::default(),
                limit: 4,
            });
        }
        all.extend(others);
        all
    })
}

fn rules() -> impl Strategy<Value = (&'static str, Rules)> {
    (prop::sample::select(&NAMES[..]), assortment::rules())
}

fn rules_often() -> impl Strategy<Value = (&'static str, Vec<Rules>)> {
    let rules = prop::collection::vec(assortment::rules(), 4..12);
    (prop::sample::select(&NAMES[..]), rules)
}

fn operation() -> impl Strategy<Value = Operation> {
    let server = || 0..SERVERS;
    let number = || 0..8_usize;
    let key = |chance| prop::option::weighted(chance, number());
    let assortment = || prop::option::weighted(0.8, number());
    let codes = prop::sample::subsequence(&CODES[..], 0..3);
    prop_oneof![
        3 => records(10).prop_map(Operation::Load),
        4 => (records(4), codes).prop_map(|(records, retire)| Operation::Merge { records, retire }),
        3 => records(3).prop_map(Operation::Patch),
        1 => records(4).prop_map(Operation::LoadWithFault),
        3 => number().prop_map(Operation::RollBack),
        3 => one().prop_map(Operation::Override),
        2 => number().prop_map(Operation::EndOverride),
        2 => assortment().prop_map(Operation::MakeKey),
        2 => number().prop_map(Operation::Revoke),
        2 => (number(), assortment())
            .prop_map(|(key, assortment)| Operation::Assign { key, assortment }),
        4 => rules().prop_map(|(name, rules)| Operation::SetRules(name, rules)),
        1 => rules_often().prop_map(|(name, rules)| Operation::SetRulesOften(name, rules)),
        1 => number().prop_map(Operation::RollBackRules),
        1 => (0..NAMES.len()).prop_map(Operation::RemoveRules),
        14 => (server(), key(0.5), target())
            .prop_map(|(server, key, target)| Operation::Read { server, key, target }),
        5 => (server(), key(0.5), 0..40_usize)
            .prop_map(|(server, key, answer)| Operation::ReadAgain { server, key, answer }),
        3 => walk(),
        10 => (server(), 0..3_usize).prop_map(|(server, walk)| Operation::Step { server, walk }),
        4 => (key(0.5), filter(), 1..5_usize)
            .prop_map(|(key, filter, limit)| Operation::StartCopy { key, filter, limit }),
        2 => (0..3_usize).prop_map(Operation::KeepCopy),
        18 => (server(), 0..4_usize, copy_operation())
            .prop_map(|(server, copy, what)| Operation::OfCopy { server, copy, what }),
        1 => (server(), prop_oneof![4 => Just(End::Killed), 1 => Just(End::Told)])
            .prop_map(|(server, end)| Operation::Restart { server, end }),
        6 => server().prop_map(|server| Operation::Settle { server }),
    ]
}

fn one() -> impl Strategy<Value = Override> {
    let products = prop_oneof![
        3 => prop::sample::subsequence(&CODES[..], 1..4).prop_map(Products::Codes),
        1 => prop::sample::select(&CATEGORIES[..]).prop_map(Products::Category),
        1 => Just(Products::Orderable),
    ];
    let category = || prop::sample::select(&CATEGORIES[..]);
    let value = prop_oneof![
        1 => Just(overrides::Value::NotOrderable),
        1 => prop::sample::select(&[10_000_u32, 129_000][..]).prop_map(overrides::Value::Discount),
        1 => category().prop_map(overrides::Value::AddCategory),
        1 => category().prop_map(overrides::Value::RemoveCategory),
        1 => prop::sample::select(&COUNTRIES[..]).prop_map(overrides::Value::RemoveCountry),
        2 => Just(overrides::Value::Hidden),
    ];
    let values = prop::collection::vec(value, 1..3);
    (products, values).prop_map(|(products, values)| Override { products, values })
}

fn walk() -> impl Strategy<Value = Operation> {
    let key = prop::option::of(0..8_usize);
    let way = prop_oneof![Just(Direction::Forwards), Just(Direction::Backwards)];
    (key, filter(), way, 1..5_usize).prop_map(|(key, filter, way, limit)| Operation::StartWalk {
        key,
        filter,
        way,
        limit,
    })
}

fn copy_operation() -> impl Strategy<Value = CopyOperation> {
    prop_oneof![
        16 => Just(CopyOperation::Sync),
        1 => records(4).prop_map(|records| CopyOperation::Wait(Meanwhile::Merge(records))),
        1 => rules()
            .prop_map(|(name, rules)| CopyOperation::Wait(Meanwhile::SetRules(name, rules))),
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
        prop::sample::select(&CURRENCIES[..]),
        prop::sample::select(&[0_u32, 50_000, 100_000, 125_000, 129_000][..]),
    );
    let text = prop_oneof![
        2 => Just(TextUpdate::Absent),
        1 => Just(TextUpdate::Set(Text::None)),
        3 => (0..TEXTS).prop_map(|number| TextUpdate::Set(Text::Markdown(number))),
        1 => (0..2_u8).prop_map(|number| TextUpdate::Set(Text::Outside(number))),
    ];
    (code, facts, any::<bool>(), text).prop_map(|(code, facts, has_long_discount, text)| {
        let (name, is_orderable, payout, countries, categories, currency, discount_millionths) =
            facts;
        Record {
            code,
            facts: Facts {
                name,
                is_orderable,
                payout,
                countries,
                categories,
                currency,
                discount_millionths,
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
