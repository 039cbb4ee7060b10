//! A receiver of events, for trying things out.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::net::TcpListener;

use super::secret::Secret;

/// Maximum length of an event that is read, in bytes.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Maximum time for a connection.
const PATIENCE: Duration = Duration::from_secs(15);

/// Time by which an attempt's own may be off, in seconds (Standard Webhooks 1.0).
const MAX_SKEW_SECONDS: u64 = 300;

/// An attempt that came.
#[derive(Debug)]
pub struct Received {
    /// Its `webhook-id`.
    pub id: String,
    /// Verdict on its signature, for people.
    pub verdict: &'static str,
    /// Its body.
    pub body: String,
}

/// Answers attempts with 204, or with 400 if they aren't signed by the secret, if there is one. `take` is given each.
///
/// # Errors
///
/// If no connection can be accepted.
pub async fn receive(
    listener: TcpListener,
    secret: Option<&Secret>,
    take: impl Fn(Received) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let (socket, _) = listener.accept().await.context("can't accept")?;
        let answer = service_fn(|request| answer(request, secret, &take));
        // One connection after another, each for one request, so that lines are in order.
        let served = http1::Builder::new()
            .keep_alive(false)
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(socket), answer);
        let _ = tokio::time::timeout(PATIENCE, served).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    secret: Option<&Secret>,
    take: &impl Fn(Received) -> anyhow::Result<()>,
) -> anyhow::Result<Response<Empty<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
    let mut response = Response::new(Empty::new());
    let Ok(body) = body else {
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(response);
    };
    let body = body.to_bytes();
    let fault = secret.and_then(|secret| fault(&head.headers, &body, secret));
    *response.status_mut() = match fault {
        None => StatusCode::NO_CONTENT,
        Some(_) => StatusCode::BAD_REQUEST,
    };
    take(Received {
        id: header(&head.headers, "webhook-id").to_owned(),
        verdict: match (secret, fault) {
            (None, _) => "not verified",
            (Some(_), None) => "verified",
            (Some(_), Some(fault)) => fault,
        },
        body: String::from_utf8_lossy(&body).into_owned(),
    })?;
    Ok(response)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or("-")
}

/// Returns the fault of an attempt's signature.
fn fault(headers: &HeaderMap, body: &[u8], secret: &Secret) -> Option<&'static str> {
    let Ok(sent) = header(headers, "webhook-timestamp").parse::<i64>() else {
        return Some("refused: there is no webhook-timestamp");
    };
    if sent.abs_diff(Timestamp::now().as_second()) > MAX_SKEW_SECONDS {
        return Some("refused: webhook-timestamp is more than five minutes off");
    }
    let id = header(headers, "webhook-id");
    let signatures = header(headers, "webhook-signature");
    match secret.verifies(id, sent, body, signatures) {
        true => None,
        false => Some("refused: webhook-signature isn't by this secret"),
    }
}
