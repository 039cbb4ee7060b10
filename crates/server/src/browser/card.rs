//! Cards of products in the grid, parsed once from the products' bytes.

use std::borrow::Cow;

use serde::Deserialize;
use vitrine_model::money::Discount;

use super::amounts::{self, Denominations, Plan};
use super::borrowed::Borrowed;
use super::group::{Group, NO, YES};
use super::values::Value;

/// Card of a product.
#[derive(Debug, Clone)]
pub(super) struct Card {
    pub(super) name: Box<str>,
    pub(super) code: Box<str>,
    /// Amounts in one line, with their currency.
    pub(super) amounts: Box<str>,
    /// First countries, and the number of others.
    pub(super) countries: Box<str>,
    /// Lowest amount, in hundredths; zero without amounts.
    pub(super) lowest_amount: u64,
    /// Discount, exact; none if it isn't known.
    pub(super) discount: Option<Discount>,
    /// Filter values, ascending.
    pub(super) values: Box<[Value]>,
}

/// Maximum number of countries that a card names.
const MAX_COUNTRIES: usize = 3;

#[derive(Debug, Default, Deserialize)]
struct Parsed<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    currency: Cow<'a, str>,
    #[serde(borrow)]
    state: Cow<'a, str>,
    is_orderable: bool,
    #[serde(borrow)]
    payout_type: Cow<'a, str>,
    #[serde(borrow)]
    categories: Vec<Borrowed<'a>>,
    #[serde(borrow)]
    countries_redeemable_in: Vec<Borrowed<'a>>,
    #[serde(borrow, default)]
    gift_card: Option<Detail<'a>>,
    #[serde(borrow, default)]
    subscription: Option<Detail<'a>>,
    #[serde(borrow, default)]
    payment: Option<Detail<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Detail<'a> {
    #[serde(borrow, default)]
    denominations: Option<Denominations<'a>>,
    #[serde(borrow, default)]
    subscription_plans: Option<Vec<Plan<'a>>>,
}

impl<'a> Parsed<'a> {
    fn read(bytes: &'a [u8]) -> (Self, Detail<'a>) {
        // Served bytes were rendered by this program, so they can be parsed.
        let mut parsed: Self = serde_json::from_slice(bytes).unwrap_or_default();
        let known = [
            &mut parsed.gift_card,
            &mut parsed.subscription,
            &mut parsed.payment,
        ];
        let known = known.into_iter().find_map(Option::take);
        let detail = known.unwrap_or_default();
        (parsed, detail)
    }
}

impl Card {
    /// Returns the card of a served product with its exact discount; `number` returns the filter value of a name.
    pub(super) fn read(
        code: &str,
        bytes: &[u8],
        discount: Option<Discount>,
        number: &mut impl FnMut(Group, &str) -> Value,
    ) -> Self {
        let (parsed, detail) = Parsed::read(bytes);
        let mut values = vec![
            number(Group::Orderable, if parsed.is_orderable { YES } else { NO }),
            number(Group::State, &parsed.state),
            number(Group::PayoutType, &parsed.payout_type),
            number(Group::Currency, &parsed.currency),
        ];
        let countries = parsed.countries_redeemable_in.iter();
        values.extend(countries.map(|country| number(Group::Country, country)));
        let categories = parsed.categories.iter();
        values.extend(categories.map(|category| number(Group::Category, category)));
        values.sort_unstable();
        values.dedup();
        let plans = detail.subscription_plans.as_deref();
        let denominations = detail.denominations.as_ref();
        let amounts = amounts::in_words(&parsed.currency, denominations, plans);
        Self {
            name: parsed.name.as_ref().into(),
            code: code.into(),
            amounts: amounts.into(),
            countries: abbreviated(&parsed.countries_redeemable_in).into(),
            lowest_amount: amounts::lowest(denominations, plans),
            discount,
            values: values.into(),
        }
    }
}

impl Card {
    /// Returns the amounts without their currency.
    pub(super) fn bare_amounts(&self, currency: &str) -> &str {
        let bare = self.amounts.strip_prefix(currency);
        bare.unwrap_or(&self.amounts).trim_start()
    }
}

/// Returns the name of a served product.
pub(super) fn name(bytes: &[u8]) -> String {
    Parsed::read(bytes).0.name.into_owned()
}

/// Returns the first of some words, and the number of others: `SE, NO, DK +4`.
fn abbreviated(words: &[Borrowed<'_>]) -> String {
    let shown = words.iter().take(MAX_COUNTRIES).map(|word| &**word);
    let shown = shown.collect::<Vec<&str>>().join(", ");
    match words.len().saturating_sub(MAX_COUNTRIES) {
        0 => shown,
        rest => format!("{shown} +{rest}"),
    }
}
