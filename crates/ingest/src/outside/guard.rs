//! Keeps requests out of private networks: an address in a feed mustn't reach servers that only this machine can reach.
//!
//! Names are resolved here, and connections use exactly the resolved addresses, so that a name can't resolve
//! differently after the check (DNS rebinding). Hosts that are IP addresses bypass the resolver; they are checked
//! before a request and at each redirect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{ClientBuilder, Url};

use super::MAX_REDIRECTS;

/// Networks that aren't public (IANA's registry of special-purpose addresses): first address and prefix length.
const SPECIAL_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this network, and unspecified
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by carriers (CGNAT)
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local; clouds tell secrets there
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast
];

/// The same within 2000::/3, which has all public IPv6 addresses.
const SPECIAL_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo among them
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Returns true if an address is public. An IPv6 address that contains an IPv4 address counts as that one.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(network, bits): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ network.to_bits()) >> (32 - bits) == 0
    };
    !SPECIAL_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_in = |(network, bits): &(Ipv6Addr, u32)| {
        (address.to_bits() ^ network.to_bits()) >> (128 - bits) == 0
    };
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // IPv4-mapped, and the well-known prefix of NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(v4(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Everything else outside of 2000::/3 is local, multicast, local translation, or unassigned, and so are the
        // deprecated IPv4-compatible addresses.
        [first, ..] => first >> 13 == 1 && !SPECIAL_V6.iter().any(is_in),
    }
}

/// Refusal of an address.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It isn't in the public internet.
    #[error("{host} is {address}, which isn't a public address")]
    NotPublic {
        /// Host of the request.
        host: String,
        /// Its address.
        address: IpAddr,
    },
    /// A redirect leads to another scheme than http or https.
    #[error("it leads to {scheme}; only http and https are allowed")]
    Scheme {
        /// Scheme of the redirect.
        scheme: String,
    },
}

impl Refused {
    /// Returns the refusal among the causes of `error`.
    #[must_use]
    pub fn find<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(refused) = error.downcast_ref() {
                return Some(refused);
            }
            next = error.source();
        }
        None
    }
}

/// Checks a URL before a request, if its host is an IP address. Names are checked when they are resolved.
///
/// # Errors
///
/// If the host is no public address, or the scheme neither http nor https.
pub fn check(url: &Url) -> Result<(), Refused> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme().to_owned();
        return Err(Refused::Scheme { scheme });
    }
    let host = url.host_str().unwrap_or_default();
    // The URL parser normalises all notations of an address.
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(Refused::NotPublic {
            host: host.to_owned(),
            address,
        }),
        _ => Ok(()),
    }
}

/// Restricts a client to public addresses, at redirects, too. URLs must be [checked](check) before each request. It uses
/// no proxy, whose connections couldn't be checked here.
pub fn public_only(builder: ClientBuilder) -> ClientBuilder {
    let redirects = Policy::custom(|attempt: Attempt<'_>| {
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error(format!("more than {MAX_REDIRECTS} redirects"));
        }
        match check(attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(refused) => attempt.error(refused),
        }
    });
    builder
        .no_proxy()
        .dns_resolver(JudgingResolver(is_public))
        .redirect(redirects)
}

/// Resolver that returns the addresses of a name only if all of them are allowed. Connections use exactly these.
#[derive(Debug, Clone)]
pub struct JudgingResolver<F>(pub F);

impl<F: Fn(IpAddr) -> bool + Clone + Send + Sync + 'static> Resolve for JudgingResolver<F> {
    fn resolve(&self, name: Name) -> Resolving {
        let Self(is_allowed) = self.clone();
        Box::pin(async move {
            // Port 0 means the port of the URL or scheme.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            if let Some(private) = found.iter().find(|address| !is_allowed(address.ip())) {
                return Err(Refused::NotPublic {
                    host: name.as_str().to_owned(),
                    address: private.ip(),
                }
                .into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;
    use crate::outside::{Error, Retries, builder, send_retrying};

    const PUBLIC: &str = "\
         1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
         128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 \
         192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 \
         198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 \
         223.255.255.255 2606:4700::1111 2001:200::1 2001:db7:ffff:: 2001:db9:: 2400::1 \
         3ffe::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1";

    const PRIVATE: &str = "\
         0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 \
         127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 \
         192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 \
         203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 fe80::1 \
         febf::1 fec0::1 fc00::1 fdff::1 ff02::1 2001::1 2001:1ff:ffff:: 2001:db8::1 3fff::1 \
         3fff:fff::1 100::1 4000::1 64:ff9b:1::1 ::8.8.8.8 ::127.0.0.1 5f00::1 \
         ::ffff:127.0.0.1 ::ffff:10.1.2.3 ::ffff:169.254.169.254 ::ffff:0:8.8.8.8 \
         64:ff9b::127.0.0.1 64:ff9b::192.168.0.1 2002:7f00:1:: 2002:c0a8:1::1 \
         2002:a9fe:a9fe::";

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for public in PUBLIC.split(' ') {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in PRIVATE.split(' ') {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn private_addresses_are_refused_in_any_notation() {
        for refused in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://[::1]:8080/",
            "http://[::ffff:7f00:1]/",
            "https://user:password@10.0.0.1/",
            "http://0/",
            "file:///etc/passwd",
            "ftp://a.example/",
        ] {
            assert!(check(&refused.parse().unwrap()).is_err(), "{refused}");
        }
        for fine in [
            "http://a.example:8080/",
            "https://8.8.8.8/",
            "http://[2400::1]/",
        ] {
            assert!(check(&fine.parse().unwrap()).is_ok(), "{fine}");
        }
    }

    /// Requests `url`; `public.example` is a local server that responds with `answer`, other names are resolved as
    /// usual.
    fn ask(url: &str, answer: &str) -> Result<u16, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let port = address.port();
        let answer = answer.replace("PORT", &port.to_string());
        std::thread::spawn(move || {
            while let Ok((mut socket, _)) = listener.accept() {
                let _ = socket.read(&mut [0; 4096]);
                let _ = socket.write_all(answer.as_bytes());
            }
        });
        let client = public_only(builder().unwrap()).resolve("public.example", address);
        let client = client.build().unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let request = || client.get(url.replace("PORT", &port.to_string()));
        let answer = runtime.block_on(send_retrying(request, 10, &Retries::default()))?;
        Ok(answer.status)
    }

    #[test]
    fn names_and_redirects_to_private_addresses_are_refused() {
        let ok = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        assert_eq!(ask("http://public.example:PORT/", ok).unwrap(), 204);
        let failure = ask("http://localhost:PORT/", ok).unwrap_err();
        assert!(Refused::find(&failure).is_some(), "{failure:?}");
        let is_final = matches!(failure, Error::Transport { .. });
        assert!(is_final, "another attempt was made: {failure:?}");
        for inside in [
            "http://127.0.0.1:PORT/",
            "http://[::1]:PORT/",
            "http://localhost:PORT/",
            "http://169.254.169.254/latest/meta-data/",
        ] {
            let redirect = format!(
                "HTTP/1.1 302 Found\r\nLocation: {inside}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let failure = ask("http://public.example:PORT/", &redirect).unwrap_err();
            assert!(Refused::find(&failure).is_some(), "{inside}: {failure:?}");
        }
        let endless =
            "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let failure = ask("http://public.example:PORT/", endless).unwrap_err();
        assert!(format!("{:#}", anyhow::Error::new(failure)).contains("more than 5 redirects"));
    }
}
