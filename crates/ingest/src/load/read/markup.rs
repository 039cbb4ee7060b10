//! Markup (XML) of a workbook's parts, read byte by byte before `calamine` reads it: what `calamine` would keep in memory is
//! counted, and found is what it doesn't tell of a sheet: hidden rows, merged cells, formulas without a value.

use std::io;

use super::archive::damaged;
use super::broken;

/// Maximum length of a tag or of text between two, in bytes. Cells have 32,767 characters at most.
const MAX_PIECE_BYTES: usize = 1 << 20;

/// Maximum length of a style's tag, in bytes: each style has copies of them.
const MAX_STYLE_TAG_BYTES: usize = 1 << 10;

/// Directories of parts that aren't read: drawings and properties.
const UNREAD: [&str; 5] = [
    "drawings/",
    "diagrams/",
    "charts/",
    "customxml/",
    "docprops/",
];

/// Maximum depth of elements.
const MAX_DEPTH: usize = 100;

/// Maximum memory for what `calamine` keeps, in bytes.
const MAX_KEPT_BYTES: usize = 48 << 20;

/// Memory of a shared text beside its bytes, and of a style or a reference, about that of their types.
const SHARED_TEXT_BYTES: usize = 40;
const STYLE_BYTES: usize = 1_000;
const REFERENCE_BYTES: usize = 256;

/// Memory for what `calamine` keeps of all parts.
#[derive(Default)]
pub(super) struct Budget {
    used: usize,
    longest_style_tag: usize,
}

impl Budget {
    fn take(&mut self, bytes: usize) -> io::Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used > MAX_KEPT_BYTES {
            let message = "expected a workbook with at most 48 MiB of distinct texts and formats; load larger ones as CSV";
            return Err(broken("input_too_large", message.to_owned()));
        }
        Ok(())
    }
}

/// Findings about a part's markup.
#[derive(Default)]
pub(super) struct Markup {
    /// Number of hidden rows with cells, and the first.
    pub(super) hidden: (u64, String),
    /// First merged cells.
    pub(super) merged: Option<String>,
    /// First formula without a value.
    pub(super) without_value: Option<String>,
    /// Incomplete tag, or text before it, with its bytes so far.
    piece: Vec<u8>,
    is_tag: bool,
    /// Quote within a tag that isn't closed.
    quote: Option<u8>,
    open: Names,
    /// Number of the row, if it is hidden and had no cell yet.
    hidden_row: Option<String>,
    cell: Option<Cell>,
    /// Position of the cell.
    position: Vec<u8>,
    /// True if texts of this part are kept.
    keeps_texts: bool,
}

/// Names of open elements, without their prefixes.
#[derive(Default)]
struct Names {
    names: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    fn last(&self) -> &[u8] {
        let mut ends = self.ends.iter().rev();
        let end = ends.next().copied().unwrap_or_default();
        &self.names[ends.next().copied().unwrap_or_default()..end]
    }

    fn push(&mut self, name: &[u8]) {
        self.names.extend_from_slice(name);
        self.ends.push(self.names.len());
    }

    fn pop(&mut self) {
        self.ends.pop();
        self.names
            .truncate(self.ends.last().copied().unwrap_or_default());
    }
}

/// Cell that is being read.
struct Cell {
    is_text: bool,
    has_formula: bool,
    /// Length of its value.
    length: usize,
}

impl Markup {
    /// Reads further bytes; none at the end.
    pub(super) fn read(&mut self, mut bytes: &[u8], budget: &mut Budget) -> io::Result<()> {
        // UTF-16 has these.
        if memchr::memchr3(0, 0xfe, 0xff, bytes).is_some() {
            return Err(damaged());
        }
        while let Some(length) = self.piece_length(bytes) {
            let (piece, rest) = bytes.split_at(length);
            bytes = rest;
            // The start of most pieces is here, too.
            let mut start = std::mem::take(&mut self.piece);
            let piece = match start.is_empty() {
                true => piece,
                false => {
                    start.extend_from_slice(piece);
                    &start
                }
            };
            match self.is_tag {
                true => self.tag(piece, budget)?,
                false => self.text(piece, budget)?,
            }
            self.is_tag = !self.is_tag;
        }
        self.piece.extend_from_slice(bytes);
        match self.piece.len() > MAX_PIECE_BYTES {
            true => Err(damaged()),
            false => Ok(()),
        }
    }

    /// Returns the length of the rest of the piece; `None` if these bytes don't have its end.
    fn piece_length(&mut self, bytes: &[u8]) -> Option<usize> {
        if !self.is_tag {
            return memchr::memchr(b'<', bytes);
        }
        let Self { piece, quote, .. } = self;
        let known = piece.len();
        let at = |index: usize| match index.checked_sub(known) {
            None => piece.get(index),
            Some(index) => bytes.get(index),
        };
        // The end of an instruction or a comment, and the length of the shortest.
        let (end, shortest): (&[u8], usize) = match at(1) {
            Some(b'?') => (b"?", 4),
            Some(b'!') => (b"--", 7),
            _ => (b"", 0),
        };
        let mut index = 0;
        loop {
            let rest = &bytes[index..];
            let next = match *quote {
                _ if !end.is_empty() => memchr::memchr(b'>', rest),
                Some(quote) => memchr::memchr(quote, rest),
                None => memchr::memchr3(b'>', b'"', b'\'', rest),
            };
            let found = index + next?;
            let position = known + found;
            index = found + 1;
            match bytes[found] {
                b'>' => {
                    let before = (position.saturating_sub(end.len())..position).map(at);
                    let is_end = position + 1 >= shortest && before.eq(end.iter().map(Some));
                    if is_end {
                        return Some(index);
                    }
                }
                mark => *quote = quote.is_none().then_some(mark),
            }
        }
    }

    fn text(&mut self, text: &[u8], budget: &mut Budget) -> io::Result<()> {
        if self.keeps_texts {
            budget.take(text.len())?;
        }
        if let (b"v" | b"t", Some(cell)) = (self.open.last(), &mut self.cell) {
            cell.length += text.len();
            if cell.length > MAX_PIECE_BYTES {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn tag(&mut self, tag: &[u8], budget: &mut Budget) -> io::Result<()> {
        self.quote = None;
        let inner = &tag[1..tag.len() - 1];
        let is_end = inner.starts_with(b"/");
        let name = inner.strip_prefix(b"/").unwrap_or(inner);
        let name_end = name.iter().position(|byte| b" \t\r\n/".contains(byte));
        let name = &name[..name_end.unwrap_or(name.len())];
        let name = memchr::memrchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
        match inner.first() {
            Some(b'?') => return check_encoding(name, tag),
            Some(b'!') if inner.starts_with(b"!--") => return Ok(()),
            Some(b'!') => return Err(damaged()),
            _ => {}
        }
        if is_end {
            if self.open.last() != name {
                return Err(damaged());
            }
            self.open.pop();
            if name == b"c" {
                self.end_cell();
            }
            return Ok(());
        }
        let is_in_text = matches!(self.open.last(), b"t" | b"v" | b"f" | b"definedName");
        if is_in_text || self.open.ends.len() > MAX_DEPTH {
            return Err(damaged());
        }
        self.start(name, tag, budget)?;
        match inner.ends_with(b"/") {
            true if name == b"c" => self.end_cell(),
            true => {}
            false => self.open.push(name),
        }
        Ok(())
    }

    fn start(&mut self, name: &[u8], tag: &[u8], budget: &mut Budget) -> io::Result<()> {
        let attribute = |name: &str| attribute(tag, name);
        match name {
            b"row" => {
                let number = attribute("r")?.unwrap_or_default();
                check_position(number)?;
                let is_hidden = matches!(attribute("hidden")?, Some(b"1" | b"true"));
                self.hidden_row = is_hidden.then(|| lossy(number));
            }
            b"c" => {
                if let Some(row) = self.hidden_row.take() {
                    self.hidden.0 += 1;
                    if self.hidden.0 == 1 {
                        self.hidden.1 = row;
                    }
                }
                let position = attribute("r")?.unwrap_or_default();
                check_position(position)?;
                self.position.clear();
                self.position.extend_from_slice(position);
                let cell = Cell {
                    is_text: attribute("t")? == Some(b"str"),
                    has_formula: false,
                    length: 0,
                };
                if self.cell.replace(cell).is_some() {
                    return Err(damaged());
                }
            }
            b"f" => {
                if let Some(cell) = &mut self.cell {
                    cell.has_formula = true;
                }
            }
            b"mergeCell" if self.merged.is_none() => self.merged = attribute("ref")?.map(lossy),
            b"dimension" => {
                if let Some(dimension) = attribute("ref")? {
                    check_dimension(dimension)?;
                }
            }
            b"sst" => {
                self.keeps_texts = true;
                // That much is reserved at once.
                let count = lossy(attribute("uniqueCount")?.unwrap_or_default());
                let count = count.parse::<usize>().unwrap_or(0);
                Budget::default().take(count.saturating_mul(SHARED_TEXT_BYTES))?;
            }
            b"si" => budget.take(SHARED_TEXT_BYTES)?,
            b"numFmt" | b"name" | b"font" | b"fill" | b"border" => {
                if tag.len() > MAX_STYLE_TAG_BYTES {
                    return Err(damaged());
                }
                budget.longest_style_tag = budget.longest_style_tag.max(tag.len());
                budget.take(REFERENCE_BYTES + tag.len())?;
            }
            b"xf" => budget.take(STYLE_BYTES + 2 * budget.longest_style_tag)?,
            b"sheet" | b"definedName" => {
                self.keeps_texts = true;
                budget.take(REFERENCE_BYTES + tag.len())?;
            }
            b"Relationship" => {
                budget.take(REFERENCE_BYTES + tag.len())?;
                check_relationship(tag)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end_cell(&mut self) {
        if let Some(cell) = self.cell.take()
            && cell.has_formula
            && cell.length == 0
            && !cell.is_text
        {
            let position = &self.position;
            self.without_value.get_or_insert_with(|| lossy(position));
        }
    }
}

/// Refuses a part to read that isn't checked because of its name.
fn check_relationship(tag: &[u8]) -> io::Result<()> {
    let value = |name| Ok(lossy(attribute(tag, name)?.unwrap_or_default()));
    let kind: io::Result<String> = value("Type");
    let (kind, target) = (kind?, value("Target")?.to_ascii_lowercase());
    let is_read = kind.ends_with("/officeDocument") || kind.ends_with("/worksheet");
    let is_checked = is_plain(&target) && target.ends_with(".xml") && !is_unread(&target);
    match kind.contains('&') || is_read && !is_checked {
        true => Err(damaged()),
        false => Ok(()),
    }
}

/// Returns true if a part of this name, in small letters, isn't read.
pub(super) fn is_unread(name: &str) -> bool {
    is_plain(name) && UNREAD.iter().any(|directory| name.contains(directory))
}

/// Returns true if no reader takes a name for another one.
fn is_plain(name: &str) -> bool {
    !name.contains(['&', '%', '\\']) && !name.contains("..")
}

/// Returns the value of a tag's attribute.
fn attribute<'t>(tag: &'t [u8], name: &str) -> io::Result<Option<&'t [u8]>> {
    let start = tag.iter().position(u8::is_ascii_whitespace);
    let mut rest = start.map_or(&[][..], |start| &tag[start..tag.len() - 1]);
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() || rest == b"/" || rest == b"?" {
            return Ok(None);
        }
        let equals = memchr::memchr(b'=', rest).ok_or_else(damaged)?;
        let (key, value) = (
            rest[..equals].trim_ascii(),
            rest[equals + 1..].trim_ascii_start(),
        );
        let (quote, value) = value.split_first().ok_or_else(damaged)?;
        let end = memchr::memchr(*quote, value).filter(|_| b"\"'".contains(quote));
        let end = end.ok_or_else(damaged)?;
        if key == name.as_bytes() {
            return Ok(Some(&value[..end]));
        }
        rest = &value[end + 1..];
    }
}

/// Refuses a declaration of another encoding than UTF-8.
fn check_encoding(name: &[u8], tag: &[u8]) -> io::Result<()> {
    if !name.eq_ignore_ascii_case(b"?xml") {
        return Ok(());
    }
    match attribute(tag, "encoding")? {
        Some(encoding) if !encoding.eq_ignore_ascii_case(b"utf-8") => Err(damaged()),
        _ => Ok(()),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Refuses positions whose numbers would overflow.
fn check_position(position: &[u8]) -> io::Result<()> {
    let letters = letters(position);
    match letters <= 3 && position.len() - letters <= 7 {
        true => Ok(()),
        false => Err(damaged()),
    }
}

/// Returns the number of letters of a position.
fn letters(position: &[u8]) -> usize {
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    position.iter().take_while(is_letter).count()
}

/// Refuses a dimension whose end comes before its start.
fn check_dimension(dimension: &[u8]) -> io::Result<()> {
    let corner = |position: &[u8]| {
        check_position(position).ok()?;
        let (column, row) = position.split_at(letters(position));
        let column = column.iter().fold(0, |column, letter| {
            column * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1
        });
        Some((column, lossy(row).parse::<u32>().ok()?))
    };
    let corners = dimension.split(|byte| *byte == b':').map(corner);
    let corners: Option<Vec<(u32, u32)>> = corners.collect();
    match corners.as_deref() {
        Some([_]) => Ok(()),
        Some([start, end]) if start.0 <= end.0 && start.1 <= end.1 => Ok(()),
        _ => Err(damaged()),
    }
}
