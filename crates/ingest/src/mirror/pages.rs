//! Whole catalog of the source, page by page, as of one moment.
//!
//! The source may change during the walk, and then the pages are a mixture of two catalogs. So each walk is followed by
//! a revalidation of all pages by their tags, which is cheap: if none has changed, all were current at the same moment.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Seek as _, Write};

use anyhow::{Context as _, bail};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, ETAG};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::NO_TEMPORARY_FILE;
use super::source::{Source, WithKey};
use super::version::SourceVersion;
use crate::load::report::shown;
use crate::outside::Answer;

/// Maximum number of products of a page (docs/contract/listing.md#limit).
const PAGE_PRODUCTS: usize = 500;
/// Maximum length of a page, in bytes.
pub(super) const MAX_PAGE_BYTES: usize = 64 << 20;
/// Maximum length of a cursor, in bytes: it has to fit into a URL.
const MAX_CURSOR_BYTES: usize = 1_024;
/// Maximum number of products of a catalog.
pub(super) const MAX_PRODUCTS: usize = 10_000_000;
/// Maximum number of pages of a catalog.
pub(super) const MAX_PAGES: usize = MAX_PRODUCTS / PAGE_PRODUCTS;
/// Maximum length of a tag for revalidation, in bytes. A page with a longer one is compared by its digest.
const MAX_TAG_BYTES: usize = 256;
/// Maximum length of all products, in bytes.
pub(super) const MAX_CATALOG_BYTES: u64 = 64 << 30;
/// Maximum number of walks of a catalog that changes meanwhile.
const MAX_WALKS: usize = 5;

/// A page that was read.
#[derive(Debug)]
struct SeenPage {
    target: String,
    tag: Option<HeaderValue>,
    digest: [u8; 32],
}

impl SeenPage {
    /// Returns the page of a response, without references to the response's memory.
    fn new(target: String, answer: &Answer) -> Self {
        let tag = answer.headers.get(ETAG).map(HeaderValue::as_bytes);
        let tag = tag.filter(|tag| tag.len() <= MAX_TAG_BYTES);
        Self {
            target,
            // Copied, because a header shares its buffer with the start of the page.
            tag: tag.and_then(|tag| HeaderValue::from_bytes(tag).ok()),
            digest: Sha256::digest(&answer.body).into(),
        }
    }
}

/// Pages of a walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pages: Vec<SeenPage>,
    products: usize,
    bytes: u64,
    /// API version of the first page.
    version: SourceVersion,
}

impl Walk {
    /// Returns the number of products.
    pub(super) fn products(&self) -> usize {
        self.products
    }

    /// Returns true if the source still has exactly these pages.
    ///
    /// # Errors
    ///
    /// If the source doesn't respond.
    pub(super) async fn is_current(&self, source: &Source) -> anyhow::Result<bool> {
        for SeenPage {
            target,
            tag,
            digest,
        } in &self.pages
        {
            let answer = source
                .get(target, WithKey::Yes, tag.as_ref(), MAX_PAGE_BYTES)
                .await?;
            let is_same = match answer.status {
                304 if tag.is_some() => true,
                200 => Sha256::digest(&answer.body).as_slice() == digest,
                _ => return Err(source.unexpected(target, &answer)),
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(self.version == source.version())
    }
}

/// Writes the products of the source to `file`, one per line, unchanged, as of one moment.
///
/// # Errors
///
/// If the source doesn't respond, violates the contract, or changes during each walk.
pub(super) async fn read(source: &Source, file: &mut File) -> anyhow::Result<Walk> {
    source.look_again();
    for _ in 0..MAX_WALKS {
        file.set_len(0).context(NO_TEMPORARY_FILE)?;
        file.rewind().context(NO_TEMPORARY_FILE)?;
        let walk = walk(source, file).await?;
        if walk.is_current(source).await? {
            return Ok(walk);
        }
    }
    bail!(
        "the catalog of {} changed during each of {MAX_WALKS} walks; try again when it changes less often",
        source.base()
    )
}

async fn walk(source: &Source, file: &File) -> anyhow::Result<Walk> {
    let mut out = BufWriter::new(file);
    let mut walk = Walk::default();
    let mut codes = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let target = target(cursor.as_deref());
        let answer = source
            .get(&target, WithKey::Yes, None, MAX_PAGE_BYTES)
            .await?;
        if answer.status != 200 {
            return Err(source.unexpected(&target, &answer));
        }
        if walk.pages.is_empty() {
            walk.version = source.version();
        }
        let next = walk
            .take(&answer, cursor.as_deref(), &mut codes, &mut out)
            .map_err(|error| source.wrong(&target, &format!("status 200, but {error:#}")))?;
        walk.pages.push(SeenPage::new(target, &answer));
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    out.flush().context(NO_TEMPORARY_FILE)?;
    Ok(walk)
}

fn target(cursor: Option<&str>) -> String {
    let after = cursor.map(|cursor| {
        let cursor = utf8_percent_encode(cursor, NON_ALPHANUMERIC);
        format!("&after={cursor}")
    });
    format!(
        "/v2/product?limit={PAGE_PRODUCTS}{}",
        after.unwrap_or_default()
    )
}

/// A page (docs/contract/listing.md#cursors). `Link` headers are ignored: a cursor can't lead to another server.
#[derive(Deserialize)]
struct Page<'p> {
    #[serde(borrow)]
    catalog: Vec<&'p RawValue>,
    #[serde(borrow)]
    pagination: Pagination<'p>,
}

#[derive(Deserialize)]
struct Pagination<'p> {
    #[serde(borrow)]
    cursors: Cursors<'p>,
}

#[derive(Deserialize)]
struct Cursors<'p> {
    #[serde(borrow)]
    after: Option<Cow<'p, str>>,
}

/// Checks that an answer says that it is JSON.
pub(super) fn check_json(answer: &Answer) -> anyhow::Result<()> {
    let is_json = answer
        .headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/json"));
    if !is_json {
        bail!("it isn't application/json; is that the address of a server of this API?");
    }
    Ok(())
}

/// Returns the code of a product on a page.
pub(super) fn code_of(product: &RawValue) -> anyhow::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Coded<'p> {
        #[serde(borrow)]
        code: Cow<'p, str>,
    }
    let Coded { code } =
        serde_json::from_str(product.get()).context("the page has a product without a code")?;
    Ok(code)
}

/// Returns a product on one line. Line breaks within strings are escaped, so these are between values.
pub(super) fn one_line(product: &RawValue) -> Cow<'_, str> {
    match product.get().contains(['\n', '\r']) {
        true => Cow::Owned(product.get().replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(product.get()),
    }
}

impl Walk {
    /// Writes the products of a page, none of which may be among `codes`. Returns the cursor of the next page; `None`
    /// after an empty page, which is the end.
    fn take(
        &mut self,
        answer: &Answer,
        cursor: Option<&str>,
        codes: &mut HashSet<Box<str>>,
        out: &mut impl Write,
    ) -> anyhow::Result<Option<String>> {
        check_json(answer)?;
        let Page {
            catalog,
            pagination,
        } = serde_json::from_slice(&answer.body).context("it isn't a page of this API")?;
        if catalog.is_empty() {
            return Ok(None);
        }
        if self.pages.len() >= MAX_PAGES {
            bail!("the catalog has more than {MAX_PAGES} pages; do its cursors end?");
        }
        if catalog.len() > PAGE_PRODUCTS {
            bail!("the page has more than {PAGE_PRODUCTS} products");
        }
        for product in catalog {
            let code = code_of(product)?;
            self.bytes += product.get().len() as u64;
            if !codes.insert(code.as_ref().into()) {
                let code = shown(&format!("{code:?}"));
                bail!("the product {code} was on an earlier page; cursors must not lead back");
            }
            writeln!(out, "{}", one_line(product)).context(NO_TEMPORARY_FILE)?;
        }
        self.products = codes.len();
        if self.products > MAX_PRODUCTS || self.bytes > MAX_CATALOG_BYTES {
            bail!("the catalog has more than {MAX_PRODUCTS} products or {MAX_CATALOG_BYTES} bytes");
        }
        let after = pagination.cursors.after;
        match after.filter(|after| !after.is_empty() && after.len() <= MAX_CURSOR_BYTES) {
            Some(after) if cursor != Some(after.as_ref()) => Ok(Some(after.into_owned())),
            Some(_) => bail!("its cursor `after` doesn't advance"),
            None => bail!("a page with products has no cursor `after`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;

    /// Returns a page of one product.
    fn answer(code: &str) -> Answer {
        let body = format!(
            r#"{{"catalog":[{{"code":"{code}"}}],"pagination":{{"cursors":{{"after":"{code}"}}}}}}"#
        );
        let json = HeaderValue::from_static("application/json");
        Answer {
            status: 200,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
            body: body.into_bytes(),
        }
    }

    #[test]
    fn seen_page_does_not_keep_its_buffer() {
        let buffer = Bytes::from(vec![b'"'; 400_000]);
        for (length, is_kept) in [(40, true), (MAX_TAG_BYTES, true), (399_999, false)] {
            let mut answer = answer("A");
            let tag = HeaderValue::from_maybe_shared(buffer.slice(1..=length)).unwrap();
            answer.headers.insert(ETAG, tag.clone());
            let seen = SeenPage::new(String::new(), &answer);
            assert_eq!(seen.tag, is_kept.then_some(tag));
            drop(answer);
            assert!(buffer.is_unique(), "{length}");
        }
    }

    #[test]
    fn endless_source_is_refused() {
        let mut walk = Walk::default();
        let take = |walk: &mut Walk, number: usize| {
            let code = format!("P{number}");
            let taken = walk.take(&answer(&code), None, &mut HashSet::new(), &mut Vec::new());
            taken.map_err(|error| error.to_string())
        };
        for number in 0..MAX_PAGES {
            assert!(take(&mut walk, number).is_ok());
            walk.pages.push(SeenPage::new(String::new(), &answer("P")));
        }
        let refused = take(&mut walk, MAX_PAGES).unwrap_err();
        assert!(refused.contains("more than 20000 pages"), "{refused}");
    }
}
