//! Bytes for people and files.

use std::fmt;

/// Bytes as two hexadecimal digits each, in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Hexadecimal<'b>(pub &'b [u8]);

impl fmt::Display for Hexadecimal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
