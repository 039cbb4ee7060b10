//! Countries by their ISO 3166-1 codes, and locales.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// The ISO 3166-1 alpha-2 codes officially assigned, and `XK` (Kosovo), which CLDR and the
/// payment networks use though ISO leaves it to its users.
const ISO_3166: &str = "\
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS \
BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE \
EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM \
HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC \
LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA \
NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW \
SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO \
TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW";

/// Returns a code's number among all pairs of capitals.
const fn index(first: u8, second: u8) -> usize {
    (first - b'A') as usize * 26 + (second - b'A') as usize
}

/// Returns a table that is true for each assigned code, by the code's number. Evaluated by the compiler.
const fn assigned() -> [bool; 26 * 26] {
    let codes = ISO_3166.as_bytes();
    let mut assigned = [false; 26 * 26];
    let mut at = 0;
    while at < codes.len() {
        assigned[index(codes[at], codes[at + 1])] = true;
        // Two capitals and a blank.
        at += 3;
    }
    assigned
}

/// Codes that are taken for those of countries, and the countries that are meant.
const MISTAKEN: [(&str, &str); 3] = [("UK", "GB"), ("EN", "GB"), ("EL", "GR")];

/// The code of a country that ISO 3166-1 (or CLDR, for `XK`) has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

impl Country {
    /// Returns the code, two capitals.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Number of well-formed codes.
    pub(crate) const NUMBERS: u32 = 26 * 26;

    /// Returns the code's number among all well-formed codes.
    pub(crate) fn number(self) -> u32 {
        index(self.0[0], self.0[1]) as u32
    }

    /// Returns the country of a [`number`](Self::number).
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        let capital = |place: u32| u8::try_from(place).ok().map(|place| b'A' + place);
        let is_one = number < Self::NUMBERS;
        is_one.then(|| Some(Self([capital(number / 26)?, capital(number % 26)?])))?
    }

    /// Returns the country that a faulty code probably means.
    #[must_use]
    pub fn meant(text: &str) -> Option<Self> {
        let text = text.trim();
        let capitals = (text.len() == 2).then(|| text.to_ascii_uppercase())?;
        let mistaken = MISTAKEN.iter().find(|(wrong, _)| *wrong == capitals);
        mistaken.map_or(&*capitals, |(_, right)| right).parse().ok()
    }
}

impl FromStr for Country {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const ASSIGNED: [bool; 26 * 26] = assigned();
        match *text.as_bytes() {
            [first @ b'A'..=b'Z', second @ b'A'..=b'Z'] if ASSIGNED[index(first, second)] => {
                Ok(Self([first, second]))
            }
            _ => Err(Invalid::new(
                "country",
                "the ISO 3166-1 alpha-2 code of a country, two capitals such as `GB`",
            )),
        }
    }
}

impl fmt::Display for Country {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The locale of a product's texts, `^[a-z]{2}_[A-Z]{2}$`, such as `en_GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Locale([u8; 5]);

impl Locale {
    /// Returns the locale as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Locale {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match *text.as_bytes() {
            [a, b, b'_', c, d]
                if a.is_ascii_lowercase()
                    && b.is_ascii_lowercase()
                    && c.is_ascii_uppercase()
                    && d.is_ascii_uppercase() =>
            {
                Ok(Self([a, b, b'_', c, d]))
            }
            _ => Err(Invalid::new(
                "locale",
                "a locale of the form language_COUNTRY, such as `en_GB`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_no_country_has_are_refused() {
        assert_eq!(ISO_3166.split(' ').count(), 250);
        for code in ["GB", "US", "XK", "AX"] {
            assert_eq!(code.parse::<Country>().unwrap().as_str(), code);
        }
        for code in ["UK", "EU", "ZZ", "AN", "gb", "GBR", "", "Ä", "U1"] {
            assert!(code.parse::<Country>().is_err(), "{code}");
        }
    }

    #[test]
    fn mistaken_codes_have_the_country_that_is_meant() {
        for (code, expected) in [
            ("UK", Some("GB")),
            ("EN", Some("GB")),
            ("uk", Some("GB")),
            ("se", Some("SE")),
            ("XX", None),
            ("GBR", None),
            ("ſs", None),
        ] {
            let meant = Country::meant(code);
            assert_eq!(meant.as_ref().map(Country::as_str), expected, "{code}");
        }
    }

    #[test]
    fn locales_other_than_language_and_country_are_refused() {
        assert_eq!("en_GB".parse::<Locale>().unwrap().as_str(), "en_GB");
        for wrong in ["en-GB", "EN_gb", "en", "en_GBR", ""] {
            assert!(wrong.parse::<Locale>().is_err(), "{wrong}");
        }
    }
}
