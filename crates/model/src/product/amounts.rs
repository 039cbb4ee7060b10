//! Amounts that can be ordered: a range, or a list within it.

use super::values::DenominationType;
use crate::Invalid;
use crate::money::Amount;

/// Minimum and maximum amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AmountRange {
    minimum: Amount,
    maximum: Amount,
}

impl AmountRange {
    /// Returns the range from `minimum` to `maximum`, both included.
    ///
    /// # Errors
    ///
    /// If the minimum is above the maximum.
    pub fn new(minimum: Amount, maximum: Amount) -> Result<Self, Invalid> {
        if minimum > maximum {
            return Err(Invalid::new(
                "amount_order",
                "a minimum_value not above maximum_value",
            ));
        }
        Ok(Self { minimum, maximum })
    }

    /// Returns the minimum.
    #[must_use]
    pub fn minimum(&self) -> Amount {
        self.minimum
    }

    /// Returns the maximum.
    #[must_use]
    pub fn maximum(&self) -> Amount {
        self.maximum
    }

    /// Returns true if `amount` lies within the range.
    #[must_use]
    pub fn contains(&self, amount: Amount) -> bool {
        (self.minimum..=self.maximum).contains(&amount)
    }
}

/// Amounts of a gift card that can be ordered (docs/contract/resources.md#detail-objects).
#[derive(Debug, Clone, PartialEq)]
pub struct Denominations {
    kind: DenominationType,
    range: AmountRange,
    available_list: Option<Vec<Amount>>,
}

impl Denominations {
    /// Returns open denominations: any amount in `range`; `suggestions` are shown as the available list.
    #[must_use]
    pub fn open(range: AmountRange, suggestions: Option<Vec<Amount>>) -> Self {
        Self {
            kind: DenominationType::Open,
            range,
            available_list: suggestions,
        }
    }

    /// Returns fixed denominations: only the amounts of `list`.
    ///
    /// # Errors
    ///
    /// If the list is empty or an amount lies outside `range`.
    pub fn fixed(range: AmountRange, list: Vec<Amount>) -> Result<Self, Invalid> {
        if list.is_empty() {
            return Err(Invalid::new(
                "list_empty",
                "a list of at least one amount, since the denominations are `fixed`",
            ));
        }
        if !list.iter().all(|amount| range.contains(*amount)) {
            return Err(Self::OUTSIDE);
        }
        Ok(Self {
            kind: DenominationType::Fixed,
            range,
            available_list: Some(list),
        })
    }

    /// Error of an amount outside the range.
    pub const OUTSIDE: Invalid = Invalid::new(
        "amount_outside",
        "amounts from minimum_value to maximum_value",
    );

    /// Returns the type, open or fixed.
    #[must_use]
    pub fn kind(&self) -> DenominationType {
        self.kind
    }

    /// Returns minimum and maximum.
    #[must_use]
    pub fn range(&self) -> AmountRange {
        self.range
    }

    /// Returns the listed amounts: all of fixed denominations, suggestions of open ones.
    #[must_use]
    pub fn available_list(&self) -> Option<&[Amount]> {
        self.available_list.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn denominations_outside_their_range_are_refused() {
        assert_eq!(
            AmountRange::new(amount("5"), amount("4")).unwrap_err().rule,
            "amount_order"
        );
        let range = AmountRange::new(amount("5"), amount("10")).unwrap();
        assert_eq!(
            Denominations::fixed(range, vec![]).unwrap_err().rule,
            "list_empty"
        );
        let outside = vec![amount("5"), amount("10.01")];
        assert_eq!(
            Denominations::fixed(range, outside).unwrap_err().rule,
            "amount_outside"
        );
        assert!(Denominations::fixed(range, vec![amount("5"), amount("10")]).is_ok());
    }
}
