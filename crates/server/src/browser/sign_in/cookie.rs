//! The session's cookie: for this host only, never readable by scripts, never sent along by other sites. Beyond loopback it has the
//! `__Host-` prefix and is `Secure`, so that it exists over HTTPS only: a proxy in front has to speak it.

use http::HeaderValue;
use http::header::COOKIE;

use super::token::Token;
use crate::browser::PageRequest;
use crate::browser::hosts::is_loopback;

/// Name on loopback. Ports share cookies: so do servers side by side on one machine.
const LOCAL: &str = "vitrine_session";

/// Name beyond loopback. Browsers take it only with `Secure`, `Path=/` and no `Domain`.
const SECURE: &str = "__Host-vitrine_session";

fn name(request: &PageRequest) -> &'static str {
    match is_loopback(request.host.as_deref()) {
        true => LOCAL,
        false => SECURE,
    }
}

/// Returns the token in the cookie of a request. Of several cookies of the name, none counts.
pub(super) fn token(request: &PageRequest) -> Option<Token> {
    let lines = request.headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    let named = pairs.filter_map(|pair| pair.trim().split_once('='));
    let mut values = named.filter(|(own, _)| *own == name(request));
    match (values.next(), values.next()) {
        (Some((_, value)), None) => Token::parse(value),
        _ => None,
    }
}

/// Returns the header that sets the cookie.
pub(super) fn set(request: &PageRequest, token: &Token) -> Option<HeaderValue> {
    header(request, &token.reveal(), "")
}

/// Returns the header that deletes the cookie.
pub(super) fn delete(request: &PageRequest) -> Option<HeaderValue> {
    header(request, "", "; Max-Age=0")
}

fn header(request: &PageRequest, value: &str, rest: &str) -> Option<HeaderValue> {
    let name = name(request);
    let secure = if name == SECURE { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{rest}");
    HeaderValue::from_str(&text).ok()
}
