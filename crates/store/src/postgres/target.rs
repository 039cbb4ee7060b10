//! Which database is meant, as which user and how: the address, read as libpq reads it.

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{password, tls};
use crate::StoreError;

/// How long connecting to one host may take, its handshakes included, unless the address says `connect_timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the other side's machine may be silent before a connection counts as broken: a network that swallows
/// packets is noticed in so much time, whatever is being waited for.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(5);

/// A database, and how it is connected to.
pub(crate) struct Target {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// The address, without a password.
    pub(super) place: Arc<str>,
    /// How long connecting may take in all.
    pub(super) connect_limit: Duration,
}

impl Target {
    /// Reads the address; `place` is what messages call it. The password is `password`, or the address's, or one as
    /// libpq finds it: see [`password`].
    pub(crate) fn parse(
        url: &str,
        password: Option<&str>,
        place: String,
    ) -> Result<Self, StoreError> {
        let wrong = |reason: String| StoreError::WrongAddress {
            place: place.clone(),
            reason,
        };
        let (base, query) = split_query(url);
        let Query {
            ssl_mode,
            root_certificates,
            rest,
        } = Query::parse(query).map_err(wrong)?;
        let mut config: Config = format!("{base}?{rest}").parse().map_err(|error| {
            // Its words name options, never their values.
            let error: tokio_postgres::Error = error;
            let source = error.into_source().map(|source| source.to_string());
            wrong(source.unwrap_or_else(|| "it can't be read".to_owned()))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        let says = |name: &str| {
            rest.split('&')
                .any(|pair| pair.split('=').next() == Some(name))
        };
        if !says("keepalives_idle") {
            // Probes that nobody answers end a connection that only waits.
            config
                .keepalives_idle(Duration::from_secs(2))
                .keepalives_interval(Duration::from_secs(1))
                .keepalives_retries(3);
        }
        if !says("tcp_user_timeout") {
            config.tcp_user_timeout(NETWORK_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name(own_name());
        }
        if let Some(password) = password {
            config.password(password);
        } else if config.get_password().is_none()
            && let Some(password) = password::find(&config).map_err(wrong)?
        {
            config.password(password);
        }
        let each = *config.get_connect_timeout().unwrap_or(&CONNECT_TIMEOUT);
        config.connect_timeout(each);
        config.ssl_mode(match ssl_mode {
            tls::Mode::Disable => SslMode::Disable,
            tls::Mode::Prefer => SslMode::Prefer,
            tls::Mode::Require | tls::Mode::VerifyFull => SslMode::Require,
        });
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
        Ok(Self {
            tls: tls::connector(ssl_mode, root_certificates.as_deref()).map_err(wrong)?,
            connect_limit: each * u32::try_from(hosts).unwrap_or(1),
            place: place.into(),
            config,
        })
    }
}

/// What an address says behind its `?`.
struct Query {
    ssl_mode: tls::Mode,
    root_certificates: Option<String>,
    /// What the client library reads itself.
    rest: String,
}

impl Query {
    fn parse(query: &str) -> Result<Self, String> {
        let (mut ssl_mode, mut root_certificates) = (tls::Mode::Prefer, None);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" => ssl_mode = tls::Mode::parse(&value())?,
                "sslrootcert" => root_certificates = Some(value()),
                "sslcert" | "sslkey" | "sslcrl" | "sslpassword" | "gssencmode" | "service" => {
                    return Err(format!("`{name}` isn't supported; leave it out"));
                }
                _ => rest.push(pair),
            }
        }
        if root_certificates.is_some() && ssl_mode != tls::Mode::VerifyFull {
            let reason = "`sslrootcert` goes with `sslmode=verify-full`: the other modes check no certificate";
            return Err(reason.to_owned());
        }
        Ok(Self {
            ssl_mode,
            root_certificates: root_certificates.filter(|path| path != "system"),
            rest: rest.join("&"),
        })
    }
}

/// The address without its query, and the query. A password may hold a `?`.
fn split_query(url: &str) -> (&str, &str) {
    let from = url.find('@').unwrap_or(0);
    match url[from..].find('?') {
        Some(at) => (&url[..from + at], &url[from + at + 1..]),
        None => (url, ""),
    }
}

/// How this process names itself to the database, for its operators and for whoever waits for it.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = format!("vitrine {} {}", std::process::id(), host.trim());
    // The database keeps 63 bytes of it.
    let name = name.trim().chars().filter(char::is_ascii);
    name.take(63).collect()
}

/// The host and port by which a password file knows the database.
pub(super) fn host_and_port(config: &Config) -> (String, u16) {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        // libpq's word for a socket.
        Some(Host::Unix(_)) => "localhost".to_owned(),
        None => config
            .get_hostaddrs()
            .first()
            .map_or_else(String::new, ToString::to_string),
    };
    (host, config.get_ports().first().copied().unwrap_or(5432))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<Target, String> {
        let place = url.to_owned();
        Target::parse(url, Some("given"), place).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_says_where_and_how() {
        let target =
            parsed("postgresql://u%40x:p@h:1,i:2/d?connect_timeout=3&sslmode=disable").unwrap();
        assert_eq!(target.config.get_user(), Some("u@x"));
        assert_eq!(target.config.get_password(), Some(&b"given"[..]));
        assert_eq!(target.config.get_dbname(), Some("d"));
        assert_eq!(target.config.get_ports(), [1, 2]);
        assert_eq!(target.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(target.connect_limit, Duration::from_secs(6));
        assert!(
            target
                .config
                .get_application_name()
                .unwrap()
                .starts_with("vitrine ")
        );
        let plain = parsed("postgres://h/d").unwrap();
        assert_eq!(plain.connect_limit, CONNECT_TIMEOUT);
        assert_eq!(plain.config.get_ssl_mode(), SslMode::Prefer);
        let named = parsed("postgres://h/d?application_name=mine&sslmode=require").unwrap();
        assert_eq!(named.config.get_application_name(), Some("mine"));
        assert_eq!(named.config.get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (url, named) in [
            ("postgres://h/d?sslmode=verify-ca", "verify-ca"),
            ("postgres://h/d?sslmode=on", "`on`"),
            ("postgres://h/d?sslcert=c", "sslcert"),
            ("postgres://h/d?sslrootcert=c", "verify-full"),
            (
                "postgres://h/d?sslmode=verify-full&sslrootcert=/no/such",
                "/no/such",
            ),
            ("postgres://h/d?colour=red", "colour"),
            ("postgres:///d", "no host"),
            ("postgres://h:port/d", "port"),
        ] {
            let refused = parsed(url).err().unwrap();
            assert!(refused.contains(named), "{url}: {refused}");
        }
    }
}
