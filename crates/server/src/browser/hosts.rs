//! Host names of the pages. The admin port asks for no key; on loopback, that is its only protection. A foreign page
//! whose name resolves to 127.0.0.1 ("DNS rebinding") could reach it from the operator's own browser, but its requests
//! have that name in `Host`.

use std::net::IpAddr;

/// Allowed names in `Host`.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
}

const REFUSAL: &str = "these pages answer only to an address such as 127.0.0.1, to localhost, or to a name given \
     by --admin-host\n";

impl Hosts {
    pub(super) fn new(names: Vec<String>) -> Self {
        let lower = |name: String| name.trim_end_matches('.').to_ascii_lowercase();
        Self {
            names: names.into_iter().map(lower).collect(),
        }
    }

    /// Checks the `Host` of a request.
    ///
    /// # Errors
    ///
    /// If the name isn't allowed; the text says why.
    pub(super) fn check(&self, host: Option<&str>) -> Result<(), &'static str> {
        let name = host.map(without_port).unwrap_or_default();
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let in_brackets = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_address = in_brackets.unwrap_or(&name).parse::<IpAddr>().is_ok();
        match is_address || name == "localhost" || self.names.contains(&name) {
            true => Ok(()),
            false => Err(REFUSAL),
        }
    }
}

/// Returns true if a `Host` is that of this machine: browsers treat its pages as they treat HTTPS.
pub(super) fn is_loopback(host: Option<&str>) -> bool {
    let name = host.map(without_port).unwrap_or_default();
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let in_brackets = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address = in_brackets.unwrap_or(&name).parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns a host without its port. An IPv6 address in brackets keeps its colons.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            let is_inside = name.starts_with('[') && !name.ends_with(']');
            if is_inside { host } else { name }
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for own in [
            "127.0.0.1:9090",
            "localhost",
            "LOCALHOST.:1",
            "[::1]:9090",
            "127.9.9.9",
        ] {
            assert!(is_loopback(Some(own)), "{own}");
        }
        for other in [
            "10.1.2.3",
            "console.example:9090",
            "localhost.evil.example",
            "",
            "[::2]",
        ] {
            assert!(!is_loopback(Some(other)), "{other}");
        }
        assert!(!is_loopback(None));
    }

    #[test]
    fn hosts_other_than_addresses_and_named_ones_are_refused() {
        let hosts = Hosts::new(vec!["Admin.Example".to_owned()]);
        for fine in [
            "127.0.0.1",
            "127.0.0.1:9090",
            "[::1]",
            "[::1]:9090",
            "10.1.2.3:80",
            "localhost",
            "LOCALHOST:9090",
            "localhost.",
            "admin.example:9090",
            "ADMIN.EXAMPLE",
        ] {
            assert!(hosts.check(Some(fine)).is_ok(), "{fine}");
        }
        for refused in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:9090",
            "x.admin.example",
            "",
            ":9090",
            "127.0.0.1@evil.example",
            "[::1",
        ] {
            assert!(hosts.check(Some(refused)).is_err(), "{refused}");
        }
        assert!(hosts.check(None).is_err());
    }
}
