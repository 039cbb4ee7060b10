//! Requests to the changes feed and what comes back, and walks of everything by it and by the list.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::contender::Running;
use crate::http::{self, Client};
use crate::process;

/// Products of a page of a walk: as many as there may be.
const PAGE: u64 = 500;

/// Answer of the feed, as far as a client needs it to go on.
pub struct Answer<'b> {
    /// True if there are no changes.
    pub is_empty: bool,
    /// The token for the next request.
    pub next: &'b str,
    /// True if more follows at once.
    pub has_more: bool,
}

impl<'b> Answer<'b> {
    /// Reads the end of a body, since parsing all of it would cost more than what is measured.
    ///
    /// # Errors
    /// If it isn't an answer of the feed.
    pub fn read(body: &'b [u8]) -> Result<Self> {
        let text = std::str::from_utf8(body)?;
        let (changes, end) = text.rsplit_once("],\"next\":\"").context("no token")?;
        let (next, end) = end.split_once('"').context("no end of the token")?;
        let has_more = match end {
            ",\"has_more\":true}" => true,
            ",\"has_more\":false}" => false,
            _ => bail!("an answer ends with {end}"),
        };
        Ok(Self {
            is_empty: changes == "{\"changes\":[",
            next,
            has_more,
        })
    }
}

/// Returns the path that asks for changes since a token; waits so many seconds for them.
pub fn path(since: &str, wait: u64) -> String {
    format!("/v2/product/changes?since={since}&wait={wait}")
}

/// Cost of a walk of everything.
pub struct Walk {
    /// User and system time of the server.
    pub cpu: Duration,
    /// Number of requests.
    pub requests: u64,
    /// Length of all bodies, in bytes.
    pub bytes: usize,
    /// Last token, or last code of the list.
    pub end: String,
}

/// Walks all products by the feed, as a copy is begun.
///
/// # Errors
/// If an answer isn't what it should be.
pub fn bootstrap(server: &Running) -> Result<Walk> {
    walk(server, |client, place| {
        let path = match place {
            None => format!("/v2/product/changes?limit={PAGE}"),
            Some(token) => format!("/v2/product/changes?limit={PAGE}&since={token}"),
        };
        let body = get(server, client, &path)?;
        let answer = Answer::read(&body)?;
        Ok((body.len(), answer.next.to_owned(), answer.has_more))
    })
}

/// Walks all products by the list.
///
/// # Errors
/// If an answer isn't what it should be.
pub fn list(server: &Running, products: u64) -> Result<Walk> {
    let mut pages = 0;
    walk(server, |client, place| {
        let path = match place {
            None => format!("/v2/product?limit={PAGE}"),
            Some(code) => format!("/v2/product?limit={PAGE}&after={code}"),
        };
        let body = get(server, client, &path)?;
        let text = std::str::from_utf8(&body)?;
        let (_, end) = text.rsplit_once("\"after\":\"").context("no cursor")?;
        let (after, _) = end.split_once('"').context("no end of the cursor")?;
        pages += 1;
        Ok((body.len(), after.to_owned(), pages * PAGE < products))
    })
}

/// Asks page by page: `next` gives the length of a page, where the next one begins, and whether there is one.
fn walk(
    server: &Running,
    mut next: impl FnMut(&mut Client, Option<&str>) -> Result<(usize, String, bool)>,
) -> Result<Walk> {
    let mut client = Client::connect(server.address)?;
    let before = process::cpu_of_threads(server.process.id())?;
    let (mut requests, mut bytes, mut place) = (0, 0, None);
    let end = loop {
        let (length, end, goes_on) = next(&mut client, place.as_deref())?;
        requests += 1;
        bytes += length;
        if !goes_on {
            break end;
        }
        place = Some(end);
    };
    let after = process::cpu_of_threads(server.process.id())?;
    Ok(Walk {
        cpu: after.saturating_sub(before),
        requests,
        bytes,
        end,
    })
}

/// Returns the token of now, given an earlier one.
///
/// # Errors
/// If an answer isn't what it should be.
pub fn follow(server: &Running, token: &str) -> Result<String> {
    let mut client = Client::connect(server.address)?;
    let mut token = token.to_owned();
    loop {
        let body = get(server, &mut client, &path(&token, 0))?;
        let answer = Answer::read(&body)?;
        answer.next.clone_into(&mut token);
        if answer.is_empty && !answer.has_more {
            return Ok(token);
        }
    }
}

fn get(server: &Running, client: &mut Client, path: &str) -> Result<Vec<u8>> {
    let http::Response { head, body } = client.get(path, &[("X-Api-Key", &server.key)])?;
    if head.status != 200 {
        bail!(
            "{path} is answered with {}: {}",
            head.status,
            String::from_utf8_lossy(&body)
        );
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_from_their_end() {
        let empty = Answer::read(br#"{"changes":[],"next":"c1_a","has_more":false}"#);
        let empty = empty.expect("an answer");
        assert!(empty.is_empty && !empty.has_more && empty.next == "c1_a");
        let body = br#"{"changes":[{"code":"A","product":{"x":[],"next":"no"}}],"next":"c1_b","has_more":true}"#;
        let full = Answer::read(body).expect("an answer");
        assert!(!full.is_empty && full.has_more && full.next == "c1_b");
        assert!(Answer::read(br#"{"changes":[],"next":"c1_a""#).is_err());
    }
}
