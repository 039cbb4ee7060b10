//! Sending of events: one request, whose connection goes only to allowed addresses (docs/contract/webhooks.md#requests).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use ipnet::IpNet;
use jiff::Timestamp;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use vitrine_ingest::outside;
use vitrine_ingest::outside::guard::{JudgingResolver, Refused, is_public};

/// Maximum length of an endpoint's address, in bytes.
const MAX_URL_BYTES: usize = 2_000;

/// Maximum number of bytes of a response that are read.
const MAX_RESPONSE_BYTES: usize = 4 << 10;

/// Maximum time for which a body is read.
const MAX_DRAIN: Duration = Duration::from_secs(1);

/// Maximum number of idle connections to one host.
const MAX_IDLE: usize = 8;

/// Time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after an attempt at which none of the connections that its host had then is idle: it may take 15 s, and the pool looks
/// for old ones at intervals of their timeout.
const KEPT: Duration = Duration::from_secs(90);

/// Maximum `Retry-After` that is obeyed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Headers of an attempt (Standard Webhooks 1.0), and their older names.
const HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];
const OLDER_HEADERS: [&str; 3] = ["svix-id", "svix-timestamp", "svix-signature"];

/// A signed attempt.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Address.
    pub url: String,
    /// Id of the event.
    pub id: String,
    /// Time of the attempt, in seconds since 1970.
    pub timestamp: i64,
    /// Signatures, separated by blanks.
    pub signatures: String,
    /// Body.
    pub body: String,
    /// True to send the headers also by the names that receivers in the field know, `svix-…`.
    pub has_older_names: bool,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// There was a response.
    Status {
        /// Its status.
        status: u16,
        /// Pause that it asks for, at most a day.
        retry_after: Option<Duration>,
    },
    /// There was none, for this reason: a short sentence that neither has the address nor what was received.
    Failed(String),
}

/// Sender of events.
#[derive(Debug, Clone)]
pub struct Sender {
    networks: Arc<[IpNet]>,
    /// For public addresses and named networks.
    secure: Client,
    /// For named networks only, without TLS.
    plain: Client,
    kept: Arc<Mutex<KeptHosts>>,
}

/// Hosts whose connections stay open after an attempt.
#[derive(Debug)]
struct KeptHosts {
    max: usize,
    /// Time of the last attempt at each.
    last: HashMap<String, Instant>,
}

impl KeptHosts {
    /// Returns whether the connection of an attempt stays open for the next one to its host.
    fn keeps(&mut self, host: &str, now: Instant) -> bool {
        if !self.last.contains_key(host) && self.last.len() >= self.max {
            self.last.retain(|_, last| now.duration_since(*last) < KEPT);
        }
        let keeps = self.last.contains_key(host) || self.last.len() < self.max;
        if keeps {
            self.last.insert(host.to_owned(), now);
        }
        keeps
    }
}

impl Sender {
    /// Returns a sender that also sends to these private networks, and keeps at most this number of idle connections.
    ///
    /// # Errors
    ///
    /// If TLS can't be set up.
    pub fn new(networks: &[IpNet], max_idle: usize) -> anyhow::Result<Self> {
        let networks: Arc<[IpNet]> = networks.into();
        let client = |is_allowed: JudgingResolver<_>| {
            let builder = outside::builder()?
                .redirect(Policy::none())
                .no_proxy()
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_max_idle_per_host(MAX_IDLE);
            let client = builder.dns_resolver(is_allowed).build();
            client.context("can't make an HTTP client")
        };
        let judge = |is_secure| {
            let networks = Arc::clone(&networks);
            JudgingResolver(move |address| is_allowed(&networks, is_secure, address))
        };
        Ok(Self {
            secure: client(judge(true))?,
            plain: client(judge(false))?,
            networks,
            kept: Arc::new(Mutex::new(KeptHosts {
                max: max_idle / MAX_IDLE,
                last: HashMap::new(),
            })),
        })
    }

    /// Checks an address before any attempt; names are judged when they are resolved.
    ///
    /// # Errors
    ///
    /// If nothing would be sent to it: the reason.
    pub fn check(&self, url: &str) -> Result<Url, String> {
        if url.len() > MAX_URL_BYTES {
            return Err(format!("the address is longer than {MAX_URL_BYTES} bytes"));
        }
        let url: Url = url
            .parse()
            .map_err(|error| format!("the address is no URL: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err("the address has credentials or a fragment".to_owned());
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let address: Option<IpAddr> = host.parse().ok();
        match (url.scheme(), address) {
            ("https" | "http", _) if host.is_empty() => Err("the address has no host".to_owned()),
            ("http", _) if self.networks.is_empty() => {
                Err("the address must begin with https://".to_owned())
            }
            ("https" | "http", None) => Ok(url),
            ("https" | "http", Some(address)) => {
                let is_secure = url.scheme() == "https";
                match is_allowed(&self.networks, is_secure, address) {
                    true => Ok(url),
                    false if is_public(address) => {
                        Err("the address must begin with https://".to_owned())
                    }
                    false => Err(format!(
                        "{address} is in a private network; --webhook-networks names those that may be sent to"
                    )),
                }
            }
            _ => Err("the address must begin with https://".to_owned()),
        }
    }

    /// Makes one attempt.
    pub async fn send(&self, outgoing: Outgoing, timeout: Duration) -> Sent {
        let url = match self.check(&outgoing.url) {
            Ok(url) => url,
            Err(reason) => return Sent::Failed(reason),
        };
        let client = match url.scheme() {
            "https" => &self.secure,
            _ => &self.plain,
        };
        let names: &[[&str; 3]] = match outgoing.has_older_names {
            true => &[HEADERS, OLDER_HEADERS],
            false => &[HEADERS],
        };
        let keeps = {
            // Both clients have idle connections of their own.
            let host = format!("{}://{}", url.scheme(), url.authority());
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.keeps(&host, Instant::now())
        };
        let mut request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(outgoing.body);
        if !keeps {
            request = request.header(CONNECTION, "close");
        }
        let request = names
            .iter()
            .fold(request, |request, [id, time, signature]| {
                request
                    .header(*id, &outgoing.id)
                    .header(*time, outgoing.timestamp)
                    .header(*signature, &outgoing.signatures)
            });
        let began = Instant::now();
        let mut response = match tokio::time::timeout(timeout, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Sent::Failed(reason(&error)),
            Err(_) => return Sent::Failed(format!("no answer within {} s", timeout.as_secs())),
        };
        // The status decides. The body is read to its end so that the connection can be used again.
        let drain = async {
            let mut read = 0;
            while read <= MAX_RESPONSE_BYTES
                && let Ok(Some(chunk)) = response.chunk().await
            {
                read += chunk.len();
            }
        };
        let left = timeout.saturating_sub(began.elapsed()).min(MAX_DRAIN);
        let _ = tokio::time::timeout(left, drain).await;
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok());
        Sent::Status {
            status: response.status().as_u16(),
            retry_after: retry_after.and_then(|value| pause(value, Timestamp::now())),
        }
    }
}

fn is_allowed(networks: &[IpNet], is_secure: bool, address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_named = networks.iter().any(|network| network.contains(&address));
    is_named || is_secure && is_public(address)
}

/// Returns the pause of a `Retry-After`: seconds, or a date (RFC 9110, 10.2.3).
fn pause(value: &str, now: Timestamp) -> Option<Duration> {
    let pause = match value.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
            Duration::try_from(date.duration_since(now)).ok()?
        }
    };
    Some(pause.min(MAX_RETRY_AFTER))
}

/// Returns the reason of a failed attempt.
fn reason(error: &reqwest::Error) -> String {
    if let Some(refused) = Refused::find(error) {
        return match refused {
            Refused::NotPublic { address, .. } => {
                format!("its name resolves to {address}, in a network that isn't allowed")
            }
            Refused::Scheme { .. } => "its scheme isn't allowed".to_owned(),
        };
    }
    let text = match error {
        _ if error.is_timeout() => "the connection took too long",
        _ if outside::is_certificate_error(error) => "its certificate isn't valid for it",
        _ if error.is_connect() => "can't connect",
        _ => "the connection broke",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(networks: &[&str]) -> Sender {
        let networks: Vec<IpNet> = networks.iter().map(|net| net.parse().unwrap()).collect();
        Sender::new(&networks, 0).unwrap()
    }

    #[test]
    fn connections_of_few_hosts_stay_open() {
        let mut hosts = KeptHosts {
            max: 2,
            last: HashMap::new(),
        };
        let began = Instant::now();
        let mut keeps = |host, seconds| hosts.keeps(host, began + Duration::from_secs(seconds));
        assert!(keeps("a", 0) && keeps("b", 0));
        assert!(!keeps("c", 1));
        assert!(keeps("a", 80) && keeps("b", 5));
        assert!(!keeps("c", 94));
        assert!(keeps("c", 95), "nothing of b is idle any more");
        assert!(!keeps("b", 96));
    }

    #[test]
    fn addresses_are_judged() {
        let (public, named) = (sender(&[]), sender(&["10.0.0.0/8", "::1/128"]));
        for (url, is_public, is_named) in [
            ("https://partner.example/hook", true, true),
            ("https://8.8.8.8/hook", true, true),
            ("http://partner.example/hook", false, true),
            ("http://8.8.8.8/hook", false, false),
            ("http://10.1.2.3:8080/hook", false, true),
            ("https://10.1.2.3/hook", false, true),
            ("https://[::1]/hook", false, true),
            ("https://127.0.0.1/hook", false, false),
            ("https://[::ffff:127.0.0.1]/hook", false, false),
            ("https://[::ffff:10.0.0.1]/hook", false, true),
            ("https://169.254.169.254/", false, false),
            ("https://2130706433/", false, false),
            ("https://user:password@partner.example/", false, false),
            ("https://partner.example/#part", false, false),
            ("ftp://partner.example/", false, false),
            ("partner.example", false, false),
        ] {
            assert_eq!(public.check(url).is_ok(), is_public, "{url}");
            assert_eq!(named.check(url).is_ok(), is_named, "{url}");
        }
        let long = format!("https://partner.example/{}", "x".repeat(MAX_URL_BYTES));
        assert!(public.check(&long).is_err());
    }

    #[test]
    fn retry_after_is_a_time_up_to_a_day() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        for (value, seconds) in [
            ("120", Some(120)),
            ("Wed, 25 Nov 2026 12:01:00 GMT", Some(60)),
            ("Wed, 25 Nov 2026 11:00:00 GMT", None),
            ("999999999", Some(86_400)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(
                pause(value, now),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
    }
}
