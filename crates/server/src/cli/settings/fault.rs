//! Faults of a settings file, with their places.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use vitrine_ingest::escape::single_line;

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct SettingFault {
    /// Line, from 1; 0 for faults without one.
    pub(in crate::cli) line: usize,
    /// Character in the line, from 1.
    pub(in crate::cli) column: usize,
    /// Key of the setting, as in the file.
    pub(in crate::cli) setting: Option<String>,
    /// Description. Contains no secret.
    pub(in crate::cli) what: String,
    /// The remedy.
    pub(in crate::cli) advice: String,
}

/// A settings file with faults.
#[derive(Debug)]
pub(in crate::cli) struct RefusedFile {
    /// Path of the file.
    pub(in crate::cli) path: PathBuf,
    /// All faults, in the order of their lines.
    pub(in crate::cli) faults: Vec<SettingFault>,
}

impl fmt::Display for RefusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = super::display_path(&self.path);
        for fault in &self.faults {
            writeln!(
                f,
                "{}{}: {}\n    → {}",
                single_line(&path),
                FaultPlace(fault),
                single_line(&fault.what),
                single_line(&fault.advice)
            )?;
        }
        Ok(())
    }
}

/// `:LINE:COLUMN`, if a fault has them.
struct FaultPlace<'f>(&'f SettingFault);

impl fmt::Display for FaultPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.line {
            0 => Ok(()),
            line => write!(f, ":{line}:{}", self.0.column),
        }
    }
}

/// Index of lines and columns in a text.
pub(super) struct LineIndex<'t>(pub(super) &'t str);

impl LineIndex<'_> {
    /// Returns line and column of a byte, from 1.
    pub(super) fn of(&self, byte: usize) -> (usize, usize) {
        let mut byte = byte.min(self.0.len());
        while !self.0.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &self.0[..byte];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let lines = before.bytes().filter(|byte| *byte == b'\n').count();
        (lines + 1, before[line_start..].chars().count() + 1)
    }

    /// Returns a fault at a place.
    pub(super) fn fault(
        &self,
        span: &Range<usize>,
        setting: Option<&str>,
        what: String,
        advice: String,
    ) -> SettingFault {
        let (line, column) = self.of(span.start);
        SettingFault {
            line,
            column,
            setting: setting.map(str::to_owned),
            what,
            advice,
        }
    }
}
