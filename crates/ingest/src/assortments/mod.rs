//! Rules of assortments as operators write them, in JSON (docs/contract/assortments.md#rules).
//!
//! [`parse`] finds all faults at once, each with its place. [`to_json`] writes rules in one form, which is read as the same
//! rules. [`warnings`] and [`excesses`] compare rules with a snapshot's products. [`lines`] finds the lines of faults.

mod lines;
mod read;
mod remarks;
pub(crate) mod suggest;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;

pub use lines::lines;
pub use read::parse;
pub use remarks::{excesses, warnings};
pub use write::to_json;

use crate::escape::single_line;
use crate::load::report::{shown, shown_pointer};

/// Maximum length of rules, in bytes: so many codes as are allowed fit.
pub const MAX_BYTES: usize = 8 << 20;

/// Maximum number of faults that are told; one more says how many are left out.
pub const MAX_FAULTS: usize = 1_000;

/// A fault of rules, or a warning about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Place, such as `allow[1].countries[0]`; empty for the rules as a whole.
    pub place: String,
    /// Description, with a suggestion if there is one.
    pub message: String,
}

impl Fault {
    /// Returns a fault at a path, which is shortened; control characters in both texts are escaped.
    fn new(path: &str, message: &str) -> Self {
        Self {
            place: single_line(&shown_pointer(path)).into_owned(),
            message: single_line(message).into_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(out, "{}: ", self.place)?;
        }
        out.write_str(&self.message)
    }
}

/// Returns a text from outside for use in a message, shortened.
fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}
