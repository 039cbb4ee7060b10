//! Connection settings from an address, read as libpq reads it.

use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::session::{Driver, Failure};
use super::tls;
use crate::StoreError;

/// Default timeout for connecting to one address; a host gets twice that, handshakes included; `connect_timeout` in the address overrides it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time without acknowledgements after which a connection counts as broken, whatever is being waited for: the network drops
/// packets.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(5);

/// A database, and the settings to connect to it.
pub(crate) struct Target {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// Address, without a password.
    pub(super) place: Arc<str>,
    /// Timeout for connecting to one address of a host.
    pub(super) connect_timeout: Duration,
    /// True if the address has a `connect_timeout`.
    has_connect_timeout: bool,
}

impl Target {
    /// Sets the timeout for connecting to `limit`, unless the address has one: a command can wait longer than a server.
    pub(crate) fn with_default_timeout(self, limit: Duration) -> Self {
        match self.has_connect_timeout {
            true => self,
            false => Self {
                connect_timeout: limit,
                ..self
            },
        }
    }

    /// Parses the address; messages name it by `place`. The password is `password`, or the address's, or the one that libpq
    /// would find: see [`find_password`].
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
        let (ssl_mode, root_certificates, rest) = parse_query(query).map_err(wrong)?;
        let mut config: Config = format!("{base}?{rest}").parse().map_err(|error| {
            // The message names options, never their values.
            let error: tokio_postgres::Error = error;
            let source = error.into_source().map(|source| source.to_string());
            wrong(source.unwrap_or_else(|| "it can't be parsed".to_owned()))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        let has_option = |name: &str| {
            rest.split('&')
                .any(|pair| pair.split('=').next() == Some(name))
        };
        if !has_option("keepalives_idle") {
            // Unanswered probes end an idle connection.
            config
                .keepalives_idle(Duration::from_secs(2))
                .keepalives_interval(Duration::from_secs(1))
                .keepalives_retries(3);
        }
        if !has_option("tcp_user_timeout") {
            config.tcp_user_timeout(NETWORK_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name(application_name());
        }
        if let Some(password) = password {
            config.password(password);
        } else if config.get_password().is_none()
            && let Some(password) = find_password(&config).map_err(wrong)?
        {
            config.password(password);
        }
        let asked = config.get_connect_timeout().copied();
        let each = asked.unwrap_or(CONNECT_TIMEOUT);
        config.connect_timeout(each);
        config.ssl_mode(match ssl_mode {
            tls::Mode::Disable => SslMode::Disable,
            tls::Mode::Prefer => SslMode::Prefer,
            tls::Mode::Require | tls::Mode::VerifyFull => SslMode::Require,
        });
        Ok(Self {
            tls: tls::connector(ssl_mode, root_certificates.as_deref()).map_err(wrong)?,
            connect_timeout: each,
            has_connect_timeout: asked.is_some(),
            place: place.into(),
            config,
        })
    }
}

impl Target {
    /// Connects to the first host that accepts, of all in turn. The caller drives the connection.
    ///
    /// The client library would do so, too, but has no timeout for a host that accepts a connection and then sends nothing: it
    /// would never try the others.
    pub(super) async fn connect(&self) -> Result<(Client, Driver), Failure> {
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        let mut order: Vec<usize> = (0..hosts.len().max(addresses.len())).collect();
        if self.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            // Each state has random keys.
            order.sort_by_cached_key(|_| RandomState::new().hash_one(0_u8));
        }
        let mut failure = Failure::Timeout(self.connect_timeout);
        for index in order {
            let ports = self.config.get_ports();
            let port = *ports.get(index).or(ports.first()).unwrap_or(&5432);
            let config = self.at(hosts.get(index), addresses.get(index).copied(), port);
            let connecting = config.connect(self.tls.clone());
            // Enough for a second address if the first one drops packets.
            let limit = self.connect_timeout * 2;
            match tokio::time::timeout(limit, connecting).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => failure = Failure::Postgres(error),
                Err(_) => failure = Failure::Timeout(limit),
            }
        }
        Err(failure)
    }

    /// Returns the settings for one host, for whose name its certificate must be.
    fn at(&self, host: Option<&Host>, address: Option<IpAddr>, port: u16) -> Config {
        let from = &self.config;
        let mut config = Config::new();
        match host {
            Some(Host::Tcp(name)) => config.host(name),
            Some(Host::Unix(path)) => config.host_path(path),
            None => &mut config,
        };
        address.map(|address| config.hostaddr(address));
        from.get_user().map(|user| config.user(user));
        from.get_password()
            .map(|password| config.password(password));
        from.get_dbname().map(|name| config.dbname(name));
        from.get_options().map(|options| config.options(options));
        from.get_application_name()
            .map(|name| config.application_name(name));
        from.get_tcp_user_timeout()
            .map(|timeout| config.tcp_user_timeout(*timeout));
        from.get_keepalives_interval()
            .map(|interval| config.keepalives_interval(interval));
        from.get_keepalives_retries()
            .map(|retries| config.keepalives_retries(retries));
        config
            .port(port)
            .connect_timeout(self.connect_timeout)
            .keepalives(from.get_keepalives())
            .keepalives_idle(from.get_keepalives_idle())
            .ssl_mode(from.get_ssl_mode())
            .ssl_negotiation(from.get_ssl_negotiation())
            .channel_binding(from.get_channel_binding())
            .load_balance_hosts(from.get_load_balance_hosts())
            .target_session_attrs(from.get_target_session_attrs());
        config
    }
}

/// Splits the query of an address into the mode of TLS, the file of root certificates, and the options for the client library.
fn parse_query(query: &str) -> Result<(tls::Mode, Option<String>, String), String> {
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
        let reason =
            "`sslrootcert` goes with `sslmode=verify-full`: the other modes check no certificate";
        return Err(reason.to_owned());
    }
    root_certificates = root_certificates.filter(|path| path != "system");
    Ok((ssl_mode, root_certificates, rest.join("&")))
}

/// Splits an address into the part before its query, and the query. A password may contain a `?`.
fn split_query(url: &str) -> (&str, &str) {
    let from = url.find('@').unwrap_or(0);
    match url[from..].find('?') {
        Some(at) => (&url[..from + at], &url[from + at + 1..]),
        None => (url, ""),
    }
}

/// Returns the default `application_name`, which operators and waiting writers see.
fn application_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = format!("vitrine {} {}", std::process::id(), host.trim());
    // The database truncates it to 63 bytes.
    let name = name.trim().chars().filter(char::is_ascii);
    name.take(63).collect()
}

/// Returns the password that isn't in the address, as libpq finds it: `PGPASSWORD`, then the file of `PGPASSFILE` or `~/.pgpass`.
fn find_password(config: &Config) -> Result<Option<String>, String> {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let Some(path) = named.or_else(home) else {
        return Ok(None);
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("can't read {}: {error}", path.display())),
    };
    let mode = path.metadata().map(|file| file.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        // libpq ignores such a file, so that the login fails without a visible reason.
        return Err(format!(
            "the password file {} can be read by others; `chmod 600` it",
            path.display()
        ));
    }
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        // libpq's name for a socket.
        Some(Host::Unix(_)) => "localhost".to_owned(),
        None => config
            .get_hostaddrs()
            .first()
            .map_or_else(String::new, ToString::to_string),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    Ok(password_within(
        &text,
        [&host, &port.to_string(), database, user],
    ))
}

/// Returns the password of the first line whose four fields match; `*` matches anything, and a backslash escapes `:` and
/// itself.
fn password_within(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let [own @ .., password] = fields.as_slice() else {
                return None;
            };
            let matches = own.len() == 4
                && own
                    .iter()
                    .zip(wanted)
                    .all(|(own, wanted)| own == "*" || own == wanted);
            matches.then(|| password.clone())
        })
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        // Colons in a password needn't be escaped.
        let is_password = fields.len() == 5;
        let Some(last) = fields.last_mut() else {
            break;
        };
        match character {
            '\\' => last.extend(characters.next()),
            ':' if !is_password => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<Target, String> {
        let place = url.to_owned();
        Target::parse(url, Some("given"), place).map_err(|error| error.to_string())
    }

    #[test]
    fn address_sets_host_user_tls_and_timeouts() {
        let target =
            parsed("postgresql://u%40x:p@h:1,i:2/d?connect_timeout=3&sslmode=disable").unwrap();
        assert_eq!(target.config.get_user(), Some("u@x"));
        assert_eq!(target.config.get_password(), Some(&b"given"[..]));
        assert_eq!(target.config.get_dbname(), Some("d"));
        assert_eq!(target.config.get_ports(), [1, 2]);
        assert_eq!(target.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(target.connect_timeout, Duration::from_secs(3));
        assert!(
            target
                .config
                .get_application_name()
                .unwrap()
                .starts_with("vitrine ")
        );
        let plain = parsed("postgres://h/d").unwrap();
        assert_eq!(plain.connect_timeout, CONNECT_TIMEOUT);
        assert_eq!(plain.config.get_ssl_mode(), SslMode::Prefer);
        let named = parsed("postgres://h/d?application_name=mine&sslmode=require").unwrap();
        assert_eq!(named.config.get_application_name(), Some("mine"));
        assert_eq!(named.config.get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn unsupported_option_is_refused_by_name() {
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

    #[test]
    fn password_file_is_read_as_libpq_does() {
        let text =
            "# h:1:d:u:comment\nh:2:d:u:other\nh:1:*:u:a\\:b:c\\\\\n*:*:*:*:last\nshort:line";
        let find = |wanted| password_within(text, wanted);
        assert_eq!(find(["h", "1", "d", "u"]).as_deref(), Some("a:b:c\\"));
        assert_eq!(find(["h", "2", "d", "u"]).as_deref(), Some("other"));
        assert_eq!(find(["i", "1", "d", "u"]).as_deref(), Some("last"));
        assert_eq!(password_within("h:1:d:u:p", ["h", "1", "d", "v"]), None);
    }
}
