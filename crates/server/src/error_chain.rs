//! An error with its causes on one line, for log fields: JSON logs print an error field without its sources.

use std::error::Error;
use std::fmt;

/// Displays an error and each of its sources, separated by colons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorChain<'e>(pub(crate) &'e (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let sources = std::iter::successors(self.0.source(), |error: &&(dyn Error + 'static)| {
            (*error).source()
        });
        for source in sources {
            write!(out, ": {source}")?;
        }
        Ok(())
    }
}
