//! Negotiation of the content coding: the client's weights (RFC 9110, section 12.5.3), then the server's preference.

use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};

/// Content coding of a body, in the order of the server's preference: zstd costs least and is small, all clients
/// understand gzip, brotli costs many times more and saves little (see `docs/decisions/0006-compression.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
    /// Brotli (RFC 7932).
    Brotli,
    /// Plain.
    Identity,
}

impl Coding {
    /// All codings, the preferred one first.
    pub const ALL: [Self; 4] = [Self::Zstd, Self::Gzip, Self::Brotli, Self::Identity];

    /// Returns the value of `Content-Encoding`; plain bodies have none.
    #[must_use]
    pub const fn header_value(self) -> Option<HeaderValue> {
        match self {
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
            Self::Brotli => Some(HeaderValue::from_static("br")),
            Self::Identity => None,
        }
    }

    /// Returns true if `*` includes this coding. Clients that send `*` can't always decode zstd or Brotli, so those
    /// must be named (docs/contract/caching.md#codings).
    const fn is_in_wildcard(self) -> bool {
        matches!(self, Self::Gzip | Self::Identity)
    }

    /// Returns the coding of a name in a request.
    fn named(name: &[u8]) -> Option<Self> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match () {
            () if is("zstd") => Some(Self::Zstd),
            () if is("gzip") || is("x-gzip") => Some(Self::Gzip),
            () if is("br") => Some(Self::Brotli),
            () if is("identity") => Some(Self::Identity),
            () => None,
        }
    }
}

/// Accepted codings of a client: a weight for each, in the order of [`Coding::ALL`]. 0 refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted([u16; 4]);

/// Weight of an unnamed plain body: accepted, but less than all named codings. Named weights are doubled, to leave room
/// below.
const UNNAMED_IDENTITY: u16 = 1;

impl Accepted {
    /// Parses `Accept-Encoding`. Without it, or with nothing readable in it, only plain bodies are accepted. Of a coding
    /// that is named more than once, the least weight counts.
    #[must_use]
    pub fn by(headers: &HeaderMap) -> Self {
        let mut parsed = ParsedWeights::default();
        for value in headers.get_all(ACCEPT_ENCODING) {
            value
                .as_bytes()
                .split(|byte| *byte == b',')
                .filter_map(member)
                .for_each(|(name, weight)| parsed.note(name, weight));
        }
        parsed.accepted()
    }

    /// Returns true if the body may be sent plain.
    #[must_use]
    pub fn takes_plain(self) -> bool {
        self.weight(Coding::Identity) > 0
    }

    /// Returns the coding to send. If the client accepts none, that is the plain body, which is of more use than an
    /// error.
    #[must_use]
    pub fn best(self) -> Coding {
        let mut best = Coding::Identity;
        for coding in Coding::ALL.into_iter().rev() {
            if self.weight(coding) >= self.weight(best) && self.weight(coding) > 0 {
                best = coding;
            }
        }
        best
    }

    fn weight(self, coding: Coding) -> u16 {
        self.0[coding as usize]
    }
}

/// Weights of a request's list.
#[derive(Default)]
struct ParsedWeights {
    named: [Option<u16>; 4],
    /// Weight of `*`.
    others: Option<u16>,
    /// True if the client accepts a coding that the server doesn't have.
    takes_unknown: bool,
}

impl ParsedWeights {
    fn note(&mut self, name: &[u8], weight: u16) {
        let place = match Coding::named(name) {
            Some(coding) => &mut self.named[coding as usize],
            None if name == b"*" => &mut self.others,
            None => {
                self.takes_unknown |= weight > 0;
                return;
            }
        };
        *place = Some(place.map_or(weight, |before| before.min(weight)));
    }

    fn accepted(&self) -> Accepted {
        let mut weights = [0; 4];
        for coding in Coding::ALL {
            let named = self.named[coding as usize];
            let wildcard = self.others.filter(|_| coding.is_in_wildcard());
            weights[coding as usize] = 2 * named.or(wildcard).unwrap_or(0);
        }
        let identity = Coding::Identity as usize;
        if self.named[identity].or(self.others).is_none() {
            weights[identity] = UNNAMED_IDENTITY;
        }
        // Plain is refused and nothing else is named: such a client is assumed to understand gzip.
        let gzip = Coding::Gzip as usize;
        let is_gzip_open = self.named[gzip].or(self.others).is_none();
        if weights == [0; 4] && is_gzip_open && !self.takes_unknown {
            weights[gzip] = 1;
        }
        Accepted(weights)
    }
}

/// Parses a member of the list into name and weight in thousandths; `None` if it is malformed.
fn member(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = member.splitn(2, |byte| *byte == b';');
    let name = parts.next()?.trim_ascii();
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return None;
    }
    match parts.next() {
        None => Some((name, 1000)),
        Some(parameter) => match parameter.trim_ascii() {
            [b'q' | b'Q', b'=', value @ ..] => Some((name, thousandths(value)?)),
            _ => None,
        },
    }
}

/// Parses a `qvalue`, 0 to 1 with up to three decimals, into thousandths.
pub(crate) fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, digits) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', digits @ ..] => (whole, digits),
        _ => return None,
    };
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |index: usize| digits.get(index).map_or(0, |digit| u16::from(digit - b'0'));
    let fraction = digit(0) * 100 + digit(1) * 10 + digit(2);
    match whole {
        b'0' => Some(fraction),
        b'1' if fraction == 0 => Some(1000),
        _ => None,
    }
}

/// Returns true for a character of a token (RFC 9110, section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepted<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Accepted {
        let mut headers = HeaderMap::new();
        for value in values {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(ACCEPT_ENCODING, value);
            }
        }
        Accepted::by(&headers)
    }

    #[test]
    fn malformed_members_are_skipped() {
        for (member, weight) in [
            ("br", Some(1000)),
            (" br ", Some(1000)),
            ("br;q=1", Some(1000)),
            ("br ; Q=1.000", Some(1000)),
            ("br;q=0.", Some(0)),
            ("br;q=0.5", Some(500)),
            ("br;q=0.05", Some(50)),
            ("br;q=0.001 ", Some(1)),
            ("", None),
            (";q=1", None),
            ("b r", None),
            ("br;", None),
            ("br;q", None),
            ("br;q=", None),
            ("br;q =1", None),
            ("br;q= 1", None),
            ("br;q=1.001", None),
            ("br;q=0.0001", None),
            ("br;q=2", None),
            ("br;q=-1", None),
            ("br;q=.5", None),
            ("br;q=1e0", None),
            ("br;q=1;q=1", None),
            ("br;level=1", None),
            ("\"br\"", None),
        ] {
            let read = super::member(member.as_bytes()).map(|(_, weight)| weight);
            assert_eq!(read, weight, "{member}");
        }
    }

    #[test]
    fn wildcard_means_gzip_and_never_zstd_or_brotli() {
        for (header, best) in [
            ("*", Coding::Gzip),
            ("gzip, *", Coding::Gzip),
            ("identity;q=0, *", Coding::Gzip),
            ("deflate, *;q=0.5", Coding::Gzip),
            ("br, *;q=0.1", Coding::Brotli),
            ("gzip;q=0.5, *;q=0.1, zstd", Coding::Zstd),
            ("gzip;q=0, *", Coding::Identity),
            ("gzip;q=0, identity;q=0, *", Coding::Identity),
            ("identity;q=0.5, *", Coding::Gzip),
        ] {
            assert_eq!(accepted([header.as_bytes()]).best(), best, "{header}");
        }
    }

    #[test]
    fn refused_plain_body_without_alternative_is_sent_in_gzip() {
        for (header, best) in [
            ("identity;q=0", Coding::Gzip),
            ("identity;q=0, deflate;q=0", Coding::Gzip),
            ("identity;q=0, deflate", Coding::Identity),
            ("identity;q=0, deflate, lzma;q=0", Coding::Identity),
            ("identity;q=0, lzma;q=0, deflate;q=0.001", Coding::Identity),
            ("identity;q=0, gzip;q=0", Coding::Identity),
        ] {
            assert_eq!(accepted([header.as_bytes()]).best(), best, "{header}");
        }
    }

    /// A generated member of a list, with its text.
    #[derive(Debug, Clone)]
    struct Made {
        name: &'static str,
        weight: Option<u16>,
        text: String,
    }

    fn made() -> impl Strategy<Value = Made> {
        let names = [
            "zstd", "gzip", "x-gzip", "br", "identity", "*", "deflate", "junk!",
        ];
        let name = proptest::sample::select(names.to_vec());
        let weights = [None, Some(0), Some(1), Some(500), Some(999), Some(1000)];
        let weight = proptest::sample::select(weights.to_vec());
        let blank = proptest::sample::select(vec!["", " ", "\t ", "  "]);
        (name, weight, blank, any::<bool>()).prop_map(|(name, weight, blank, is_upper)| {
            let mut text = format!("{blank}{name}{blank}");
            match weight {
                Some(1000) => text += &format!(";{blank}q=1.0"),
                Some(weight) => text += &format!(";{blank}q=0.{weight:03}{blank}"),
                None => {}
            }
            if is_upper {
                text = text.to_uppercase();
            }
            Made { name, weight, text }
        })
    }

    /// Reference implementation: the rules of RFC 9110 one by one.
    fn model(list: &[Made]) -> (Coding, bool) {
        let weight_of = |names: &[&str]| {
            let named = list.iter().filter(|made| names.contains(&made.name));
            named.map(|made| made.weight.unwrap_or(1000)).min()
        };
        let star = weight_of(&["*"]);
        let weight = |names: &[&str]| weight_of(names).or(star);
        let plain = weight(&["identity"]);
        let choices = [
            (Coding::Zstd, weight_of(&["zstd"])),
            (Coding::Gzip, weight(&["gzip", "x-gzip"])),
            (Coding::Brotli, weight_of(&["br"])),
            (Coding::Identity, plain),
        ];
        let liked = choices.iter().filter_map(|(_, weight)| *weight).max();
        let takes_plain = plain != Some(0);
        if let Some(most @ 1..) = liked {
            let best = choices.iter().find(|(_, weight)| *weight == Some(most));
            return (best.unwrap().0, takes_plain);
        }
        let is_gzip_refused = weight(&["gzip", "x-gzip"]).is_some();
        let takes_other = ["deflate", "junk!"].iter().any(|name| {
            list.iter()
                .any(|made| made.name == *name && made.weight != Some(0))
        });
        if takes_plain || is_gzip_refused || takes_other {
            (Coding::Identity, takes_plain)
        } else {
            (Coding::Gzip, false)
        }
    }

    proptest! {
        #[test]
        fn best_coding_equals_that_of_the_reference(
            lines in proptest::collection::vec(proptest::collection::vec(made(), 0..5), 0..3),
        ) {
            let texts: Vec<String> = lines
                .iter()
                .map(|line| {
                    let texts: Vec<&str> = line.iter().map(|made| made.text.as_str()).collect();
                    texts.join(",")
                })
                .collect();
            let accepted = accepted(texts.iter().map(String::as_bytes));
            let (best, takes_plain) = model(&lines.concat());
            prop_assert_eq!(accepted.best(), best, "{:?}", texts);
            prop_assert_eq!(accepted.takes_plain(), takes_plain, "{:?}", texts);
        }

        #[test]
        fn best_coding_of_arbitrary_headers_has_the_highest_weight(
            lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..3),
            near in "[gzipbrstd*;q=., 019\t]{0,40}",
        ) {
            let lines = lines.iter().map(Vec::as_slice).chain([near.as_bytes()]);
            let accepted = accepted(lines);
            let best = accepted.weight(accepted.best());
            let is_best = Coding::ALL.iter().all(|coding| accepted.weight(*coding) <= best);
            prop_assert!(is_best, "{:?}", accepted);
        }
    }
}
