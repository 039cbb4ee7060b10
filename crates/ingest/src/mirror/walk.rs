//! The whole catalog of a source without a feed, page by page, as of one moment.
//!
//! The source may change during a walk, and then the pages are a mixture of two catalogs. So each walk is followed by a
//! revalidation of all pages by their entity tags, which is cheap: if none has changed, all were current at the same moment.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};

use anyhow::{Context as _, bail};
use sha2::{Digest, Sha256};
use vitrine_client::{ApiVersion, Json, Page, ProductsRequest};

use super::NO_TEMPORARY_FILE;
use super::pending::{MAX_CATALOG_BYTES, MAX_PRODUCTS, code_of, one_line};
use super::source::Source;
use crate::load::report::shown;

/// Path of the list.
pub(super) const PATH: &str = "/v2/product";
/// Maximum number of products of a page (docs/contract/listing.md#limit).
const PAGE_PRODUCTS: u16 = 500;
/// Maximum number of pages of a catalog.
pub(super) const MAX_PAGES: usize = MAX_PRODUCTS / PAGE_PRODUCTS as usize;
/// Maximum length of a cursor, in bytes.
const MAX_CURSOR_BYTES: usize = 1_024;
/// Maximum length of an entity tag that is kept, in bytes.
const MAX_TAG_BYTES: usize = 256;
/// Maximum number of walks of a catalog that changes meanwhile.
const MAX_WALKS: usize = 5;

/// Pages of a walk, up to the empty one at its end.
#[derive(Debug)]
pub(super) struct Walk {
    pages: Vec<SeenPage>,
    pub(super) products: u64,
    version: ApiVersion,
}

/// A page that was read.
#[derive(Debug)]
struct SeenPage {
    /// Cursor before it; none of the first one.
    after: Option<String>,
    etag: Option<String>,
    /// Digest of its products, for sources without entity tags.
    digest: [u8; 32],
}

impl Walk {
    /// Returns true if the source still has exactly these pages.
    ///
    /// # Errors
    ///
    /// If the source doesn't respond.
    pub(super) async fn is_current(&self, source: &Source) -> anyhow::Result<bool> {
        for seen in &self.pages {
            let request = request(source, self.version, seen.after.as_deref());
            let page = match &seen.etag {
                Some(etag) => request.page_unless(etag).await,
                None => request.page().await.map(Some),
            };
            let page = page.map_err(|error| source.failed(&target(seen.after.as_deref()), error));
            if page?.is_some_and(|page| digest(&page) != seen.digest) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Writes the products of the source to `file`, one per line, unchanged, as of one moment.
///
/// # Errors
///
/// If the source doesn't respond, violates the contract, or changes during each walk.
pub(super) async fn read(
    source: &Source,
    version: ApiVersion,
    mut file: &File,
) -> anyhow::Result<Walk> {
    for _ in 0..MAX_WALKS {
        file.set_len(0).context(NO_TEMPORARY_FILE)?;
        file.rewind().context(NO_TEMPORARY_FILE)?;
        let walk = walk(source, version, file, MAX_PAGES).await?;
        if walk.is_current(source).await? {
            return Ok(walk);
        }
    }
    bail!(
        "the catalog of {} changed during each of {MAX_WALKS} walks; try again when it changes less often",
        source.base()
    )
}

async fn walk(
    source: &Source,
    version: ApiVersion,
    file: &File,
    max_pages: usize,
) -> anyhow::Result<Walk> {
    let mut out = BufWriter::new(file);
    let (mut pages, mut products, mut bytes) = (Vec::new(), 0, 0);
    let (mut after, mut codes) = (None, HashSet::new());
    loop {
        let target = target(after.as_deref());
        let page = request(source, version, after.as_deref()).page().await;
        let page = page.map_err(|error| source.failed(&target, error))?;
        let next = check(&page, &mut codes).map_err(|error| source.failed(&target, error))?;
        for product in &page.catalog {
            bytes += product.get().len() as u64;
            writeln!(out, "{}", one_line(product)).context(NO_TEMPORARY_FILE)?;
        }
        products += page.catalog.len() as u64;
        pages.push(SeenPage {
            after,
            digest: digest(&page),
            // Tags wait in memory, for as many pages as there are.
            etag: page.etag.filter(|tag| tag.len() <= MAX_TAG_BYTES),
        });
        let Some(next) = next else {
            break;
        };
        if pages.len() > max_pages || bytes > MAX_CATALOG_BYTES {
            bail!("the catalog has more than {max_pages} pages or {MAX_CATALOG_BYTES} bytes");
        }
        after = Some(next);
    }
    out.flush().context(NO_TEMPORARY_FILE)?;
    Ok(Walk {
        pages,
        products,
        version,
    })
}

/// Checks that a page continues a walk of products with these codes. Returns the next cursor; `None` of an empty page, which
/// is the end.
fn check(page: &Page<Json>, codes: &mut HashSet<Box<str>>) -> anyhow::Result<Option<String>> {
    if page.catalog.is_empty() {
        return Ok(None);
    }
    if page.catalog.len() > usize::from(PAGE_PRODUCTS) {
        bail!("the page has more than {PAGE_PRODUCTS} products");
    }
    for product in &page.catalog {
        let code = code_of(product)?;
        if !codes.insert(code.as_str().into()) {
            let code = shown(&format!("{code:?}"));
            bail!("the product {code} was on an earlier page; cursors must not lead back");
        }
    }
    let after = page.pagination.cursors.after.clone();
    let after = after.context("a page with products has no cursor `after`")?;
    if after.is_empty() || after.len() > MAX_CURSOR_BYTES {
        bail!("its cursor `after` is empty, or longer than {MAX_CURSOR_BYTES} bytes");
    }
    Ok(Some(after))
}

fn request(source: &Source, version: ApiVersion, after: Option<&str>) -> ProductsRequest<Json> {
    let products = source.client(version).products().limit(PAGE_PRODUCTS);
    match after {
        Some(after) => products.after(after).read_as(),
        None => products.read_as(),
    }
}

/// Returns what messages name a page by.
fn target(after: Option<&str>) -> String {
    match after {
        Some(after) => format!("{PATH}?limit={PAGE_PRODUCTS}&after={}", shown(after)),
        None => format!("{PATH}?limit={PAGE_PRODUCTS}"),
    }
}

fn digest(page: &Page<Json>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for product in &page.catalog {
        digest.update(product.get());
        digest.update("\n");
    }
    digest.update(page.pagination.cursors.after.as_deref().unwrap_or_default());
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::TcpListener;
    use std::sync::mpsc::{self, Receiver};

    use super::*;
    use crate::mirror::NEWEST;
    use crate::mirror::source::Insecure;

    /// Starts a source of one product, whose name and tags change after this number of requests. Returns its address, and the
    /// entity tags of requests.
    fn source(changes_after: usize) -> (Source, Receiver<Option<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (asked, tags) = mpsc::channel();
        std::thread::spawn(move || {
            for (number, socket) in listener.incoming().map_while(Result::ok).enumerate() {
                let lines = BufReader::new(&socket).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let tag_asked = head
                    .iter()
                    .find_map(|line| line.strip_prefix("if-none-match: "));
                let name = ["old", "new"][usize::from(number >= changes_after)];
                let (tag, body) = match head[0].contains("after=A") {
                    true => (
                        "\"end\"".to_owned(),
                        r#"{"catalog":[],"pagination":{"cursors":{"before":null,"after":null}}}"#
                            .to_owned(),
                    ),
                    false => (
                        format!("\"{name}\""),
                        format!(
                            r#"{{"catalog":[{{"code":"A","name":"{name}"}}],"pagination":{{"cursors":{{"before":"A","after":"A"}}}}}}"#
                        ),
                    ),
                };
                let (status, body) = match tag_asked == Some(&tag) {
                    true => ("304 Not Modified", String::new()),
                    false => ("200 OK", body),
                };
                let length = body.len();
                let _ = write!(
                    &socket,
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nETag: {tag}\r\n\
                     Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _ = asked.send(tag_asked.map(str::to_owned));
            }
        });
        let source = Source::new(&base, "a.b", Insecure::Refuse, 0);
        (source.unwrap(), tags)
    }

    #[tokio::test]
    async fn catalog_with_more_pages_than_the_maximum_is_refused() {
        let (source, _tags) = source(usize::MAX);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(walk(&source, NEWEST, &file, 1).await.unwrap().products, 1);
        let refused = walk(&source, NEWEST, &file, 0).await.unwrap_err();
        assert!(
            refused.to_string().contains("more than 0 pages"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn changed_catalog_is_walked_again_until_its_tags_stay() {
        // The catalog changes before the first page is revalidated, or never.
        for (changes_after, name, expected) in [(2, "new", 7), (usize::MAX, "old", 4)] {
            let (source, tags) = source(changes_after);
            let mut file = tempfile::tempfile().unwrap();
            let walk = read(&source, NEWEST, &file).await.unwrap();
            assert_eq!(walk.products, 1);
            let mut lines = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut lines).unwrap();
            assert_eq!(lines, format!("{{\"code\":\"A\",\"name\":\"{name}\"}}\n"));
            let tags: Vec<Option<String>> = tags.iter().take(expected).collect();
            let last = [format!("\"{name}\""), "\"end\"".to_owned()].map(Some);
            assert_eq!(tags[expected - 2..], last);
            assert_eq!(tags[..2], [None, None]);
        }
    }
}
