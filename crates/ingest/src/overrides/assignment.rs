//! Values that an override sets, as operators write them: `state=TEMPORARILY_DISABLED`, `categories+=food`.

use std::fmt;
use std::str::FromStr;

use vitrine_model::Invalid;
use vitrine_model::geo::Country;
use vitrine_model::money::{Amount, Discount};
use vitrine_model::product::{Availability, State};
use vitrine_model::single_line::SingleLine;

/// Field of all values about amounts.
pub(super) const DENOMINATIONS: &str = "denominations";

/// A value that an override sets.
#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    /// `state=…`.
    State(State),
    /// `is_orderable=…`.
    IsOrderable(bool),
    /// `availability=…`.
    Availability(Availability),
    /// `discount_multiplier=…`.
    Discount(Discount),
    /// `minimum_value=…`: no amount below it.
    Minimum(Amount),
    /// `maximum_value=…`: no amount above it.
    Maximum(Amount),
    /// `available_list=…`: no amount but these, ascending.
    Amounts(Vec<Amount>),
    /// `categories+=…` and `categories-=…`.
    Category(ListChange, SingleLine),
    /// `countries_redeemable_in+=…` and `countries_redeemable_in-=…`.
    Country(ListChange, Country),
    /// `visible=false`: clients don't see the product.
    Hidden,
}

/// Change of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChange {
    /// Adds a value, unless the list has it.
    Add,
    /// Removes a value.
    Remove,
}

impl Assignment {
    /// Returns the name of the field that it sets.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::State(_) => "state",
            Self::IsOrderable(_) => "is_orderable",
            Self::Availability(_) => "availability",
            Self::Discount(_) => "discount_multiplier",
            Self::Minimum(_) | Self::Maximum(_) | Self::Amounts(_) => DENOMINATIONS,
            Self::Category(..) => "categories",
            Self::Country(..) => "countries_redeemable_in",
            Self::Hidden => "visible",
        }
    }

    /// Returns true if of this value and an earlier one only this holds. Amounts are narrowed by both, and lists changed by both.
    pub(super) fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Category(change, name), Self::Category(before, other)) => {
                name == other && change != before
            }
            (Self::Country(change, country), Self::Country(before, other)) => {
                country == other && change != before
            }
            _ => self.field() == earlier.field() && self.field() != DENOMINATIONS,
        }
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |change: &ListChange| match change {
            ListChange::Add => "+=",
            ListChange::Remove => "-=",
        };
        match self {
            Self::State(state) => write!(out, "state={}", state.as_str()),
            Self::IsOrderable(is_orderable) => write!(out, "is_orderable={is_orderable}"),
            Self::Availability(value) => write!(out, "availability={}", value.as_str()),
            Self::Discount(discount) => write!(out, "discount_multiplier={discount}"),
            Self::Minimum(amount) => write!(out, "minimum_value={amount}"),
            Self::Maximum(amount) => write!(out, "maximum_value={amount}"),
            Self::Amounts(amounts) => {
                let amounts: Vec<String> = amounts.iter().map(ToString::to_string).collect();
                write!(out, "available_list={}", amounts.join(","))
            }
            Self::Category(change, name) => {
                write!(out, "categories{}{}", sign(change), name.as_str())
            }
            Self::Country(change, country) => {
                write!(out, "countries_redeemable_in{}{country}", sign(change))
            }
            Self::Hidden => out.write_str("visible=false"),
        }
    }
}

/// Error of a text that assigns nothing.
const UNKNOWN: Invalid = Invalid::new(
    "assignment",
    "state=…, is_orderable=…, availability=…, discount_multiplier=…, minimum_value=…, maximum_value=…, \
     available_list=10,25, categories+=… or -=…, countries_redeemable_in+=… or -=…, or visible=false",
);

impl FromStr for Assignment {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (name, value) = text.split_once('=').ok_or(UNKNOWN)?;
        let (name, change) = match (name.strip_suffix('+'), name.strip_suffix('-')) {
            (Some(name), _) => (name, Some(ListChange::Add)),
            (_, Some(name)) => (name, Some(ListChange::Remove)),
            _ => (name, None),
        };
        Ok(match (name, change) {
            ("state", None) => Self::State(value.parse()?),
            ("is_orderable", None) => Self::IsOrderable(boolean(value)?),
            ("availability", None) => Self::Availability(value.parse()?),
            ("discount_multiplier", None) => Self::Discount(value.parse()?),
            ("minimum_value", None) => Self::Minimum(value.parse()?),
            ("maximum_value", None) => Self::Maximum(value.parse()?),
            ("available_list", None) => Self::Amounts(amounts(value)?),
            ("categories", Some(change)) => Self::Category(change, value.parse()?),
            ("countries_redeemable_in", Some(change)) => Self::Country(change, value.parse()?),
            ("categories" | "countries_redeemable_in", None) => {
                return Err(Invalid::new(
                    "assignment",
                    "`+=` to add a value to the list, or `-=` to remove it",
                ));
            }
            ("visible", None) if value == "false" => Self::Hidden,
            ("visible", None) => {
                return Err(Invalid::new(
                    "assignment",
                    "`visible=false`; `vitrine overrides end` shows products again",
                ));
            }
            _ => return Err(UNKNOWN),
        })
    }
}

fn boolean(text: &str) -> Result<bool, Invalid> {
    text.parse()
        .map_err(|_| Invalid::new("boolean", "`true` or `false`"))
}

fn amounts(text: &str) -> Result<Vec<Amount>, Invalid> {
    let amounts: Result<Vec<Amount>, Invalid> = text.split(',').map(str::parse).collect();
    let mut amounts = amounts?;
    amounts.sort_unstable();
    amounts.dedup();
    Ok(amounts)
}

/// Returns a minimum and a maximum that leave no amount.
#[must_use]
pub fn crossed_amounts(values: &[Assignment]) -> Option<(Amount, Amount)> {
    let minimum = values.iter().filter_map(|value| match value {
        Assignment::Minimum(amount) => Some(*amount),
        _ => None,
    });
    let maximum = values.iter().filter_map(|value| match value {
        Assignment::Maximum(amount) => Some(*amount),
        _ => None,
    });
    let found = (minimum.max()?, maximum.min()?);
    (found.0 > found.1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_written_as_they_are_read() {
        for text in [
            "state=TEMPORARILY_DISABLED",
            "is_orderable=false",
            "availability=stocked",
            "discount_multiplier=0.0125",
            "minimum_value=10.00",
            "maximum_value=10.50",
            "available_list=10.00,25.00",
            "categories+=food & drink = all",
            "categories-=-",
            "countries_redeemable_in-=SE",
            "visible=false",
        ] {
            let read: Assignment = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn other_assignments_are_refused() {
        for text in [
            "",
            "state",
            "state=",
            "state=DEAD",
            "state+=LIVE",
            "visible=true",
            "categories=food",
            "countries_redeemable_in+=Sweden",
            "countries_redeemable_in+=ZZ",
            "available_list=",
            "available_list=10,,20",
            "discount_multiplier=2%",
            "name=other",
        ] {
            assert!(text.parse::<Assignment>().is_err(), "{text}");
        }
    }
}
