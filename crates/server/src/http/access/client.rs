//! Client addresses: that of the connection, or the one that a trusted proxy names.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use serde::{Serialize, Serializer};

use crate::http::request::encoding::is_token;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Peer of a connection, or the client behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A host with this address.
    Address(IpAddr),
    /// A process on this host, over a Unix socket.
    Unix,
}

impl From<Option<IpAddr>> for Peer {
    /// Peers without an address came over a Unix socket.
    fn from(address: Option<IpAddr>) -> Self {
        address.map_or(Self::Unix, Self::Address)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(out),
            Self::Unix => out.write_str("unix"),
        }
    }
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the network that counts as one address: of IPv6 a /64, which one customer has whole.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        IpAddr::V4(address) => address.into(),
    }
}

/// Proxy that is trusted to name its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedPeer {
    /// All hosts of this network.
    Network(IpNet),
    /// All peers over a Unix socket.
    Unix,
}

impl FromStr for TrustedPeer {
    type Err = String;

    /// Reads `unix`, an address or a network such as `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let network = text.parse::<IpNet>().ok();
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        network.or_else(address).map(Self::Network).ok_or_else(|| {
            "expected a network such as 10.0.0.0/8, an address, or `unix`".to_owned()
        })
    }
}

/// Header in which trusted proxies name their clients. Only one is read: a proxy writes one and passes the other on as
/// the client sent it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For: 192.0.2.1, 10.0.0.3`
    #[default]
    XForwardedFor,
    /// `Forwarded: for=192.0.2.1;proto=https, for="[2001:db8::1]"` (RFC 7239)
    Forwarded,
}

/// Trusted proxies and their header. By default none is trusted.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// Trusted proxies.
    pub trusted: Vec<TrustedPeer>,
    /// Header with the client's address.
    pub header: ForwardedHeader,
}

impl Proxies {
    /// Returns the client of a request: the nearest peer that isn't a trusted proxy. Proxies append to the header, so
    /// anyone may have written the entries before the first that isn't trusted.
    #[must_use]
    pub fn client(&self, peer: Peer, headers: &HeaderMap) -> Peer {
        if !self.trusts(peer) {
            return peer;
        }
        let found = match self.header {
            ForwardedHeader::XForwardedFor => self.nearest(
                lines_backwards(headers, &X_FORWARDED_FOR)
                    .flat_map(|line| line.unwrap_or("?").rsplit(','))
                    .map(|hop| address(hop.trim())),
            ),
            ForwardedHeader::Forwarded => self.nearest(
                lines_backwards(headers, &FORWARDED)
                    .flat_map(|line| forwarded_for(line.unwrap_or("?")).into_iter().rev()),
            ),
        };
        found.map_or(peer, Peer::Address)
    }

    /// Returns the first of these that isn't trusted, else the last; `None` if one on the way is malformed.
    fn nearest(&self, hops: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut last = None;
        for hop in hops {
            let hop = hop?;
            last = Some(hop);
            if !self.trusts(Peer::Address(hop)) {
                break;
            }
        }
        last
    }

    /// Returns true if a peer is a trusted proxy.
    #[must_use]
    pub fn trusts(&self, peer: Peer) -> bool {
        let is_peer = |trusted: &TrustedPeer| match (trusted, peer) {
            (TrustedPeer::Unix, Peer::Unix) => true,
            (TrustedPeer::Network(network), Peer::Address(address)) => {
                network.contains(&address) || network.contains(&address.to_canonical())
            }
            _ => false,
        };
        self.trusted.iter().any(is_peer)
    }
}

/// Returns the lines of a header from last to first; `None` for one that isn't text.
fn lines_backwards<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Option<&'h str>> {
    let lines = headers.get_all(name).iter();
    lines.rev().map(|line| line.to_str().ok())
}

/// Parses an address as proxies write it: with brackets and a port, or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        // An IPv4 address and a port; IPv6 has more colons.
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

/// Returns the `for` of each element of a line of `Forwarded`, in order; `None` if it names no address. A malformed line
/// counts as one element that names none.
fn forwarded_for(line: &str) -> Vec<Option<IpAddr>> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut element = None;
    loop {
        let Some((name, value, after)) = pair(rest) else {
            return vec![None];
        };
        if name.eq_ignore_ascii_case("for") {
            element = address(&value);
        }
        let after = after.trim_start();
        match after.as_bytes().first() {
            None | Some(b',') => found.push(element.take()),
            Some(b';') => {}
            Some(_) => return vec![None],
        }
        match after.get(1..) {
            Some(next) => rest = next,
            None => return found,
        }
    }
}

/// Splits a text into its first `name=value`, the value without quotes, and the rest.
fn pair(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim_start();
    if name.is_empty() || !name.bytes().all(is_token) {
        return None;
    }
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ';', ' ', '\t']).unwrap_or(rest.len());
        return Some((name, rest[..end].to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((name, value, &quoted[place + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn proxies(header: ForwardedHeader) -> Proxies {
        let trusted = ["10.0.0.0/8", "fd00::/8", "192.0.2.7", "unix"];
        Proxies {
            trusted: trusted.map(|text| text.parse().unwrap()).to_vec(),
            header,
        }
    }

    fn client(header: ForwardedHeader, peer: &str, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        let name = match header {
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR,
            ForwardedHeader::Forwarded => FORWARDED,
        };
        for line in lines {
            headers.append(&name, line.parse().unwrap());
        }
        let peer = match peer {
            "unix" => Peer::Unix,
            address => Peer::Address(address.parse().unwrap()),
        };
        proxies(header).client(peer, &headers).to_string()
    }

    #[test]
    fn forwarded_header_counts_only_from_trusted_peers() {
        let client = |peer, lines: &[_]| client(ForwardedHeader::XForwardedFor, peer, lines);
        assert_eq!(client("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        for trusted in [
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "fd00::1",
            "192.0.2.7",
            "unix",
        ] {
            assert_eq!(client(trusted, &["198.51.100.1"]), "198.51.100.1");
            assert_eq!(client(trusted, &[]), trusted);
        }
        let none = Proxies::default();
        let mut headers = HeaderMap::new();
        headers.insert(X_FORWARDED_FOR, "198.51.100.1".parse().unwrap());
        assert_eq!(none.client(Peer::Unix, &headers), Peer::Unix);
    }

    #[test]
    fn nearest_untrusted_address_is_the_client() {
        let client = |lines: &[_]| client(ForwardedHeader::XForwardedFor, "10.0.0.1", lines);
        // What the client itself wrote stands further left.
        assert_eq!(client(&["1.1.1.1, 198.51.100.1, 10.0.0.2"]), "198.51.100.1");
        assert_eq!(
            client(&["1.1.1.1", "198.51.100.1", "10.0.0.2,fd00::2"]),
            "198.51.100.1"
        );
        assert_eq!(client(&["nonsense, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(client(&["10.0.0.9, 10.0.0.2"]), "10.0.0.9");
        assert_eq!(client(&["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(client(&["[2001:db8::1]:4711"]), "2001:db8::1");
        assert_eq!(client(&["2001:db8::1"]), "2001:db8::1");
        assert_eq!(client(&["::ffff:198.51.100.1"]), "198.51.100.1");
        for malformed in [
            "",
            ",",
            "unknown",
            "198.51.100.1, x",
            "198.51.100.1,",
            "1.2.3",
            "[::1",
            "198.51.100.1, , 10.0.0.2",
        ] {
            assert_eq!(client(&[malformed]), "10.0.0.1", "{malformed}");
        }
    }

    #[test]
    fn forwarded_header_is_parsed_by_its_rfc() {
        let client = |lines: &[_]| client(ForwardedHeader::Forwarded, "10.0.0.1", lines);
        for (line, expected) in [
            ("for=198.51.100.1", "198.51.100.1"),
            (
                "For=\"[2001:db8::1]:47011\";proto=https;by=10.0.0.1",
                "2001:db8::1",
            ),
            (
                "for=1.1.1.1, for=198.51.100.1;host=a, proto=http;for=10.0.0.2",
                "198.51.100.1",
            ),
            (
                "proto=\"a,for=1.1.1.1;\\\"\" ; for=198.51.100.1",
                "198.51.100.1",
            ),
            ("for=\"198.51.100.1:80\" , for=10.0.0.3", "198.51.100.1"),
            // Not told, or not well formed.
            ("for=unknown", "10.0.0.1"),
            ("for=_hidden, for=10.0.0.2", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
            ("for=198.51.100.1,", "10.0.0.1"),
            ("for=\"198.51.100.1", "10.0.0.1"),
            ("198.51.100.1", "10.0.0.1"),
            ("for=198.51.100.1 nonsense", "10.0.0.1"),
            ("by proxy=a;for=198.51.100.1", "10.0.0.1"),
            ("=a;for=198.51.100.1", "10.0.0.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(client(&[line]), expected, "{line}");
        }
        assert_eq!(
            client(&["for=1.1.1.1", "for=198.51.100.1, for=10.0.0.2"]),
            "198.51.100.1"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_headers_do_not_panic(line in "[ -~]{0,80}|[for=\";, .:0-9\\\\]{0,40}") {
            for header in [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded] {
                client(header, "10.0.0.1", &[&line]);
            }
        }
    }

    #[test]
    fn malformed_trusted_peers_are_refused() {
        for wrong in ["", "10.0.0.0/33", "10.0.0", "localhost", "UNIX", "/8"] {
            assert!(wrong.parse::<TrustedPeer>().is_err(), "{wrong}");
        }
    }
}
