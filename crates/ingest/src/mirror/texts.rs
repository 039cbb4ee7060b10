//! Markdown of the source's texts, for mirrors that have texts of their own.
//!
//! A text of the source has the address `…/v2/texts/DIGEST.md`. It is fetched once per digest, always from the source
//! itself, and only if the store doesn't have it: an unchanged catalog costs no request. Other addresses stay
//! addresses.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek as _, Write as _};
use std::ops::Range;

use anyhow::{Context as _, anyhow};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use vitrine_model::content::{TextDigest, TextName};
use vitrine_store::Store;
use vitrine_store::record::Moment;

use super::NO_TEMPORARY_FILE;
use super::source::Source;
use crate::text_spool::TextSpool;

/// Maximum number of concurrent requests.
const AT_A_TIME: usize = 8;

/// Puts the Markdown into the records of `file`. Returns the file to load: the same one, if the store has all texts in
/// place.
///
/// # Errors
///
/// If a text can't be fetched, or doesn't match its digest.
pub(super) async fn bring(source: &Source, store: &Store, file: File) -> anyhow::Result<File> {
    let mut wanted = BTreeSet::new();
    for_each_line(&file, |line| {
        wanted.extend(
            new_texts(store, line)?
                .into_iter()
                .map(|(_, digest)| digest),
        );
        Ok(())
    })?;
    if wanted.is_empty() {
        return Ok(file);
    }
    let mut spool = fetch_new(source, store, wanted).await?;
    let mut out = BufWriter::new(tempfile::tempfile().context(NO_TEMPORARY_FILE)?);
    for_each_line(&file, |line| {
        let line = with_markdown(store, line, &mut spool, source)?;
        writeln!(out, "{line}").context(NO_TEMPORARY_FILE)
    })?;
    out.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .context(NO_TEMPORARY_FILE)
}

fn for_each_line(
    mut file: &File,
    mut take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    file.rewind().context(NO_TEMPORARY_FILE)?;
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        take(line.trim_end_matches('\n'))?;
        line.clear();
    }
    Ok(())
}

/// Returns the texts of a record that the source has, and that aren't live under the same names.
fn new_texts(store: &Store, line: &str) -> anyhow::Result<Vec<(TextName, TextDigest)>> {
    let Some((_, content)) = content_of(line) else {
        return Ok(Vec::new());
    };
    let text = |name: TextName| {
        let address = content.get(&url_key(name))?.as_str()?;
        Some((name, TextDigest::in_address(address)?))
    };
    let mut texts: Vec<_> = TextName::ALL.into_iter().filter_map(text).collect();
    if texts.is_empty() {
        return Ok(texts);
    }
    #[derive(Deserialize)]
    struct Coded {
        code: String,
    }
    let code = serde_json::from_str(line)
        .ok()
        .and_then(|Coded { code }| code.parse().ok());
    let live = match code {
        Some(code) => store.base_product(&code, Moment::Live)?,
        // A fault, which the load reports.
        None => None,
    };
    if let Some(live) = live {
        texts.retain(|(name, digest)| {
            let is_live =
                |own: &vitrine_store::record::OwnText| own.name == *name && own.digest == *digest;
            !live.own_texts.iter().any(is_live)
        });
    }
    Ok(texts)
}

fn url_key(name: TextName) -> String {
    format!("{}_markdown_url", name.as_str())
}

/// Returns the content resources of a record, and their range. A faulty record has none: the load reports it.
fn content_of(line: &str) -> Option<(Range<usize>, Map<String, Value>)> {
    type Fields<'f> = HashMap<String, &'f RawValue>;
    let product: Fields<'_> = serde_json::from_str(line).ok()?;
    let payout_type: String = serde_json::from_str(product.get("payout_type")?.get()).ok()?;
    let detail: Fields<'_> = serde_json::from_str(product.get(&payout_type)?.get()).ok()?;
    let content = detail.get("content_resources")?.get();
    // Both are within `line`.
    let start = (content.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    Some((
        start..start + content.len(),
        serde_json::from_str(content).ok()?,
    ))
}

/// Returns a record with Markdown in place of the addresses of new texts.
fn with_markdown(
    store: &Store,
    line: &str,
    spool: &mut TextSpool,
    source: &Source,
) -> anyhow::Result<String> {
    let new = new_texts(store, line)?;
    let Some((range, mut content)) = content_of(line).filter(|_| !new.is_empty()) else {
        return Ok(line.to_owned());
    };
    for (name, digest) in new {
        let key = url_key(name);
        match markdown(spool, store, &digest)? {
            Some(markdown) => {
                content.remove(&key);
                content.insert(format!("{}_md", name.as_str()), Value::String(markdown));
            }
            // Address of another server; the source doesn't have its text.
            None => {
                let target = target(&digest);
                let is_own = content
                    .get(&key)
                    .and_then(Value::as_str)
                    .is_some_and(|address| address.strip_prefix(source.base()) == Some(&target));
                if is_own {
                    let error = anyhow!("status 404 for a text that its catalog names");
                    return Err(source.failed(&target, error));
                }
            }
        }
    }
    let content = serde_json::to_string(&content)?;
    Ok([&line[..range.start], &content, &line[range.end..]].concat())
}

fn target(digest: &TextDigest) -> String {
    format!("/v2/texts/{digest}.md")
}

/// Fetches the texts that the store doesn't have.
async fn fetch_new(
    source: &Source,
    store: &Store,
    wanted: BTreeSet<TextDigest>,
) -> anyhow::Result<TextSpool> {
    let mut missing = Vec::new();
    for digest in wanted {
        if store.text(&digest)?.is_none() {
            missing.push(digest);
        }
    }
    let mut spool = TextSpool::new();
    let texts = missing.into_iter().map(|digest| fetch(source, digest));
    let mut texts = stream::iter(texts).buffer_unordered(AT_A_TIME);
    while let Some(text) = texts.try_next().await? {
        if let Some(markdown) = text {
            spool.put(&markdown).context(NO_TEMPORARY_FILE)?;
        }
    }
    Ok(spool)
}

/// Returns the Markdown, if the source or the store has it.
fn markdown(
    spool: &mut TextSpool,
    store: &Store,
    digest: &TextDigest,
) -> anyhow::Result<Option<String>> {
    if let Some(fetched) = spool.get(digest).context(NO_TEMPORARY_FILE)? {
        return Ok(Some(fetched));
    }
    let held = store.text(digest)?;
    Ok(held.map(|held| held.unpack_as(digest)).transpose()?)
}

/// Fetches a text of the source; `None` if it has none with this digest.
async fn fetch(source: &Source, digest: TextDigest) -> anyhow::Result<Option<String>> {
    let target = target(&digest);
    let url = format!("{}{target}", source.base());
    match source.texts.text(&url).await {
        Ok(markdown) if TextDigest::of(&markdown) == digest => Ok(Some(markdown)),
        Ok(_) => {
            let error = anyhow!("status 200, but the text isn't the one of this digest");
            Err(source.failed(&target, error))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(source.failed(&target, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_resources_are_found_in_a_record() {
        let line = r#"{"payout_type":"voucher","other":{"content_resources":{"a":1}},"voucher":{"n": 1.0E+2, "content_resources" : {"locale": null} , "z":1}}"#;
        let (range, content) = content_of(line).unwrap();
        assert_eq!(&line[range], r#"{"locale": null}"#);
        assert_eq!(content.len(), 1);
        for line in [
            "",
            "[]",
            r#"{"payout_type":"voucher"}"#,
            r#"{"payout_type":1,"voucher":{}}"#,
            r#"{"payout_type":"voucher","voucher":{}}"#,
            r#"{"payout_type":"voucher","voucher":{"content_resources":null}}"#,
        ] {
            assert!(content_of(line).is_none(), "{line}");
        }
    }
}
