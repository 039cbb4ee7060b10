//! Selections of the store's products, on command lines.

use clap::Args;
use vitrine_ingest::selection::{checked, given};
use vitrine_model::Invalid;
use vitrine_model::geo::Country;
use vitrine_model::money::Currency;
use vitrine_model::product::{PayoutTypeName, State};
use vitrine_model::selector::{CodePattern, Selector};

use super::exit_with_usage_error;

/// Selection of products. Values of one option are alternatives, options narrow each other.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct SelectionArgs {
    /// Only products with this code or pattern, such as 'BRIARWICK-*'.
    #[arg(value_name = "CODE|PATTERN")]
    codes: Vec<CodePattern>,
    #[command(flatten)]
    fields: FieldArgs,
}

/// The part of a selection that isn't about codes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct FieldArgs {
    /// Only products for this country (ISO 3166-1 alpha-2). Give it once for each country.
    #[arg(long = "country", value_name = "CODE", value_parser = country)]
    countries: Vec<Country>,
    /// Only products of this category. Give it once for each category.
    #[arg(long = "category", value_name = "NAME", value_parser = text)]
    categories: Vec<String>,
    /// Only products in this currency (ISO 4217). Give it once for each currency.
    #[arg(long = "currency", value_name = "CODE")]
    currencies: Vec<Currency>,
    /// Only products of this payout type, such as `gift_card`. Give it once for each payout type.
    #[arg(long = "payout-type", value_name = "NAME")]
    payout_types: Vec<PayoutTypeName>,
    /// Only products in this state, such as `LIVE`. Give it once for each state.
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<State>,
    /// Only products with this in their name, in any case.
    #[arg(long, value_name = "TEXT", value_parser = text)]
    name: Option<String>,
    /// Only products that can be ordered.
    #[arg(long, conflicts_with = "not_orderable")]
    orderable: bool,
    /// Only products that can't be ordered.
    #[arg(long)]
    not_orderable: bool,
}

impl SelectionArgs {
    /// Returns the selection.
    pub(super) fn selection(&self) -> Selector {
        self.fields.selection(self.codes.clone())
    }
}

impl FieldArgs {
    /// Returns the selection, with these codes and patterns.
    pub(super) fn selection(&self, codes: Vec<CodePattern>) -> Selector {
        let selection = Selector {
            codes: given(codes),
            countries: given(self.countries.clone()),
            categories: given(self.categories.clone()),
            currencies: given(self.currencies.clone()),
            payout_types: given(self.payout_types.clone()),
            states: given(self.states.clone()),
            name: self.name.clone(),
            is_orderable: match (self.orderable, self.not_orderable) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            },
        };
        checked(selection).unwrap_or_else(|too_large| {
            exit_with_usage_error(&format!("the selection has {too_large}"))
        })
    }
}

fn country(text: &str) -> Result<Country, String> {
    text.parse().map_err(|invalid: Invalid| {
        let meant = Country::meant(text).map(|meant| format!("; did you mean `{meant}`?"));
        format!("expected {invalid}{}", meant.unwrap_or_default())
    })
}

/// Refuses a text that selects everything or nothing, as that of an unset variable does.
fn text(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected a text, not an empty one".to_owned()),
        text => Ok(text.to_owned()),
    }
}
