//! HTTP client for other servers: settings, limits of responses, retries. All requests of the program to other servers
//! come from here.
//!
//! [`send`] sends a request once, [`retry::send_retrying`] with retries. Both read the whole response, up to a maximum
//! decompressed length. Callers interpret the status. URLs from outside are requested through [`guard`], which keeps
//! requests out of private networks.

pub mod guard;
pub mod retry;

use std::time::Duration;

use anyhow::Context as _;
use http::HeaderMap;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use guard::Refused;

/// User agent of all requests.
const USER_AGENT: &str = concat!("vitrine/", env!("CARGO_PKG_VERSION"));
/// Timeout of a connection, including its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a whole request, for servers that send a byte now and then.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Returns a builder with the settings of all clients: timeouts, user agent, TLS by ring with the system's
/// certificates, gzip, few redirects, no cookies, the proxy of the environment (`HTTPS_PROXY`, `NO_PROXY`).
///
/// The caller restricts it further, by [`same_origin_redirects`] or `no_proxy`.
///
/// # Errors
///
/// If TLS can't be set up.
pub fn builder() -> anyhow::Result<ClientBuilder> {
    Ok(Client::builder()
        .tls_backend_preconfigured(tls()?)
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .timeout(TOTAL_TIMEOUT)
        .redirect(Policy::limited(MAX_REDIRECTS)))
}

fn tls() -> anyhow::Result<ClientConfig> {
    // Without system certificates, plain http still works; TLS fails and reports it.
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Ok(
        ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .context("can't set up TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

/// Returns a policy that follows redirects within the same origin only, because a header with a key is sent along.
#[must_use]
pub fn same_origin_redirects() -> Policy {
    Policy::custom(|attempt: Attempt<'_>| {
        let first = attempt.previous().first().map(Url::origin);
        if first.is_some_and(|first| first != attempt.url().origin()) {
            let host = attempt.url().origin().ascii_serialization();
            attempt.error(format!("it leads to another origin, {host}"))
        } else if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error(format!("more than {MAX_REDIRECTS} redirects"))
        } else {
            attempt.follow()
        }
    })
}

/// A response, read completely.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, decompressed.
    pub body: Vec<u8>,
}

/// Failure of a request. Messages contain neither the URL nor what was sent.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The response is too long.
    #[error("the response is longer than {max_bytes} bytes")]
    TooLong {
        /// Maximum length, in bytes.
        max_bytes: usize,
    },
    /// The response didn't arrive, or is incomplete.
    #[error("{what}")]
    Transport {
        /// Short description.
        what: &'static str,
        /// Error of the HTTP client, without the URL.
        source: reqwest::Error,
    },
}

impl Failure {
    /// Returns true if a retry may succeed. A bad certificate or a refused redirect is permanent.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::TooLong { .. } => false,
            Self::Transport { source, .. } => {
                !(source.is_builder()
                    || source.is_redirect()
                    || is_about_certificates(source)
                    || Refused::find(source).is_some())
            }
        }
    }
}

impl Failure {
    /// Returns true if the server couldn't be reached, or didn't respond in time.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::TooLong { .. } => false,
            Self::Transport { source, .. } => {
                (source.is_connect() || source.is_timeout()) && !is_about_certificates(source)
            }
        }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let what = match &error {
            error if is_about_certificates(error) => "its certificate isn't trusted",
            error if error.is_timeout() => "timeout",
            error if error.is_redirect() => "the redirect was refused",
            error if error.is_connect() => "can't connect",
            error if error.is_body() || error.is_decode() => {
                "the response was cut off or is damaged"
            }
            _ => "the request failed",
        };
        Self::Transport {
            what,
            source: error.without_url(),
        }
    }
}

/// Returns true if an error is about the other server's certificate.
#[must_use]
pub fn is_about_certificates(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return true;
        }
        // `source()` of an `io::Error` skips the error that it wraps.
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

/// Sends a request once and reads the whole response, of any status.
///
/// # Errors
///
/// If there is no response, or its body is longer than `max_bytes`.
pub async fn send(request: RequestBuilder, max_bytes: usize) -> Result<Answer, Failure> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = read_bounded(response, max_bytes).await?;
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// Reads a body of at most `max_bytes` after decompression.
///
/// # Errors
///
/// If the body is longer, or truncated.
pub async fn read_bounded(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Err(Failure::TooLong { max_bytes });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::retry::{Retries, send_retrying};
    use super::*;

    /// Responds to each connection with the next of `answers`, then ends; returns the address.
    fn serve(answers: Vec<Vec<u8>>) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let _ = socket.read(&mut request);
                let _ = socket.write_all(&answer);
            }
        });
        format!("http://{address}/")
    }

    /// Sends a request with two immediate retries.
    fn ask(address: &str, max_bytes: usize) -> Result<Answer, Failure> {
        let client = builder().unwrap().no_proxy();
        let client = client.redirect(same_origin_redirects()).build().unwrap();
        let retries = Retries {
            most: 2,
            first_pause: Duration::ZERO,
            longest_pause: Duration::ZERO,
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(send_retrying(|| client.get(address), max_bytes, &retries))
    }

    fn answer(head: &str, body: &[u8]) -> Vec<u8> {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        [head.as_bytes(), body].concat()
    }

    #[test]
    fn oversized_decompressed_body_is_refused() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![b' '; 3_000_000]).unwrap();
        let bomb = answer("200 OK\r\nContent-Encoding: gzip", &bomb.finish().unwrap());
        assert!(bomb.len() < 10_000);
        let refused = ask(&serve(vec![bomb.clone()]), 2_999_999).unwrap_err();
        assert!(matches!(refused, Failure::TooLong { .. }), "{refused}");
        assert_eq!(
            ask(&serve(vec![bomb]), 3_000_000).unwrap().body.len(),
            3_000_000
        );
    }

    #[test]
    fn transient_failures_are_retried_and_others_are_not() {
        let (ok, busy) = (answer("200 OK", b"here"), answer("503 Busy", b"no"));
        let cut = ok[..ok.len() - 1].to_vec();
        let found = ask(&serve(vec![cut.clone(), busy.clone(), ok.clone()]), 9).unwrap();
        assert_eq!((found.status, found.body), (200, b"here".to_vec()));
        let found = ask(
            &serve(vec![busy.clone(), busy.clone(), busy, ok.clone()]),
            9,
        )
        .unwrap();
        assert_eq!((found.status, found.body), (503, b"no".to_vec()));
        let failure = ask(&serve(vec![cut.clone(), vec![], cut]), 9).unwrap_err();
        assert!(failure.to_string().contains("cut off"), "{failure}");
        let found = ask(&serve(vec![answer("401 No", b"no"), ok]), 9).unwrap();
        assert_eq!(found.status, 401);
    }

    #[test]
    fn redirects_stay_within_the_origin() {
        let there = serve(vec![answer("200 OK", b"secret")]);
        let away = answer(&format!("302 Found\r\nLocation: {there}"), b"");
        let refused = anyhow::Error::new(ask(&serve(vec![away]), 9).unwrap_err());
        assert!(
            format!("{refused:#}").contains("another origin"),
            "{refused:#}"
        );
        let near = answer("302 Found\r\nLocation: /b", b"");
        let found = ask(&serve(vec![near.clone(), answer("200 OK", b"b")]), 9);
        assert_eq!(found.unwrap().body, b"b");
        let refused = ask(&serve(vec![near; 9]), 9).unwrap_err();
        assert!(!refused.is_passing(), "{refused}");
    }
}
