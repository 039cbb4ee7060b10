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

/// Memory of a shared text beside its bytes, and of a style or a reference: about that of their types.
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

/// What is known of a part's markup.
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
#[derive(Default)]
struct Cell {
    position: String,
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
            self.piece.extend_from_slice(piece);
            bytes = rest;
            let piece = std::mem::take(&mut self.piece);
            match self.is_tag {
                true => self.tag(&piece, budget)?,
                false => self.text(&piece, budget)?,
            }
            // Keeps its memory.
            self.piece = piece;
            self.piece.clear();
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
        bytes.iter().enumerate().find_map(|(index, byte)| {
            let position = known + index;
            match (byte, *quote) {
                (b'>', _) if !end.is_empty() => {
                    let before = (position - end.len()..position).map(at);
                    let is_end = position + 1 >= shortest && before.eq(end.iter().map(Some));
                    return is_end.then_some(index + 1);
                }
                (b'>', None) => return Some(index + 1),
                (b'"' | b'\'', None) => *quote = Some(*byte),
                (byte, Some(open)) if *byte == open => *quote = None,
                _ => {}
            }
            None
        })
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
                check_position(&number)?;
                let is_hidden = matches!(attribute("hidden")?.as_deref(), Some("1" | "true"));
                self.hidden_row = is_hidden.then_some(number);
            }
            b"c" => {
                if let Some(row) = self.hidden_row.take() {
                    self.hidden.0 += 1;
                    if self.hidden.0 == 1 {
                        self.hidden.1 = row;
                    }
                }
                let cell = Cell {
                    position: attribute("r")?.unwrap_or_default(),
                    is_text: attribute("t")?.as_deref() == Some("str"),
                    ..Cell::default()
                };
                check_position(&cell.position)?;
                if self.cell.replace(cell).is_some() {
                    return Err(damaged());
                }
            }
            b"f" => {
                if let Some(cell) = &mut self.cell {
                    cell.has_formula = true;
                }
            }
            b"mergeCell" if self.merged.is_none() => self.merged = attribute("ref")?,
            b"dimension" => {
                if let Some(dimension) = attribute("ref")? {
                    check_dimension(&dimension)?;
                }
            }
            b"sst" => {
                self.keeps_texts = true;
                // That much is reserved at once.
                let count = attribute("uniqueCount")?.unwrap_or_default();
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
                let kind = attribute("Type")?.unwrap_or_default();
                let target = attribute("Target")?.unwrap_or_default();
                let is_read = kind.ends_with("/officeDocument") || kind.ends_with("/worksheet");
                let target = target.to_ascii_lowercase();
                let is_checked =
                    is_plain(&target) && target.ends_with(".xml") && !is_unread(&target);
                if kind.contains('&') || is_read && !is_checked {
                    return Err(damaged());
                }
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
            self.without_value.get_or_insert(cell.position);
        }
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
fn attribute(tag: &[u8], name: &str) -> io::Result<Option<String>> {
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
            return Ok(Some(String::from_utf8_lossy(&value[..end]).into_owned()));
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
        Some(encoding) if !encoding.eq_ignore_ascii_case("utf-8") => Err(damaged()),
        _ => Ok(()),
    }
}

/// Refuses positions whose numbers would overflow.
fn check_position(position: &str) -> io::Result<()> {
    let letters = position.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = position.len() - letters;
    match letters <= 3 && digits <= 7 {
        true => Ok(()),
        false => Err(damaged()),
    }
}

/// Refuses a dimension whose end comes before its start.
fn check_dimension(dimension: &str) -> io::Result<()> {
    let mut corners = dimension.split(':');
    let corner = |position: &str| {
        check_position(position).ok()?;
        let letters = position.bytes().take_while(u8::is_ascii_alphabetic);
        let column = letters.fold(0, |column, letter| {
            column * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1
        });
        let digits = position.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        Some((column, digits.parse::<u32>().ok()?))
    };
    let start = corners.next().and_then(corner);
    let end = corners.next().map_or(start, corner);
    let is_ordered = start
        .zip(end)
        .is_some_and(|(start, end)| start.0 <= end.0 && start.1 <= end.1);
    match is_ordered && corners.next().is_none() {
        true => Ok(()),
        false => Err(damaged()),
    }
}
