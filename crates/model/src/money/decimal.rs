//! Decimals: exact, and never binary floats.

use std::cmp::Ordering;
use std::fmt;

/// A decimal that isn't negative: its digits without the point, and in the lowest eight bits the number of those behind
/// the point. Zeros at the end are kept as they were written; comparisons ignore them.
#[derive(Clone, Copy)]
pub struct Decimal(u128);

/// Number of bits for the number of fraction digits.
const SCALE_BITS: u32 = 8;

/// Powers of ten, up to the highest that 128 bits hold.
const POWERS: [u128; u128::MAX.ilog10() as usize + 1] = powers();

const fn powers() -> [u128; u128::MAX.ilog10() as usize + 1] {
    let mut powers = [1; u128::MAX.ilog10() as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
}

/// Returns quotient and rest. Most numbers have 64 bits, whose division costs a fraction.
fn divided(number: u128, by: u128) -> (u128, u128) {
    match (u64::try_from(number), u64::try_from(by)) {
        (Ok(number), Ok(by)) => ((number / by).into(), (number % by).into()),
        _ => (number / by, number % by),
    }
}

/// Returns a number with more digits behind it.
fn read(number: u64, digits: &str) -> u64 {
    let digits = digits.bytes().map(|digit| u64::from(digit - b'0'));
    digits.fold(number, |number, digit| number * 10 + digit)
}

impl Decimal {
    /// Maximum number of digits that are read, without zeros around them.
    pub const MAX_DIGITS: usize = 28;

    /// Returns `units` divided by ten so many times.
    #[must_use]
    pub const fn new(units: u64, scale: u8) -> Self {
        Self((units as u128) << SCALE_BITS | scale as u128)
    }

    /// Reads a plain decimal. Returns `None` for more digits, a sign, an exponent, a missing digit on either side of the
    /// point, and anything but ASCII digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (text, ""),
        };
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let free = Self::MAX_DIGITS.checked_sub(whole.len())?;
        if fraction.trim_end_matches('0').len() > free {
            return None;
        }
        let scale = fraction.len().min(free);
        let fraction = &fraction[..scale];
        // Nearly all numbers fit into 64 bits, which are multiplied in a fraction of the time.
        let digits = match whole.len() + scale < u64::MAX.ilog10() as usize {
            true => u128::from(read(read(0, whole), fraction)),
            false => [whole, fraction].concat().parse().ok()?,
        };
        Some(Self::scaled(digits, u32::try_from(scale).ok()?))
    }

    const fn scaled(digits: u128, scale: u32) -> Self {
        Self(digits << SCALE_BITS | scale as u128)
    }

    const fn digits(self) -> u128 {
        self.0 >> SCALE_BITS
    }

    /// Returns the number of fraction digits.
    const fn scale(self) -> u32 {
        (self.0 & 0xff) as u32
    }

    /// Returns the number without the digits beyond so many fraction digits: never rounded up.
    #[must_use]
    pub fn cut(self, scale: u32) -> Self {
        match self.scale().checked_sub(scale) {
            None | Some(0) => self,
            Some(beyond) => Self::scaled(divided(self.digits(), POWERS[beyond as usize]).0, scale),
        }
    }

    /// Returns the number with so many fraction digits at least, and no zeros beyond them.
    #[must_use]
    pub fn trimmed(self, least: u32) -> Self {
        let (mut digits, mut scale) = (self.digits(), self.scale());
        while scale > least
            && let (tenth, 0) = divided(digits, 10)
        {
            (digits, scale) = (tenth, scale - 1);
        }
        let missing = least.saturating_sub(scale);
        Self::scaled(digits * POWERS[missing as usize], scale + missing)
    }

    /// Returns the number times 100, with two fraction digits at least, and no zeros beyond them.
    #[must_use]
    pub fn percent(self) -> Self {
        let Self(shifted) = self.trimmed(4);
        Self(shifted - 2)
    }

    /// Returns the exact product, cut at so many fraction digits; `None` if it is beyond all amounts.
    pub(crate) fn times(self, factor: Self, scale: u32) -> Option<Self> {
        let all = self.scale() + factor.scale();
        let beyond = all.saturating_sub(scale);
        let digits = self.digits().checked_mul(factor.digits())?;
        let (digits, _) = divided(digits, *POWERS.get(beyond as usize)?);
        (digits.leading_zeros() >= SCALE_BITS).then(|| Self::scaled(digits, all - beyond))
    }

    /// Returns the number of units of `10^-scale`, cut.
    #[must_use]
    pub fn units(self, scale: u32) -> u64 {
        u64::try_from(self.cut(scale).trimmed(scale).digits()).unwrap_or(u64::MAX)
    }

    /// Returns true if one number is at least ten times the other, as when a point was lost. Any other number is tenfold
    /// zero.
    #[must_use]
    pub fn is_tenfold(self, other: Self) -> bool {
        let (less, more) = (self.min(other), self.max(other));
        less != more && more >= Self::scaled(less.digits() * 10, less.scale())
    }

    /// Returns the number as it is encoded.
    pub(crate) const fn bits(self) -> u128 {
        self.0
    }

    /// Returns an encoded number; `None` if it can't be one.
    pub(crate) fn from_bits(bits: u128) -> Option<Self> {
        let number = Self(bits);
        let is_scaled = number.scale() as usize <= Self::MAX_DIGITS;
        (is_scaled && number.digits() < POWERS[Self::MAX_DIGITS]).then_some(number)
    }

    /// Returns the text, with all fraction digits.
    #[must_use]
    pub fn text(self) -> DecimalText {
        let mut bytes = [b'0'; DecimalText::MAX_BYTES];
        let (mut rest, scale) = (self.digits(), self.scale() as usize);
        let mut start = bytes.len();
        let point = start - scale;
        let whole = point - usize::from(scale > 0);
        while rest > 0 || start >= whole {
            start -= 1;
            if scale > 0 && start == whole {
                bytes[start] = b'.';
                continue;
            }
            let (tenth, digit) = divided(rest, 10);
            bytes[start] += u8::try_from(digit).unwrap_or_default();
            rest = tenth;
        }
        DecimalText { bytes, start }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale() == other.scale() {
            return self.0.cmp(&other.0);
        }
        let scale = self.scale().max(other.scale());
        let aligned = |number: &Self| {
            let zeros = POWERS[(scale - number.scale()) as usize];
            // Only one of the two gets zeros. If it doesn't fit, the other is less.
            number.digits().saturating_mul(zeros)
        };
        aligned(self).cmp(&aligned(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text().as_str())
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Text of a decimal, such as `25.50`.
#[derive(Debug, Clone, Copy)]
pub struct DecimalText {
    bytes: [u8; Self::MAX_BYTES],
    start: usize,
}

impl DecimalText {
    const MAX_BYTES: usize = u128::MAX.ilog10() as usize + ".0".len();

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[self.start..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Cuts a decimal as a person does with a pencil: at `digits` digits, without zeros beyond the second.
    fn by_hand(text: &str, digits: usize) -> String {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mut fraction: String = fraction.chars().take(digits).collect();
        while fraction.len() > 2 && fraction.ends_with('0') {
            fraction.pop();
        }
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        format!("{whole}.{fraction:0<2}")
    }

    proptest! {
        #[test]
        fn decimals_are_cut_as_by_hand(text in r"0{0,2}[0-9]{1,12}(\.[0-9]{1,16})?") {
            let number = Decimal::parse(&text).expect("a decimal");
            for digits in [2, 6, 28] {
                let cut = number.cut(digits).trimmed(2);
                prop_assert_eq!(cut.to_string(), by_hand(&text, digits as usize));
                prop_assert!(cut <= number);
            }
            let leading = text.trim_start_matches('0');
            let written = match leading.starts_with(|first: char| first.is_ascii_digit()) {
                true => leading.to_owned(),
                false => format!("0{leading}"),
            };
            prop_assert_eq!(number.to_string(), written);
            prop_assert_eq!(Decimal::from_bits(number.bits()), Some(number));
        }

        #[test]
        fn decimals_compare_as_numbers_do(
            [one, other] in prop::array::uniform2(r"[0-9]{1,3}(\.[0-9]{1,3})?"),
        ) {
            let [thousandths, others] = [&one, &other].map(|text| {
                let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
                format!("{whole}{fraction:0<3}").parse::<u64>().expect("a number")
            });
            let [one, other] = [one, other].map(|text| Decimal::parse(&text).expect("a decimal"));
            prop_assert_eq!(one.cmp(&other), thousandths.cmp(&others));
            let (less, more) = (thousandths.min(others), thousandths.max(others));
            prop_assert_eq!(one.is_tenfold(other), less != more && more >= 10 * less);
            let product = one.times(other, 3).expect("a product");
            prop_assert_eq!(product.units(3), thousandths * others / 1000);
        }
    }

    #[test]
    fn decimals_beyond_28_digits_are_refused() {
        let longest = "9".repeat(Decimal::MAX_DIGITS);
        for text in [
            longest.clone(),
            format!("0.{longest}"),
            format!("{}.5", &longest[1..]),
            format!("000.{longest}0000"),
        ] {
            assert!(Decimal::parse(&text).is_some(), "{text}");
        }
        for text in [
            format!("{longest}9"),
            format!("{longest}.5"),
            format!("0.{}1", "0".repeat(28)),
        ] {
            assert!(Decimal::parse(&text).is_none(), "{text}");
        }
        let small = Decimal::parse(&format!("0.{longest}")).expect("a decimal");
        let large = Decimal::parse(&longest).expect("a decimal");
        assert!(small < large && large.is_tenfold(small));
        assert_eq!(small.to_string(), format!("0.{longest}"));
        assert_eq!(large.times(large, 6), None);
    }

    #[test]
    fn anything_but_plain_digits_is_refused() {
        for wrong in [
            "", ".", "5.", ".5", "-1", "+1", "1e2", "1,5", " 1", "٣", "1.2.3",
        ] {
            assert!(Decimal::parse(wrong).is_none(), "{wrong}");
        }
    }
}
