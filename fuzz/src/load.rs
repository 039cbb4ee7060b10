//! Input of loads: bytes to records, records to products or findings, and products back to records.

use std::io::{self, BufReader, Read};

use vitrine_ingest::load::check::{CheckedRecord, check as check_record};
use vitrine_ingest::load::read::{Item, Record, Shape, read_plain};
use vitrine_ingest::load::report::{Finding, Place, Severity};
use vitrine_ingest::view::{TextAddresses, document};
use vitrine_model::content::{Content, Text, TextDigest};

use crate::catalog::PUBLIC_URL;

/// Checks an input: the first byte is the size of reads of the rest.
pub fn check(bytes: &[u8]) {
    let [pieces, bytes @ ..] = bytes else {
        return;
    };
    let mut items = Vec::new();
    read_plain("input", bytes, Shape::Whole, &mut |item| items.push(item)).expect("memory");
    check_items(bytes, &items);
    let mut in_pieces = Vec::new();
    let reader = BufReader::with_capacity(usize::from(*pieces) + 1, Pieces::new(bytes, *pieces));
    read_plain("input", reader, Shape::Whole, &mut |item| {
        in_pieces.push(item);
    })
    .expect("memory");
    assert_eq!(items, in_pieces, "in pieces of {pieces}");
}

/// Reader with short reads.
pub struct Pieces<'b> {
    rest: &'b [u8],
    most: usize,
}

impl<'b> Pieces<'b> {
    /// Returns a reader of `most` bytes at a time, at least one.
    #[must_use]
    pub fn new(rest: &'b [u8], most: u8) -> Self {
        let most = usize::from(most).max(1);
        Self { rest, most }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.most.min(buffer.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.rest = rest;
        Ok(length)
    }
}

/// Checks the rules for all that was read.
pub fn check_items(bytes: &[u8], items: &[Item]) {
    // A record or finding takes at least a byte.
    assert!(items.len() <= bytes.len() + 1, "{} items", items.len());
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let is_blank = text.trim_ascii_start().is_empty();
    if !is_blank && items.is_empty() {
        // An empty array, list or stream of them is reported by the load itself.
        assert!(bytes.contains(&b'['), "nothing was read, and nothing said");
    }
    let lines = bytes
        .iter()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
        .count() as u64
        + 1;
    for item in items {
        match item {
            Item::Record(record) => check_one(record, lines),
            Item::Row(_) => panic!("only patches come as rows"),
            Item::Warning(finding) => check_finding(finding, lines),
            Item::Unreadable { findings, .. } => {
                assert!(
                    findings
                        .iter()
                        .any(|found| found.severity == Severity::Fault)
                );
                findings
                    .iter()
                    .for_each(|finding| check_finding(finding, lines));
            }
        }
    }
}

fn check_one(record: &Record, lines: u64) {
    let mut findings = Vec::new();
    let checked = check_record(record, &mut findings);
    findings
        .iter()
        .for_each(|finding| check_finding(finding, lines));
    assert!(
        findings.len() <= 2_001 + 1_000,
        "{} findings",
        findings.len()
    );
    let is_faulty = findings
        .iter()
        .any(|found| found.severity == Severity::Fault);
    assert_eq!(checked.record.is_none(), is_faulty, "{findings:?}");
    if let Some(good) = checked.record {
        assert_eq!(checked.code.as_deref(), Some(good.product.code.as_str()));
        round_trip(&good);
    }
}

fn check_finding(finding: &Finding, lines: u64) {
    assert!(
        !finding.rule.is_empty() && !finding.message.is_empty(),
        "{finding:?}"
    );
    if let Some(line) = finding.place.line {
        assert!((1..=lines).contains(&line), "{finding:?}");
    }
    let shown = finding.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    assert!(shown.len() < 16_000, "{} bytes: {shown}", shown.len());
}

/// Checks that a product as served loads again into the same product.
fn round_trip(checked: &CheckedRecord) {
    let CheckedRecord {
        product,
        content,
        texts,
    } = checked;
    for (digest, markdown) in texts {
        assert_eq!(*digest, TextDigest::of(markdown));
    }
    let content = content.apply(&Content::default());
    let rendered = document(product, &content).expect("JSON");
    let mut buffer = Vec::new();
    let addresses = TextAddresses::new(PUBLIC_URL);
    let (published, range) = addresses.publish(&rendered.json, rendered.content, &[], &mut buffer);
    let published = String::from_utf8(published.to_vec()).expect("text");
    serde_json::from_str::<serde_json::Value>(&published).expect("JSON");
    if let Some(range) = range {
        let resources = &published[range];
        serde_json::from_str::<serde_json::Map<_, _>>(resources).expect("an object");
    }
    let record = Record::new(Place::file("again"), published);
    let mut findings = Vec::new();
    let again = check_record(&record, &mut findings).record;
    let mut again = again.unwrap_or_else(|| panic!("{}: {findings:?}", record.json));
    let (was, is) = (
        &product.discount_multiplier,
        &again.product.discount_multiplier,
    );
    assert_eq!(was.cut(), is.cut());
    again.product.discount_multiplier = product.discount_multiplier;
    assert_eq!(&again.product, product, "{}", record.json);
    let again_content = again.content.apply(&content);
    assert_eq!(again_content, content, "{}", record.json);
    let is_outside = |text: &Text| !matches!(text, Text::Own { .. });
    if content.texts.iter().all(|(_, text)| is_outside(text)) {
        let rendered_again = document(&again.product, &again_content).expect("JSON");
        assert_eq!(rendered_again.json, record.json);
    }
}
