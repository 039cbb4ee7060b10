//! Tokens of the changes feed (docs/contract/changes.md#tokens): `c1_` and the base64url of
//!
//! | Part | Bytes |
//! | --- | --- |
//! | flags: 1 if there is a base, 2 if a walk goes on, 4 if the key has an assortment | 1 |
//! | time of issue, in seconds since 1970 | 8 |
//! | digest of the filters; digest of the version, the public URL and what else positions depend on | 8 each |
//! | newest position that the walk showed; the base, if there is one; the walk's first one, if it goes on | 40 or 56 each |
//! | place of the walk, if it goes on: the code of the last product that it looked at, sealed | 81 |
//!
//! A position is the number of the revision (8), its id (16), that of the state of the texts (16) and, if the key has an
//! assortment, that of its version (16). Numbers are little-endian.
//! Tokens aren't signed: a forged one shows nothing that its key couldn't see. But clients can't choose the place: where a search
//! stops would tell of products that the key never saw.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use vitrine_model::changes::{Position, StateId};
use vitrine_model::code::ProductCode;
use vitrine_model::content_hash::ContentHash;
use vitrine_model::geo::Country;
use vitrine_model::money::Currency;
use vitrine_model::product::PayoutTypeName;
use vitrine_model::selector::Selector;

use super::sealed_code::SealedCode;

/// Prefix of tokens, with the version of the format.
const PREFIX: &str = "c1_";

/// Maximum length of a token (docs/contract/changes.md#tokens).
const MAX_LENGTH: usize = 400;

const HAS_BASE: u8 = 1;
const GOES_ON: u8 = 2;
const HAS_ASSORTMENT: u8 = 4;

/// A token: what a copy has, and how far its walk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// Time of issue, in seconds since 1970.
    pub(crate) issued: i64,
    /// Filters that it was made with.
    pub(crate) filter: FilterDigest,
    /// Version, public URL and what else its positions depend on.
    pub(crate) terms: TermsDigest,
    /// Newest position that a page of the walk showed.
    pub(crate) newest: Position,
    /// Position since which changes are told; none while a copy is begun.
    pub(crate) base: Option<Position>,
    /// Position that the walk's first page showed, while the walk goes on.
    pub(crate) first: Option<Position>,
    /// Code of the last product that the walk looked at, while it goes on. The key may never have seen it.
    pub(crate) place: Option<Box<SealedCode>>,
}

/// Digest of filters: equal for filters of the same products, in whatever order they are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FilterDigest([u8; 8]);

impl FilterDigest {
    pub(crate) fn of(filter: &Selector) -> Self {
        let Selector {
            countries,
            categories,
            currencies,
            payout_types,
            codes: _,
            is_orderable,
            // No filter has one.
            states: _,
            name: _,
        } = filter;
        let countries = countries.iter().flatten().map(Country::as_str);
        let categories = categories.iter().flatten().map(String::as_str);
        let currencies = currencies.iter().flatten().map(Currency::as_str);
        let payout_types = payout_types.iter().flatten().map(PayoutTypeName::as_str);
        let filters: [(&str, Vec<&str>); 5] = [
            ("countries", countries.collect()),
            ("categories", categories.collect()),
            ("currencies", currencies.collect()),
            ("payout_types", payout_types.collect()),
            ("codes", filter.named_codes().collect()),
        ];
        let mut text = match is_orderable {
            Some(true) => String::from("orderable"),
            _ => String::from("any"),
        };
        for (name, mut values) in filters {
            values.sort_unstable();
            values.dedup();
            for value in values {
                text.push_str(&format!("\n{name} {} {value}", value.len()));
            }
        }
        Self(first_half(ContentHash::of(text.as_bytes())))
    }
}

/// Digest of what a token's positions depend on beside the store: another one ends the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermsDigest([u8; 8]);

impl TermsDigest {
    /// Returns the digest of an API version, a public URL, the products that are left out because of damage, and the name of
    /// the key's assortment.
    pub(crate) fn of(
        version: &str,
        public_url: &str,
        left_out: ContentHash,
        assortment: Option<&str>,
    ) -> Self {
        let [separator, assortment] = match assortment {
            Some(name) => ["\n", name],
            None => [""; 2],
        };
        let parts = [
            version.as_bytes(),
            b"\n",
            public_url.as_bytes(),
            left_out.as_bytes(),
            separator.as_bytes(),
            assortment.as_bytes(),
        ];
        Self(first_half(ContentHash::of_parts(parts)))
    }
}

fn first_half(hash: ContentHash) -> [u8; 8] {
    let [first, ..] = hash.as_bytes().as_chunks::<8>().0 else {
        return [0; 8];
    };
    *first
}

impl Token {
    /// Returns the age of the token at `now`, in seconds. A token from the future has none.
    pub(crate) fn age_seconds(&self, now: Timestamp) -> i64 {
        now.as_second().saturating_sub(self.issued).max(0)
    }

    /// Returns the token of a walk that goes on after a code.
    pub(crate) fn at(mut self, code: &ProductCode, store_id: &str) -> Self {
        let sealed = SealedCode::new(code, &self.head(0), store_id);
        self.place = Some(Box::new(sealed));
        self
    }

    /// Returns the code after which the walk goes on, if it does.
    ///
    /// # Errors
    ///
    /// If the code was sealed for another token or by another store.
    pub(crate) fn after(&self, store_id: &str) -> Result<Option<ProductCode>, NoToken> {
        let Some(sealed) = &self.place else {
            return Ok(None);
        };
        let code = sealed.open(&self.head(0), store_id);
        code.map(Some).ok_or(NoToken)
    }

    /// Iterates over its positions.
    pub(crate) fn positions(&self) -> impl Iterator<Item = &Position> {
        [Some(&self.newest), self.base.as_ref(), self.first.as_ref()]
            .into_iter()
            .flatten()
    }
}

impl Token {
    /// Returns the bytes before the place of the walk, with this time of issue. The place is sealed for them without the time.
    fn head(&self, issued: i64) -> Vec<u8> {
        let Self {
            issued: _,
            filter,
            terms,
            newest,
            base,
            first,
            place: _,
        } = self;
        let has_base = if base.is_some() { HAS_BASE } else { 0 };
        let goes_on = if first.is_some() { GOES_ON } else { 0 };
        let is_of_assortment = |position: &Position| position.assortment != StateId::default();
        let has_assortment = match self.positions().any(is_of_assortment) {
            true => HAS_ASSORTMENT,
            false => 0,
        };
        let mut bytes = vec![has_base | goes_on | has_assortment];
        bytes.extend(issued.to_le_bytes());
        bytes.extend(filter.0);
        bytes.extend(terms.0);
        for position in [Some(newest), base.as_ref(), first.as_ref()]
            .into_iter()
            .flatten()
        {
            let Position {
                number,
                revision,
                texts,
                assortment,
            } = position;
            bytes.extend(number.to_le_bytes());
            bytes.extend(revision.as_bytes());
            bytes.extend(texts.as_bytes());
            if has_assortment != 0 {
                bytes.extend(assortment.as_bytes());
            }
        }
        bytes
    }
}

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.head(self.issued);
        if let Some(sealed) = &self.place {
            bytes.extend(sealed.parts().concat());
        }
        write!(out, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// Error of a text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no token of the changes feed")]
pub(crate) struct NoToken;

impl FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let encoded = text
            .strip_prefix(PREFIX)
            .filter(|_| text.len() <= MAX_LENGTH)
            .ok_or(NoToken)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| NoToken)?;
        let mut reader = Reader(&bytes);
        let [flags] = reader.take()?;
        if flags & !(HAS_BASE | GOES_ON | HAS_ASSORTMENT) != 0 {
            return Err(NoToken);
        }
        let has_assortment = flags & HAS_ASSORTMENT != 0;
        let goes_on = flags & GOES_ON != 0;
        let issued = i64::from_le_bytes(reader.take()?);
        let (filter, terms) = (FilterDigest(reader.take()?), TermsDigest(reader.take()?));
        let newest = reader.position(has_assortment)?;
        let base = (flags & HAS_BASE != 0)
            .then(|| reader.position(has_assortment))
            .transpose()?;
        let first = goes_on
            .then(|| reader.position(has_assortment))
            .transpose()?;
        let place = match goes_on {
            true => {
                let sealed = SealedCode::from_parts(reader.take()?, reader.take()?);
                Some(Box::new(sealed))
            }
            false => None,
        };
        // Without a walk there is a base.
        if !reader.0.is_empty() || !goes_on && base.is_none() {
            return Err(NoToken);
        }
        Ok(Self {
            issued,
            filter,
            terms,
            newest,
            base,
            first,
            place,
        })
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], NoToken> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(NoToken)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn position(&mut self, has_assortment: bool) -> Result<Position, NoToken> {
        Ok(Position {
            number: u64::from_le_bytes(self.take()?),
            revision: StateId::from_bytes(self.take()?),
            texts: StateId::from_bytes(self.take()?),
            assortment: match has_assortment {
                true => StateId::from_bytes(self.take()?),
                false => StateId::default(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::parameters;

    fn position(number: u8) -> Position {
        Position {
            number: number.into(),
            revision: StateId::from_bytes([number; 16]),
            texts: StateId::from_bytes([!number; 16]),
            assortment: StateId::from_bytes([number / 2; 16]),
        }
    }

    fn token() -> Token {
        let token = Token {
            issued: 1_795_000_000,
            filter: FilterDigest([1; 8]),
            terms: TermsDigest([2; 8]),
            newest: position(3),
            base: Some(position(1)),
            first: Some(position(2)),
            place: None,
        };
        token.at(&"X".repeat(64).parse().unwrap(), "store")
    }

    #[test]
    fn tokens_are_read_back_and_fit_their_length() {
        let longest = token();
        let at_rest = Token {
            first: None,
            place: None,
            ..token()
        };
        let begun = Token {
            base: None,
            ..token()
        };
        let without_assortment = Token {
            newest: position(1),
            base: Some(position(0)),
            first: None,
            place: None,
            ..token()
        };
        for token in [longest, at_rest, begun, without_assortment] {
            let text = token.to_string();
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            assert!(
                text.len() <= MAX_LENGTH && text.bytes().all(is_allowed),
                "{text}"
            );
            assert_eq!(text.parse(), Ok(token));
        }
    }

    #[test]
    fn sealed_place_is_read_back_in_its_token_only() {
        let code: ProductCode = "SECRET".parse().unwrap();
        let sealed = token().at(&code, "store");
        let read: Token = sealed.to_string().parse().unwrap();
        assert_eq!(read.after("store"), Ok(Some(code)));
        assert_eq!(read.after("other"), Err(NoToken));
        let older = Token {
            issued: 0,
            ..read.clone()
        };
        assert_eq!(older.after("store"), read.after("store"));
        let moved = Token {
            base: Some(position(0)),
            ..read
        };
        assert_eq!(moved.after("store"), Err(NoToken));
    }

    #[test]
    fn damaged_tokens_are_refused() {
        let text = token().to_string();
        for end in 0..text.len() {
            assert_eq!(text[..end].parse::<Token>(), Err(NoToken), "{end}");
        }
        let padded = format!("{text}=");
        let longer = format!("{text}{}", "A".repeat(400));
        for other in ["", "c1_", "c2_AAAA", "c1_ä", &padded, &longer, &text[1..]] {
            assert_eq!(other.parse::<Token>(), Err(NoToken), "{other}");
        }
    }

    #[test]
    fn filters_in_another_order_have_one_digest() {
        let filter = |query: &str| parameters::list(Some(query)).unwrap().filter;
        let digest = FilterDigest::of(&filter(
            "countries_redeemable_in=SE&countries_redeemable_in=NO&categories=a&categories=b\
             &currencies=EUR&currencies=SEK&payout_types=a&payout_types=b&codes=A&codes=B",
        ));
        assert_eq!(
            digest,
            FilterDigest::of(&filter(
                "codes=B&codes=A&codes=B&payout_types=b&payout_types=a&currencies=SEK&currencies=EUR\
                 &categories=b&categories=a&countries_redeemable_in=NO&countries_redeemable_in=SE&is_orderable=false",
            ))
        );
        let others = [
            "",
            "categories=a",
            "categories=a&categories=b",
            "categories=a%0Acategories+1+b",
            "payout_types=a",
            "codes=a",
            "codes=A",
            "currencies=EUR",
            "is_orderable=true",
        ];
        let mut digests: Vec<FilterDigest> = others
            .map(|query| FilterDigest::of(&filter(query)))
            .to_vec();
        digests.push(digest);
        for (index, one) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(one), "{index}");
        }
    }
}
