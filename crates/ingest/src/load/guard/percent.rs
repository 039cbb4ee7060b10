//! Shares of the live catalog, in percent.

use std::fmt;
use std::str::FromStr;

use vitrine_model::money::Decimal;

/// A share in percent, from 0 to 100, with at most two fraction digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(Decimal);

impl Percent {
    /// A share of so many whole percent.
    pub(super) const fn whole(percent: u64) -> Self {
        Self(Decimal::new(percent, 0))
    }

    /// Returns true if `count` of `all` is more than this share.
    pub(super) fn is_exceeded(self, count: u64, all: u64) -> bool {
        u128::from(count) * 10_000 > u128::from(all) * u128::from(self.0.units(2))
    }

    /// The share of `count` in `all`, rounded up, so that allowing it allows them.
    pub(super) fn of(count: u64, all: u64) -> Self {
        let share = (u128::from(count) * 10_000).div_ceil(u128::from(all.max(1)));
        Self(Decimal::new(
            u64::try_from(share.min(10_000)).unwrap_or(10_000),
            2,
        ))
    }
}

impl FromStr for Percent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = Decimal::parse(text.strip_suffix('%').unwrap_or(text));
        let is_share = |read: &Decimal| *read == read.cut(2) && *read <= Self::whole(100).0;
        number
            .filter(is_share)
            .map(Self)
            .ok_or("expected a share from 0% to 100%, such as 35% or 2.5%")
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.cut(0);
        let shown = if whole == self.0 {
            whole
        } else {
            self.0.trimmed(2)
        };
        write!(out, "{shown}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parsed_and_formatted() {
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
    fn limit_is_exceeded_only_above_it() {
        let limit: Percent = "20%".parse().unwrap();
        assert!(!limit.is_exceeded(20, 100));
        assert!(limit.is_exceeded(21, 100));
        assert!(!limit.is_exceeded(0, 0));
        let share = Percent::of(1, 3);
        assert!(!share.is_exceeded(1, 3));
        assert_eq!(share.to_string(), "33.34%");
    }
}
