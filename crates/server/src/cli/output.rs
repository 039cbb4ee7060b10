//! Standard output and standard error. On terminals, control characters are escaped (`vitrine_ingest::escape`); files
//! and pipes get the bytes. All commands print through this module; `tests/tidy.rs` holds that.

use std::fmt;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use vitrine_ingest::escape::lines;
use vitrine_ingest::load::plan::Listing;

/// Output stream of the process.
pub(super) struct Output<W> {
    out: W,
    is_terminal: bool,
    /// Incomplete character or line ending, which the next write may complete.
    pending: Vec<u8>,
}

/// Returns standard output.
pub(super) fn stdout() -> Output<Stdout> {
    Output::new(io::stdout())
}

/// Returns standard error.
pub(super) fn stderr() -> Output<Stderr> {
    Output::new(io::stderr())
}

/// Returns a table with these columns, the most important first.
pub(super) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

/// Returns a table as text. If it is printed on a terminal, it fits the width: cells wrap, and the last columns are left out, which
/// a line below says.
pub(super) fn fitted(table: Table) -> String {
    let width = rustix::termios::tcgetwinsize(io::stdout());
    match width.map(|size| size.ws_col) {
        Ok(width) if width > 0 => fitted_to(width, table),
        _ => table.trim_fmt(),
    }
}

/// Width to which cells wrap, in characters: that of a time, so that none is split.
const WRAPPED_WIDTH: u16 = 20;

/// Blanks around each cell.
const PADDING: u16 = 2;

fn fitted_to(width: u16, mut table: Table) -> String {
    let widths = table.column_max_content_widths();
    // People copy what is in the first column, such as codes.
    let least = |(index, own): (usize, &u16)| match index {
        0 => (*own).min(width / 2),
        _ => (*own).min(WRAPPED_WIDTH),
    };
    let mut left = width;
    let mut fits = |width: &u16| {
        left = left.saturating_sub(width + PADDING);
        left > 0
    };
    let least: Vec<u16> = widths.iter().enumerate().map(least).collect();
    let shown = least.iter().take_while(|width| fits(width)).count().max(1);
    let header = table.header().into_iter().flat_map(|row| row.cell_iter());
    let hidden: Vec<String> = header.skip(shown).map(comfy_table::Cell::content).collect();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_constraint(match index < shown {
            true => ColumnConstraint::LowerBoundary(Width::Fixed(least[index] + PADDING)),
            false => ColumnConstraint::Hidden,
        });
    }
    let text = table.trim_fmt();
    match &hidden[..] {
        [] => text,
        hidden => format!(
            "{text}\nnot shown, as the terminal is too narrow: {}",
            hidden.join(", ")
        ),
    }
}

impl<W: Write + IsTerminal> Output<W> {
    fn new(out: W) -> Self {
        let is_terminal = out.is_terminal();
        Self {
            out,
            is_terminal,
            pending: Vec::new(),
        }
    }

    /// Returns true if this is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the detail of a printed plan: a summary only on a terminal, without `--all`.
    pub(super) fn listing(&self, all: bool) -> Listing {
        match self.is_terminal && !all {
            true => Listing::Summary,
            false => Listing::Complete,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        self.pending.extend_from_slice(bytes);
        let whole = complete_length(&self.pending);
        let text: Vec<u8> = self.pending.drain(..whole).collect();
        let text = String::from_utf8_lossy(&text);
        self.out.write_all(lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes one piece, so that no line of another thread comes in between.
    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(arguments.to_string().as_bytes())
    }
}

/// Returns the length that can be escaped: all but a truncated character, or a final carriage return.
fn complete_length(bytes: &[u8]) -> usize {
    if let [before @ .., b'\r'] = bytes {
        return before.len();
    }
    let longest = bytes.len().min(3);
    for length in 1..=longest {
        let start = bytes.len() - length;
        let needed = match bytes[start] {
            0x00..0x80 => 1,
            0x80..0xc0 => continue,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        return if length < needed { start } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_split_between_writes_are_escaped() {
        let text = "é\u{9b}2J 雪\u{202e}𝄞\r\n\rx\u{7f}\n";
        for pieces in 1..=text.len() {
            let mut output = Output {
                out: Vec::new(),
                is_terminal: true,
                pending: Vec::new(),
            };
            for piece in text.as_bytes().chunks(pieces) {
                output.write_all(piece).expect("memory");
            }
            let shown = String::from_utf8(output.out).expect("UTF-8");
            assert_eq!(shown, "é\\u009b2J 雪\\u202e𝄞\r\n\\rx\\u007f\n", "{pieces}");
        }
    }
}
