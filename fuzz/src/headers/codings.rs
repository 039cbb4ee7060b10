//! Naive parser of `Accept-Encoding` (RFC 9110, section 12.5.3).

use std::io::Read;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

/// Weights of `Accept-Encoding`, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Weights(Vec<(String, u16)>);

impl Weights {
    /// Returns the least weight of these names, else that of `*`, which includes only gzip and plain bodies.
    fn of(&self, names: &[&str]) -> Option<u16> {
        let least = |names: &[&str]| {
            let named = self
                .0
                .iter()
                .filter(|(name, _)| names.contains(&name.as_str()));
            named.map(|(_, weight)| *weight).min()
        };
        least(names).or_else(|| least(&["*"]))
    }

    fn coding(&self, coding: &str) -> Option<u16> {
        match coding {
            "gzip" => self.of(&["gzip", "x-gzip"]),
            other => {
                let named = self.0.iter().filter(|(name, _)| name == other);
                named.map(|(_, weight)| *weight).min()
            }
        }
    }

    /// Returns the weight of a plain body.
    pub(super) fn plain(&self) -> Option<u16> {
        self.of(&["identity"])
    }
}

/// Returns the weights of all members, and whether each is well-formed.
pub(super) fn weights(headers: &HeaderMap) -> (Weights, bool) {
    let mut weights = Weights::default();
    let mut is_sound = true;
    for value in headers.get_all(ACCEPT_ENCODING) {
        for member in value.as_bytes().split(|byte| *byte == b',') {
            let member = String::from_utf8_lossy(member).into_owned();
            let member = member.trim_matches([' ', '\t']);
            if member.is_empty() {
                continue;
            }
            match weight(member) {
                Some(weight) => weights.0.push(weight),
                None => is_sound = false,
            }
        }
    }
    (weights, is_sound)
}

fn weight(member: &str) -> Option<(String, u16)> {
    let (name, weight) = match member.split_once(';') {
        None => (member, 1_000),
        Some((name, parameter)) => {
            let parameter = parameter.trim_matches([' ', '\t']);
            let value = parameter.strip_prefix(['q', 'Q'])?.strip_prefix('=')?;
            let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
            let is_number = fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
            let thousandths: u16 = format!("{fraction:0<3}").parse().ok()?;
            let weight = match whole {
                "0" if is_number => thousandths,
                "1" if is_number && thousandths == 0 => 1_000,
                _ => return None,
            };
            (name.trim_end_matches([' ', '\t']), weight)
        }
    };
    let in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_token = !name.is_empty() && name.bytes().all(in_token);
    is_token.then(|| (name.to_ascii_lowercase(), weight))
}

/// Checks that the coding of a body of this length is accepted, and that the client prefers no other one.
pub(super) fn check_coding(
    headers: &HeaderMap,
    answered: &HeaderMap,
    plain_bytes: usize,
    about: &str,
) {
    let (weights, is_sound) = weights(headers);
    if !is_sound {
        return;
    }
    let named = answered.get(CONTENT_ENCODING);
    let coding = named.map_or("identity", |value| value.to_str().expect("text"));
    let weight = |coding: &str| weights.coding(coding);
    let ours = ["zstd", "gzip", "br"];
    let best = ours.into_iter().filter_map(weight).max().unwrap_or(0);
    let plain = weights.plain();
    if coding == "identity" {
        let nothing_better = best == 0 || plain.is_some_and(|plain| plain > best);
        let is_short = plain_bytes < 1_000 && plain != Some(0);
        let refused_by_all = plain == Some(0) && best == 0;
        assert!(nothing_better || is_short || refused_by_all, "{about}");
        return;
    }
    assert!(ours.contains(&coding), "{coding} for {about}");
    match weight(coding) {
        // It wasn't named, but plain bodies were refused.
        None => assert!(coding == "gzip" && plain == Some(0), "{coding} for {about}"),
        Some(0) => panic!("{coding} for {about}"),
        Some(weight) => {
            assert_eq!(weight, best, "{coding} for {about}");
            assert!(
                plain.is_none_or(|plain| plain <= weight),
                "{coding} for {about}"
            );
        }
    }
}

/// Decodes a body.
pub(super) fn decoded(answered: &HeaderMap, body: &Bytes) -> Bytes {
    let mut plain = Vec::new();
    let coding = answered
        .get(CONTENT_ENCODING)
        .map(|value| value.to_str().expect("text"));
    let mut decoder: Box<dyn Read> = match coding {
        None => return body.clone(),
        Some("gzip") => Box::new(flate2::read::GzDecoder::new(&body[..])),
        Some("zstd") => Box::new(zstd::Decoder::new(&body[..]).expect("memory")),
        Some("br") => Box::new(brotli::Decompressor::new(&body[..], 4_096)),
        Some(other) => panic!("the coding {other}"),
    };
    decoder.read_to_end(&mut plain).expect("a sound body");
    plain.into()
}
