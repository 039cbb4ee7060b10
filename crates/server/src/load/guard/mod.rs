//! The guard: refuses a load that would turn the live catalog upside down, unless it is allowed by name.
//!
//! It holds for whoever loads, a person or a program: a file that was cut short, a column that slipped,
//! a decimal point that was lost. Each of its limits is a share of what was live before.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use vitrine_model::money::{Amount, DiscountMultiplier};
use vitrine_store::record::StoredProduct;
use vitrine_store::{Publication, StoreError};

use super::json::Node;

/// What the guard looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Live products that are retired.
    Retire,
    /// Live products that can be ordered before and not afterwards.
    NotOrderable,
    /// Amounts of live products that become ten times as large or as small, or more.
    Amounts,
    /// Discounts of live products that do.
    Discounts,
}

impl Rule {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 4] = [
        Self::Retire,
        Self::NotOrderable,
        Self::Amounts,
        Self::Discounts,
    ];

    /// Its name, as `--allow` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retire => "retire",
            Self::NotOrderable => "not-orderable",
            Self::Amounts => "amounts",
            Self::Discounts => "discounts",
        }
    }

    fn usual(self) -> Percent {
        match self {
            Self::Retire | Self::NotOrderable => Percent(2_000),
            Self::Amounts | Self::Discounts => Percent(500),
        }
    }

    fn what(self) -> (&'static str, &'static str) {
        match self {
            Self::Retire => ("retire", "live products"),
            Self::NotOrderable => ("make not orderable", "live products"),
            Self::Amounts => ("change tenfold or more", "live amounts"),
            Self::Discounts => ("change tenfold or more", "live discounts"),
        }
    }
}

/// A share, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// Whether `count` of `all` is more than this share.
    fn is_exceeded(self, count: u64, all: u64) -> bool {
        u128::from(count) * 10_000 > u128::from(all) * u128::from(self.0)
    }

    /// The share of `count` in `all`, rounded up, so that allowing it allows them.
    fn of(count: u64, all: u64) -> Self {
        let share = (u128::from(count) * 10_000).div_ceil(u128::from(all.max(1)));
        Self(u32::try_from(share.min(10_000)).unwrap_or(10_000))
    }
}

impl FromStr for Percent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a share from 0% to 100%, such as 35% or 2.5%";
        let number = text.strip_suffix('%').unwrap_or(text);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole, 3) || !is_number(fraction, 2) {
            return Err(EXPECTED);
        }
        let hundredths = format!("{whole}{fraction:0<2}").parse();
        match hundredths {
            Ok(hundredths @ 0..=10_000) => Ok(Self(hundredths)),
            _ => Err(EXPECTED),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 100, self.0 % 100);
        match fraction {
            0 => write!(out, "{whole}%"),
            _ => write!(out, "{whole}.{fraction:02}%"),
        }
    }
}

/// One rule with another limit than the usual one: `retire=100%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    rule: Rule,
    limit: Percent,
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = || Rule::ALL.map(Rule::name).join(", ");
        let Some((name, limit)) = text.split_once('=') else {
            return Err(format!(
                "expected NAME=PERCENT%; NAME is one of {}",
                names()
            ));
        };
        let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name);
        let rule = rule.ok_or_else(|| format!("expected a name among {}", names()))?;
        let limit = limit.parse()?;
        Ok(Self { rule, limit })
    }
}

/// A limit that a load would exceed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exceeded {
    /// Which.
    pub rule: Rule,
    /// How many products, amounts or discounts.
    pub count: u64,
    /// Of how many live ones.
    pub live: u64,
    /// Their share, rounded up.
    #[serde(serialize_with = "serialize_display")]
    pub share: Percent,
    /// The greatest share that is allowed.
    #[serde(serialize_with = "serialize_display")]
    pub limit: Percent,
}

fn serialize_display<S: serde::Serializer>(
    percent: &Percent,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(percent)
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            count,
            live,
            share,
            limit,
        } = self;
        let (verb, things) = rule.what();
        write!(
            out,
            "guard: {}: this load would {verb} {count} of {live} {things} ({share}, more than {limit}); \
             if that is meant: --allow {}={share}",
            rule.name(),
            rule.name()
        )
    }
}

/// What a publish does to the live catalog, counted while it goes on.
#[derive(Debug, Default)]
pub struct Tally {
    retired: u64,
    not_orderable: u64,
    amounts: u64,
    compared_amounts: u64,
    discounts: u64,
}

impl Tally {
    /// Takes note of a live product that changes.
    pub fn compare(&mut self, live: &StoredProduct, next: &StoredProduct) {
        if live.is_orderable && !next.is_orderable {
            self.not_orderable += 1;
        }
        let (before, after) = (amounts(live), amounts(next));
        self.compared_amounts += count(&before);
        let kinds = before.into_iter().zip(after);
        self.amounts += kinds.map(|(old, new)| tenfold(old, new)).sum::<u64>();
        let discount = |product: &StoredProduct| product.discount_multiplier.parse();
        let discounts: Result<(DiscountMultiplier, DiscountMultiplier), _> =
            discount(live).and_then(|old| Ok((old, discount(next)?)));
        if discounts.is_ok_and(|(old, new)| old.is_tenfold(&new)) {
            self.discounts += 1;
        }
    }

    /// Takes note of products that go.
    pub fn retire(&mut self, count: u64) {
        self.retired += count;
    }

    /// The limits that are exceeded: the usual ones, but for those of `allowances`.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    pub fn exceeded(
        &self,
        publication: &mut dyn Publication,
        allowances: &[Allowance],
    ) -> Result<Vec<Exceeded>, StoreError> {
        let live = publication.live_before();
        let mut exceeded = Vec::new();
        for rule in Rule::ALL {
            let allowed = allowances.iter().rev().find(|allowed| allowed.rule == rule);
            let limit = allowed.map_or(rule.usual(), |allowed| allowed.limit);
            let (count, live) = match rule {
                Rule::Retire => (self.retired, live),
                Rule::NotOrderable => (self.not_orderable, live),
                Rule::Discounts => (self.discounts, live),
                // Products that weren't compared have amounts too. They are counted only where it matters.
                Rule::Amounts if limit.is_exceeded(self.amounts, self.compared_amounts) => {
                    (self.amounts, live_amounts(publication)?)
                }
                Rule::Amounts => continue,
            };
            if limit.is_exceeded(count, live) {
                exceeded.push(Exceeded {
                    rule,
                    count,
                    live,
                    share: Percent::of(count, live),
                    limit,
                });
            }
        }
        Ok(exceeded)
    }
}

/// How many amounts the products have that were live when the publish began.
fn live_amounts(publication: &mut dyn Publication) -> Result<u64, StoreError> {
    let mut all = 0;
    publication.read_before(&mut |product| {
        all += count(&amounts(&product));
        Ok(())
    })?;
    Ok(all)
}

/// Amounts by kind: the least, the greatest, the list, the plans' prices.
type Amounts = [Vec<Amount>; 4];

fn count(amounts: &Amounts) -> u64 {
    amounts.iter().map(|kind| kind.len() as u64).sum()
}

/// How many amounts became another one tenfold. Those that stand in both lists stayed; of the others the
/// least is compared with the least, and so on, so that an amount that came or went shifts nothing.
fn tenfold(mut old: Vec<Amount>, mut new: Vec<Amount>) -> u64 {
    let both: Vec<Amount> = old
        .iter()
        .filter(|old| new.contains(old))
        .copied()
        .collect();
    for amounts in [&mut old, &mut new] {
        amounts.retain(|amount| !both.contains(amount));
        amounts.sort_unstable();
    }
    let pairs = old.iter().zip(&new);
    pairs.filter(|(old, new)| old.is_tenfold(new)).count() as u64
}

/// The amounts of a stored product.
fn amounts(product: &StoredProduct) -> Amounts {
    let (document, _) = Node::parse(&product.document);
    let payout_type = document.member("payout_type").and_then(Node::text);
    let detail = payout_type.and_then(|payout_type| document.member(payout_type));
    let denominations = detail.and_then(|detail| detail.member("denominations"));
    let under = |key| denominations.and_then(|denominations| denominations.member(key));
    let plans = detail.and_then(|detail| detail.member("subscription_plans"));
    let prices = plans.map_or(&[][..], Node::items).iter();
    [
        under("minimum_value")
            .and_then(amount)
            .into_iter()
            .collect(),
        under("maximum_value")
            .and_then(amount)
            .into_iter()
            .collect(),
        under("available_list")
            .map_or(&[][..], Node::items)
            .iter()
            .filter_map(amount)
            .collect(),
        prices
            .filter_map(|plan| plan.member("price").and_then(amount))
            .collect(),
    ]
}

fn amount(node: &Node<'_>) -> Option<Amount> {
    node.text()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(old: &[&str], new: &[&str]) -> u64 {
        let amounts = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        tenfold(amounts(old), amounts(new))
    }

    #[test]
    fn amounts_that_came_or_went_shift_nothing() {
        assert_eq!(changed(&["10.00", "25.00"], &["1000.00", "2500.00"]), 2);
        assert_eq!(changed(&["10", "100"], &["1", "10", "100"]), 0);
        assert_eq!(changed(&["1", "10", "100"], &["10", "100"]), 0);
        assert_eq!(changed(&["10", "20"], &["10", "199.99"]), 0);
        assert_eq!(changed(&["10", "20"], &["10", "200"]), 1);
        assert_eq!(changed(&["200"], &["20"]), 1);
    }

    #[test]
    fn shares_are_read_and_written() {
        for (text, expected) in [
            ("20%", Ok("20%")),
            ("20", Ok("20%")),
            ("2.5%", Ok("2.50%")),
            ("100%", Ok("100%")),
            ("0%", Ok("0%")),
            ("100.01%", Err(())),
            ("-1%", Err(())),
            ("", Err(())),
            ("%", Err(())),
            ("1.%", Err(())),
            ("1e1%", Err(())),
        ] {
            let read = text.parse::<Percent>().map(|share| share.to_string());
            assert_eq!(read.as_deref().map_err(|_| ()), expected, "{text}");
        }
    }

    #[test]
    fn a_limit_is_exceeded_by_more_than_it() {
        let limit: Percent = "20%".parse().unwrap();
        assert!(!limit.is_exceeded(20, 100));
        assert!(limit.is_exceeded(21, 100));
        assert!(!limit.is_exceeded(0, 0));
        let share = Percent::of(1, 3);
        assert!(!share.is_exceeded(1, 3));
        assert_eq!(share.to_string(), "33.34%");
    }
}
