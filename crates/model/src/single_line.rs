//! Short texts: names, categories, labels.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// A non-empty text without U+0000 and without leading or trailing blanks (Unicode `White_Space`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SingleLine(Box<str>);

impl SingleLine {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SingleLine {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() || text.trim() != text {
            return Err(Invalid::new(
                "required",
                "a text that isn't empty, without blanks around it",
            ));
        }
        if text.contains('\0') {
            return Err(Invalid::new(
                "nul_character",
                "a text without the character U+0000",
            ));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for SingleLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
