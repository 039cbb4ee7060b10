//! The source's feed of changes (docs/contract/changes.md): one request and its answer.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vitrine_model::code::ProductCode;
use vitrine_wire::error::ErrorType;

use super::pages::{MAX_PAGE_BYTES, check_json, code_of, one_line};
use super::source::{MAX_WAIT, Source, error_type};
use crate::load::report::shown;
use crate::outside::Answer;
use crate::outside::retry::retry_after;

/// The feed; without parameters, the answer of a server that has none is the one for a product that doesn't exist.
const PATH: &str = "/v2/product/changes";

/// Maximum length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 400;

/// Maximum number of changes of an answer.
const MAX_CHANGES: usize = 500;

/// A token of the source: safe in a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Token(String);

impl TryFrom<String> for Token {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_token = (1..=MAX_TOKEN_BYTES).contains(&text.len());
        match is_token && text.bytes().all(is_token_byte) {
            true => Ok(Self(text)),
            false => Err("`next` isn't a token"),
        }
    }
}

impl Token {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request for changes.
#[derive(Debug)]
pub(super) struct Request<'t> {
    /// Token of what is known; none for all products.
    pub(super) since: Option<&'t Token>,
    /// True if the source may hold the answer back until there is a change.
    pub(super) waits: bool,
    /// True if the source is known to have a feed.
    pub(super) is_known: bool,
}

/// Answer to a request for changes.
#[derive(Debug)]
pub(super) enum FeedAnswer {
    /// A page of changes.
    Page(Page),
    /// The token can't be continued: the copy has to begin anew.
    Gone,
    /// The source has no feed.
    Absent,
}

/// A page of changes.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) changes: Vec<Change>,
    pub(super) next: Token,
    pub(super) has_more: bool,
    /// Pause that the source wants before the next request.
    pub(super) pause: Option<Duration>,
}

/// A change of one product.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) code: String,
    /// The product on one line; none if it isn't visible any more.
    pub(super) product: Option<String>,
}

/// Asks for changes.
///
/// # Errors
///
/// If the source can't be asked, or doesn't answer as the contract says.
pub(super) async fn ask(source: &Source, request: Request<'_>) -> anyhow::Result<FeedAnswer> {
    let query = request.since.map(|Token(token)| match request.waits {
        true => format!("?since={token}&wait={}", MAX_WAIT.as_secs()),
        false => format!("?since={token}"),
    });
    let is_begun = query.is_some();
    let is_known = request.is_known || is_begun;
    // Errors don't repeat the token: it says nothing, and is long.
    let query = query.unwrap_or_default();
    let answer = source.get_held_back(PATH, &query, MAX_PAGE_BYTES).await?;
    let kind = error_type(&answer.body);
    match answer.status {
        200 => {}
        // Of a source that has a feed, a stray refusal of a gateway isn't its word.
        404 if !is_known || kind == Some(ErrorType::NotFound) => return Ok(FeedAnswer::Absent),
        // Gateways and servers of another make.
        403 | 405 | 501 if !is_known && kind.is_none() => return Ok(FeedAnswer::Absent),
        410 if is_begun && kind == Some(ErrorType::ChangesGone) => return Ok(FeedAnswer::Gone),
        // The token's form isn't known there.
        400 if is_begun && is_about_parameters(kind) => return Ok(FeedAnswer::Gone),
        _ => return Err(source.unexpected(PATH, &answer)),
    }
    let page = parse(&answer)
        .map_err(|error| source.wrong(PATH, &format!("status 200, but {error:#}")))?;
    Ok(FeedAnswer::Page(page))
}

fn is_about_parameters(kind: Option<ErrorType>) -> bool {
    matches!(
        kind,
        Some(ErrorType::PaginationError | ErrorType::BadRequest)
    )
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    changes: Vec<ChangeBody<'b>>,
    next: Token,
    has_more: bool,
}

#[derive(Deserialize)]
struct ChangeBody<'b> {
    #[serde(borrow)]
    code: Cow<'b, str>,
    /// Never an `Option`: a product that is left out isn't `null`.
    #[serde(borrow)]
    product: &'b RawValue,
}

fn parse(answer: &Answer) -> anyhow::Result<Page> {
    check_json(answer)?;
    let Body {
        changes,
        next,
        has_more,
    } = serde_json::from_slice(&answer.body).context("it isn't a page of changes")?;
    if changes.len() > MAX_CHANGES {
        bail!("the page has more than {MAX_CHANGES} changes");
    }
    let changes = changes.into_iter().map(|change| {
        let ChangeBody { code, product } = change;
        let is_product = product.get() != "null";
        // Removed codes are checked too: they wait in memory.
        let is_code = code.parse::<ProductCode>().is_ok();
        if !is_code || (is_product && code_of(product)? != code) {
            let code = shown(&format!("{code:?}"));
            bail!("the change of {code} isn't one of a product of that code");
        }
        Ok(Change {
            product: is_product.then(|| one_line(product).into_owned()),
            code: code.into_owned(),
        })
    });
    Ok(Page {
        changes: changes.collect::<anyhow::Result<_>>()?,
        next,
        has_more,
        pause: retry_after(&answer.headers, SystemTime::now()),
    })
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn parsed(body: &str) -> Result<Page, String> {
        let json = HeaderValue::from_static("application/json");
        let answer = Answer {
            status: 200,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
            body: body.as_bytes().to_vec(),
        };
        parse(&answer).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn changes_are_read_to_the_letter() {
        let page = parsed(
            "{\"changes\":[{\"code\":\"A\",\"product\":{\"code\":\"A\",\n\"n\":1.0E+2}},{\"code\":\"B\",\"product\":null}],\
             \"next\":\"c1_x-Y\",\"has_more\":true,\"later\":1}",
        );
        let page = page.unwrap();
        let expected = [
            ("A", Some(r#"{"code":"A", "n":1.0E+2}"#)),
            ("B", None::<&str>),
        ];
        let expected = expected.map(|(code, product)| Change {
            code: code.to_owned(),
            product: product.map(str::to_owned),
        });
        assert_eq!(page.changes, expected);
        assert_eq!(page.next, Token("c1_x-Y".to_owned()));
        assert!(page.has_more);
    }

    #[test]
    fn pages_that_break_the_contract_are_refused() {
        let rest = r#""has_more":false"#;
        let long = "x".repeat(401);
        for (body, expected) in [
            ("[]".to_owned(), "a page of changes"),
            (
                format!(r#"{{"changes":[],{rest}}}"#),
                "missing field `next`",
            ),
            (format!(r#"{{"changes":[],"next":"",{rest}}}"#), "a token"),
            (
                format!(r#"{{"changes":[],"next":"{long}",{rest}}}"#),
                "a token",
            ),
            (
                format!(r#"{{"changes":[],"next":"a&b",{rest}}}"#),
                "a token",
            ),
            (
                format!(r#"{{"changes":[{{"code":"A"}}],"next":"x",{rest}}}"#),
                "missing field `product`",
            ),
            (
                format!(
                    r#"{{"changes":[{{"code":"A","product":{{"code":"B"}}}}],"next":"x",{rest}}}"#
                ),
                "isn't one of a product of that code",
            ),
            (
                format!(r#"{{"changes":[{{"code":"A","product":7}}],"next":"x",{rest}}}"#),
                "a product without a code",
            ),
            (
                format!(r#"{{"changes":[{{"code":"{long}","product":null}}],"next":"x",{rest}}}"#),
                "isn't one of a product of that code",
            ),
        ] {
            let refused = parsed(&body).unwrap_err();
            assert!(refused.contains(expected), "{body}: {refused}");
        }
    }
}
