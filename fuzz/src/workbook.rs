//! Workbooks: any bytes as an archive, as the markup of a sheet, and as cells, which load as the same table in CSV does.

use std::io::Write as _;

use flate2::Crc;
use vitrine_ingest::load::read::{Item, Shape, read_plain};

use crate::load::check_items;

const TYPES: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// Checks an input: as a workbook, as the part of one, and as its cells.
pub fn check(bytes: &[u8]) {
    let archive = [b"PK\x03\x04", bytes].concat();
    for archive in [archive, workbook(bytes, NO_TEXTS), workbook(SHEET, bytes)] {
        let items = items(&archive);
        check_items(&archive, &items);
        assert_eq!(self::items(&archive), items);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_cells(text);
    }
}

const NO_TEXTS: &[u8] = b"<sst></sst>";

const SHEET: &[u8] =
    b"<worksheet><sheetData><row><c t=\"s\"><v>0</v></c></row></sheetData></worksheet>";

/// Checks that cells, separated by tabs and line feeds, load as those of CSV.
fn check_cells(text: &str) {
    let is_plain = |character: char| "\t\n".contains(character) || !character.is_control();
    let table: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let width = table.iter().map(Vec::len).max().unwrap_or(0);
    let mut first = table.iter().flatten();
    let names = first.next().is_some_and(|name| *name == "code");
    if !names || !text.chars().all(is_plain) || text.contains("_x") {
        return;
    }
    let (mut csv, mut sheet) = (String::new(), String::from("<worksheet><sheetData>"));
    for row in &table {
        sheet.push_str("<row>");
        for index in 0..width {
            let cell = row.get(index).copied().unwrap_or_default();
            csv.push_str(&format!("\"{}\",", cell.replace('"', "\"\"")));
            let cell = cell.replace('&', "&amp;").replace('<', "&lt;");
            let is = format!("<is><t xml:space=\"preserve\">{cell}</t></is>");
            sheet.push_str(&format!("<c t=\"inlineStr\">{is}</c>"));
        }
        csv.push('\n');
        sheet.push_str("</row>");
    }
    sheet.push_str("</sheetData></worksheet>");
    let records = |bytes: &[u8]| -> Vec<String> {
        let records = items(bytes).into_iter().filter_map(|item| match item {
            Item::Record(record) => Some(record.json),
            _ => None,
        });
        records.collect()
    };
    assert_eq!(
        records(&workbook(sheet.as_bytes(), NO_TEXTS)),
        records(csv.as_bytes())
    );
}

fn items(bytes: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    read_plain("input", bytes, Shape::Whole, &mut |item| items.push(item)).expect("memory");
    items
}

/// Returns a workbook with one sheet, and with shared texts.
fn workbook(sheet: &[u8], texts: &[u8]) -> Vec<u8> {
    let relation = |kind: &str, target: &str| {
        let relation = format!("Id=\"a\" Type=\"{TYPES}/{kind}\" Target=\"{target}\"");
        format!("<Relationships><Relationship {relation}/></Relationships>").into_bytes()
    };
    let book = format!("<workbook xmlns:r=\"{TYPES}\"><sheet name=\"S\" r:id=\"a\"/></workbook>");
    archive(&[
        ("_rels/.rels", relation("officeDocument", "xl/workbook.xml")),
        (
            "xl/_rels/workbook.xml.rels",
            relation("worksheet", "worksheets/s.xml"),
        ),
        ("xl/workbook.xml", book.into_bytes()),
        ("xl/sharedStrings.xml", texts.to_vec()),
        ("xl/worksheets/s.xml", sheet.to_vec()),
    ])
}

/// Returns a ZIP archive of these parts, which aren't compressed.
fn archive(parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    let size = |length: usize| u32::try_from(length).expect("small").to_le_bytes();
    for (name, content) in parts {
        let mut crc = Crc::new();
        crc.update(content);
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 33, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend(size(content.len()).repeat(2));
        common.extend(size(name.len()));
        let offset = size(file.len());
        let local: [&[u8]; 4] = [b"PK\x03\x04", &common, name.as_bytes(), content];
        file.write_all(&local.concat()).expect("memory");
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend(common);
        directory.extend([0; 10]);
        directory.extend(offset);
        directory.extend_from_slice(name.as_bytes());
    }
    let count = u16::try_from(parts.len()).expect("small").to_le_bytes();
    let start = size(file.len());
    let length = size(directory.len());
    file.extend(directory);
    file.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    file.extend(count.repeat(2));
    file.extend(length);
    file.extend(start);
    file.extend([0, 0]);
    file
}
