//! Groups of values by which products can be filtered.

use std::borrow::Cow;

use super::fields::label;

/// A group of filter values. Values of a group are alternatives; groups narrow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Group {
    Orderable,
    State,
    PayoutType,
    Country,
    Category,
    Currency,
}

impl Group {
    /// All groups, in the order of the page.
    pub(super) const ALL: [Self; 6] = [
        Self::Orderable,
        Self::State,
        Self::PayoutType,
        Self::Country,
        Self::Category,
        Self::Currency,
    ];

    /// Returns the name of the query parameter.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Self::Orderable => "orderable",
            Self::State => "state",
            Self::PayoutType => "payout_type",
            Self::Country => "country",
            Self::Category => "category",
            Self::Currency => "currency",
        }
    }

    /// Returns the heading on the page.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Orderable => "Can be ordered",
            Self::State => "State",
            Self::PayoutType => "Payout type",
            Self::Country => "Country",
            Self::Category => "Category",
            Self::Currency => "Currency",
        }
    }

    /// Returns the group of a query parameter.
    pub(super) fn of_parameter(name: &str) -> Option<Self> {
        let is_it = |group: &Self| group.parameter() == name;
        Self::ALL.into_iter().find(is_it)
    }

    /// Formats a value for people: names of the contract without underscores.
    pub(super) fn shown(self, value: &str) -> Cow<'_, str> {
        match (self, value) {
            (Self::Orderable, YES) => "Yes".into(),
            (Self::Orderable, NO) => "No".into(),
            (Self::State | Self::PayoutType, word) => label(&word.to_lowercase()).into(),
            (_, other) => other.into(),
        }
    }
}

/// The value of [`Group::Orderable`] for products that can be ordered.
pub(super) const YES: &str = "yes";
/// The value of [`Group::Orderable`] for all other products.
pub(super) const NO: &str = "no";
/// The usual state of products, which isn't shown.
pub(super) const LIVE: &str = "LIVE";
