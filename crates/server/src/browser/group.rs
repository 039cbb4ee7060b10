//! Groups of values by which the grid can be filtered.

use std::borrow::Cow;

use super::fields::label;

/// A group of filter values: alternatives of each other, while groups narrow each other.
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
    /// All, in the order of the page.
    pub(super) const ALL: [Self; 6] = [
        Self::Orderable,
        Self::State,
        Self::PayoutType,
        Self::Country,
        Self::Category,
        Self::Currency,
    ];

    /// The parameter's name in addresses.
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

    /// The heading on the page.
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

    /// The group of a parameter.
    pub(super) fn of_parameter(name: &str) -> Option<Self> {
        let is_it = |group: &Self| group.parameter() == name;
        Self::ALL.into_iter().find(is_it)
    }

    /// A value as it is read: words of the contract without their underscores.
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
/// The other one.
pub(super) const NO: &str = "no";
/// The state of products of which nothing is to be said.
pub(super) const LIVE: &str = "LIVE";
