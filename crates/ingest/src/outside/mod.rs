//! HTTP clients for other servers: their settings, and the guard against internal addresses.
//!
//! Requests are those of the client library: [`send`] sends one, [`send_retrying`] repeats it. URLs from outside are requested
//! through [`guard`], which keeps requests out of private networks.

pub mod guard;

use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder, RequestBuilder, Url};
use vitrine_client::transport::{tls_config, with_retries};

use guard::Refused;

pub use vitrine_client::transport::{Answer, is_certificate_error, send};
pub use vitrine_client::{Error, Retries};

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
        .tls_backend_preconfigured(tls_config()?)
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .timeout(TOTAL_TIMEOUT)
        .redirect(Policy::limited(MAX_REDIRECTS)))
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

/// Logs that a request failed and is sent again.
pub fn log_retry(error: &Error, pause: Duration) {
    tracing::info!(%error, ?pause, "a request failed and is sent again");
}

/// Sends a request with retries. `request` creates the request of each attempt; a refused address is final.
///
/// # Errors
///
/// Those of [`send`]; [`Error::GaveUp`] after the last of several attempts.
pub async fn send_retrying(
    request: impl Fn() -> RequestBuilder,
    max_bytes: usize,
    retries: &Retries,
) -> Result<Answer, Error> {
    let attempt = || async {
        match send(request(), max_bytes).await {
            Ok(answer) => answer.refuse_transient().map(Ok),
            Err(error) if Refused::find(&error).is_some() => Ok(Err(error)),
            Err(error) => Err(error),
        }
    };
    with_retries(retries, log_retry, attempt).await.flatten()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

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
    fn ask(address: &str, max_bytes: usize) -> Result<Answer, Error> {
        let client = builder().unwrap().no_proxy();
        let client = client.redirect(same_origin_redirects()).build().unwrap();
        let mut retries = Retries::default();
        (retries.most, retries.longest_pause) = (2, Duration::ZERO);
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
    fn transient_failures_are_retried_and_others_are_not() {
        let (ok, busy) = (answer("200 OK", b"here"), answer("503 Busy", b"no"));
        let cut = ok[..ok.len() - 1].to_vec();
        let found = ask(&serve(vec![cut.clone(), busy.clone(), ok.clone()]), 9).unwrap();
        assert_eq!((found.status, &*found.body), (200, &b"here"[..]));
        let busy = serve(vec![busy.clone(), busy.clone(), busy, ok.clone()]);
        assert_eq!(ask(&busy, 9).unwrap_err().status(), Some(503));
        let failure =
            anyhow::Error::new(ask(&serve(vec![cut.clone(), vec![], cut]), 9).unwrap_err());
        assert!(format!("{failure:#}").contains("cut off"), "{failure:#}");
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
        assert_eq!(found.unwrap().body, &b"b"[..]);
        let refused = ask(&serve(vec![near; 9]), 9).unwrap_err();
        let is_final = matches!(
            refused,
            Error::Transport {
                is_passing: false,
                ..
            }
        );
        assert!(is_final, "{refused:?}");
    }
}
