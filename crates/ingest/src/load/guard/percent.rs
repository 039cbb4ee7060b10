//! Shares of the live catalog, in percent.

use std::fmt;
use std::str::FromStr;

/// A share, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// A share of so many whole percent.
    pub(super) const fn whole(percent: u32) -> Self {
        Self(percent * 100)
    }

    /// Returns true if `count` of `all` is more than this share.
    pub(super) fn is_exceeded(self, count: u64, all: u64) -> bool {
        u128::from(count) * 10_000 > u128::from(all) * u128::from(self.0)
    }

    /// The share of `count` in `all`, rounded up, so that allowing it allows them.
    pub(super) fn of(count: u64, all: u64) -> Self {
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
